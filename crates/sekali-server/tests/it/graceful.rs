//! The end on request, a second process on the same database, and a slow effect beside other sources.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::support::{Connection, ORDERS, Server, Start, eventually, hook, order};

/// Makes the write of an order named `slow…` take about two seconds of the database's time.
const SLOW: &str = "
create trigger if not exists order_slow after insert on orders when new.entity_id like 'slow%'
begin
    insert into order_writes select 'never', 'never' where (with recursive n(i) as
        (select 1 union all select i + 1 from n where i < 20000000) select max(i) from n) = 0;
end;";

#[test]
fn a_stop_finishes_what_was_begun_and_answers_503_to_what_is_new() {
    let mut server = Server::start(ORDERS);
    let (address, stopped) = (server.address().to_owned(), AtomicBool::new(false));
    let (mut accepted, mut refused) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..6)
            .map(|lane| {
                let (address, stopped) = (&address, &stopped);
                scope.spawn(move || send_until_ended(address, lane, stopped))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        server.terminate();
        let status = server.wait_ended();
        stopped.store(true, Ordering::SeqCst);
        assert!(status.success(), "{status}");
        for sender in senders {
            let (taken, answered_503) = sender.join().unwrap();
            accepted.extend(taken);
            refused += answered_503;
        }
    });
    assert!(accepted.len() > 50, "only {} were accepted", accepted.len());
    assert!(refused > 0, "nobody was told that the receiver is stopping");
    for id in &accepted {
        assert_ne!(server.status(id), "", "{id} was accepted and is not there");
    }
    let held = "select count(*) from webhook_inbox where processing_status = 'processing' or lease_token is not null";
    assert_eq!(server.count(held, &[]), 0, "leases were not given back");
    server.restart();
    server.wait_applied();
    let written = server.count("select count(*) from order_writes", &[]);
    assert_eq!(
        written as usize,
        server
            .column("select event_id from webhook_inbox", &[])
            .len()
    );
}

/// Sends until the process is gone; returns what was accepted and how often the answer was 503.
fn send_until_ended(address: &str, lane: usize, stopped: &AtomicBool) -> (Vec<String>, usize) {
    let (mut accepted, mut refused) = (Vec::new(), 0);
    for number in 0.. {
        let id = format!("l{lane}-{number}");
        // A connection each, as most senders have it: also one that comes while the process is stopping.
        let Ok(stream) = std::net::TcpStream::connect(address) else {
            break;
        };
        drop(stream);
        let reply = std::panic::catch_unwind(|| hook(&id, order(&id, 1, "paid")).send_to(address));
        match reply {
            Ok(Some(reply)) if reply.status == 202 => accepted.push(id),
            Ok(Some(reply)) => {
                assert_eq!(reply.says(), "503 unavailable shutting_down");
                assert!(
                    reply.header("retry-after").is_some(),
                    "a 503 says when to come again"
                );
                refused += 1;
            }
            _ => break,
        }
        if stopped.load(Ordering::SeqCst) {
            break;
        }
    }
    (accepted, refused)
}

#[test]
fn readiness_ends_before_the_process_does() {
    let mut server = Server::start(ORDERS);
    assert_eq!(
        Connection::open(server.address()).get("/readyz").status,
        200
    );
    server.terminate();
    eventually("readyz says that the process is stopping", || {
        std::net::TcpStream::connect(server.address()).is_ok_and(|_| {
            let mut connection = Connection::open(server.address());
            connection.write(b"GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n");
            connection.read().is_some_and(|reply| reply.status == 503)
        })
    });
    assert!(server.wait_ended().success());
}

#[test]
fn a_second_process_on_the_same_database_is_refused() {
    let server = Server::start(ORDERS);
    let second = server.run(&["serve", "--config", "sekali.toml"]);
    assert_eq!(second.status.code(), Some(4));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("already served by another process"), "{said}");
    assert_eq!(
        hook("still", order("still", 1, "paid"))
            .send(&server)
            .status,
        202
    );
}

#[test]
fn a_slow_effect_does_not_slow_the_answers_of_others() {
    let other = ORDERS
        .replace("id = \"orders\"", "id = \"others\"")
        .replace("table = \"orders\"", "table = \"other_orders\"");
    let schema = format!(
        "{}\ncreate table if not exists other_orders (entity_id text primary key, status text, version bigint, last_event_id text);\n{SLOW}",
        super::support::SCHEMA
    );
    let server = Start::new(&format!("{ORDERS}\n{other}"))
        .file("schema.sql", schema)
        .serve();
    // The machine may have something else to do for a moment; a slow effect that is waited for spoils every round.
    let rounds = (0..3).map(|round| p99_beside_slow_effects(&server, round));
    let quickest = rounds
        .inspect(|p99| println!("99 % within {p99:?}"))
        .find(|p99| *p99 < Duration::from_millis(50));
    assert!(quickest.is_some(), "answers waited for the slow effects");
    let attempts = server.count(
        "select count(*) from webhook_attempts where reason in ('preempted', 'effect_timeout')",
        &[],
    );
    assert!(
        attempts > 0,
        "the slow effect was never interrupted: it was not slow"
    );
}

/// Sends events with slow effects, then to the other source for two seconds; returns how long 99 % of its answers took.
fn p99_beside_slow_effects(server: &Server, round: usize) -> Duration {
    for number in 0..4 {
        let id = format!("slow{round}-{number}");
        assert_eq!(hook(&id, order(&id, 1, "paid")).send(server).status, 202);
    }
    let (mut connection, mut times) = (Connection::open(server.address()), Vec::new());
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        let id = format!("quick{round}-{}", times.len());
        let delivery = hook(&id, order(&id, 1, "paid")).to("others");
        let sent = Instant::now();
        let reply = delivery.send_on(&mut connection).expect("an answer");
        times.push(sent.elapsed());
        assert_eq!(reply.status, 202);
    }
    times.sort_unstable();
    times[times.len() * 99 / 100]
}
