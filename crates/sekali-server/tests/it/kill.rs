//! kill -9 of the real process at random moments under load: nothing that was answered is lost, nothing happens twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::support::{Connection, Hook, ORDERS, Server, Start, hook, order};

/// How many rounds there are, unless the variable `SEKALI_KILL_ROUNDS` says otherwise.
const ROUNDS: usize = 30;
/// How often each kind of moment must be hit.
const MIN_HITS: usize = 5;
/// How many rounds there may be until they are.
const MAX_ROUNDS: usize = 120;
const SENDERS: usize = 8;

/// Makes every write of an order take about a millisecond, so that the claim is open for a while.
const SLOW: &str = "
create trigger if not exists order_slow after insert on orders
begin
    insert into order_writes select 'never', 'never' where (with recursive n(i) as
        (select 1 union all select i + 1 from n where i < 4000) select max(i) from n) = 0;
end;";

/// Events under a lease of the process that was killed; those of its predecessors are due already.
const CLAIMED: &str = "select count(*) from webhook_inbox \
    where processing_status = 'processing' and next_attempt_at = lease_until";

/// Where a kill struck, as far as the database and the answers can tell.
#[derive(Debug, Default)]
struct Strike {
    /// Events that a worker had claimed and not committed.
    claimed: i64,
    /// Events that were stored and not answered.
    unanswered: usize,
}

/// What was sent in all rounds, by event id: whether it was answered with 2xx.
type Sent = Mutex<BTreeMap<String, bool>>;

#[test]
fn kills_lose_nothing_that_was_answered_and_apply_nothing_twice() {
    let start = Start::new(&format!(
        "{ORDERS}\n[retention]\npayloads = \"forever\"\nkeys = \"forever\"\n"
    ));
    let mut server = start.serve();
    server.edit(SLOW);
    let sent = Sent::default();
    let mut dice = fastrand::Rng::with_seed(seed());
    let (mut claimed, mut unanswered) = (0, 0);
    for round in 0..MAX_ROUNDS.max(rounds()) {
        if round >= rounds() && claimed >= MIN_HITS && unanswered >= MIN_HITS {
            break;
        }
        let strike = strike(&mut server, &sent, round, &mut dice);
        println!(
            "round {round}: {} claimed, {} stored and not answered",
            strike.claimed, strike.unanswered
        );
        claimed += usize::from(strike.claimed > 0);
        unanswered += usize::from(strike.unanswered > 0);
        server.restart();
    }
    resend_unanswered(&server, &sent);
    server.wait_applied();
    assert_once_each(&server, &sent);
    assert!(
        claimed >= MIN_HITS,
        "only {claimed} rounds struck between claim and commit"
    );
    assert!(
        unanswered >= MIN_HITS,
        "only {unanswered} rounds struck between insert and answer"
    );
}

/// Sends from several connections and kills the process at a random moment.
fn strike(server: &mut Server, sent: &Sent, round: usize, dice: &mut fastrand::Rng) -> Strike {
    let (stopped, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    let address = server.address().to_owned();
    let delay = Duration::from_millis(dice.u64(10..200));
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| send_until_stopped(&address, sent, (round, &next), &stopped));
        }
        std::thread::sleep(delay);
        // Every other round waits for the next commit, since its answers follow within a fraction of a millisecond.
        if round % 2 == 1 {
            wait_for_commit(server);
        }
        server.kill9();
        stopped.store(true, Ordering::SeqCst);
    });
    let stored = server.column("select event_id from webhook_inbox", &[]);
    let stored: BTreeSet<String> = stored.into_iter().collect();
    let (sent, prefix) = (sent.lock().unwrap(), format!("r{round}-"));
    Strike {
        claimed: server.count(CLAIMED, &[]),
        unanswered: sent
            .iter()
            .filter(|(id, answered)| id.starts_with(&prefix) && !**answered && stored.contains(*id))
            .count(),
    }
}

/// Waits until something is stored, at most for a moment.
fn wait_for_commit(server: &Server) {
    let db = server.db();
    let mut newest = db.prepare("select max(seq) from webhook_inbox").unwrap();
    let mut stored = || {
        newest
            .query_row([], |row| row.get::<_, Option<i64>>(0))
            .unwrap()
    };
    let (before, end) = (stored(), Instant::now() + Duration::from_millis(200));
    while stored() == before && Instant::now() < end {}
}

fn send_until_stopped(
    address: &str,
    sent: &Sent,
    (round, next): (usize, &AtomicUsize),
    stopped: &AtomicBool,
) {
    let mut connection = Connection::open(address);
    while !stopped.load(Ordering::SeqCst) {
        let id = format!("r{round}-{}", next.fetch_add(1, Ordering::SeqCst));
        sent.lock().unwrap().insert(id.clone(), false);
        let Some(reply) = event(&id).send_on(&mut connection) else {
            return;
        };
        assert_eq!(reply.says(), "202 accepted", "{id}");
        sent.lock().unwrap().insert(id, true);
    }
}

/// Makes an event about an entity of its own, so that each must write once.
fn event(id: &str) -> Hook {
    hook(id, order(id, 1, "paid"))
}

/// Sends again what had no answer, as its sender does.
fn resend_unanswered(server: &Server, sent: &Sent) {
    let mut connection = Connection::open(server.address());
    for (id, answered) in sent
        .lock()
        .unwrap()
        .iter_mut()
        .filter(|(_, answered)| !**answered)
    {
        let reply = event(id).send_on(&mut connection).expect("an answer");
        assert!(matches!(reply.status, 200 | 202), "{id}: {}", reply.says());
        *answered = true;
    }
}

fn assert_once_each(server: &Server, sent: &Sent) {
    let sent: BTreeSet<String> = sent.lock().unwrap().keys().cloned().collect();
    let processed = "select event_id from webhook_inbox where processing_status = 'processed'";
    let processed: BTreeSet<String> = server.column(processed, &[]).into_iter().collect();
    let lost: Vec<_> = sent.difference(&processed).collect();
    assert!(lost.is_empty(), "not there or not applied: {lost:?}");
    assert_eq!(processed.len(), sent.len(), "events that nobody sent");
    let twice = "select event_id from order_writes group by event_id having count(*) <> 1";
    assert_eq!(server.column(twice, &[]), [""; 0], "written more than once");
    let written = server.count("select count(*) from order_writes", &[]);
    assert_eq!(written as usize, sent.len(), "each event wrote its order");
    println!("{} events, each applied once", sent.len());
}

#[expect(
    clippy::disallowed_methods,
    reason = "a longer run is asked for in the environment"
)]
fn rounds() -> usize {
    let asked = std::env::var("SEKALI_KILL_ROUNDS").ok();
    asked.map_or(ROUNDS, |count| {
        count.parse().expect("SEKALI_KILL_ROUNDS is a number")
    })
}

fn seed() -> u64 {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    seed
}
