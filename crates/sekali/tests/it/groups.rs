//! Groups: the events of one request are stored together or not at all, and each is answered for.

use sekali::event::{Delivery, Receipt};
use sekali::{Error, Limits, Outcome, Reason, Result};
use tokio::task::JoinHandle;

use super::support::{Options, Request, Rig, docs, settle, sources, titled, update};

/// A source whose requests are arrays of events.
fn batches() -> String {
    docs("batch = [\"/*\"]")
}

async fn limited(limits: Limits) -> Rig {
    // What waits is what one transaction leaves.
    let limits = Limits {
        admission_batches_at_once: 1,
        ..limits
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    Rig::with(sources(&batches()), options).await
}

/// Signs the array of some bodies.
fn sign(rig: &Rig, bodies: &[String]) -> Request {
    rig.sign("docs", format!("[{}]", bodies.join(",")))
}

fn group(rig: &Rig, bodies: &[String]) -> Vec<Delivery> {
    rig.deliveries("docs", sign(rig, bodies)).unwrap()
}

/// Admits the array of some bodies.
async fn admit(rig: &Rig, bodies: &[String]) -> Vec<Receipt> {
    let admitted = rig.engine.admission().admit_all(group(rig, bodies));
    admitted.await.unwrap()
}

fn start(rig: &Rig, bodies: &[String]) -> JoinHandle<Result<Vec<Receipt>>> {
    let (admission, group) = (rig.engine.admission().clone(), group(rig, bodies));
    tokio::spawn(async move { admission.admit_all(group).await })
}

/// Admits groups that all wait behind a first transaction with one event, `plug`.
async fn admit_together(rig: &Rig, groups: &[Vec<String>]) -> Vec<Result<Vec<Receipt>>> {
    let held = rig.hold_writer().await;
    let plug = start(rig, &[update("plug", "plug", 1)]);
    settle().await;
    let waiting: Vec<_> = groups.iter().map(|group| start(rig, group)).collect();
    held.release().await;
    plug.await.unwrap().unwrap();
    let mut admitted = Vec::new();
    for group in waiting {
        admitted.push(group.await.unwrap());
    }
    admitted
}

fn outcomes(receipts: &[Receipt]) -> Vec<Outcome> {
    receipts.iter().map(|receipt| receipt.outcome).collect()
}

/// Bodies of updates of entities of their own, under the ids `<name>-0`, `<name>-1` …
fn updates(name: &str, len: usize) -> Vec<String> {
    let update = |number| update(&format!("{name}-{number}"), &format!("{name}-{number}"), 1);
    (0..len).map(update).collect()
}

async fn counts(rig: &Rig) -> [String; 4] {
    let count = async |table: &str| rig.column(&format!("select count(*) from {table}")).await;
    [
        count("webhook_inbox").await,
        count("webhook_payloads").await,
        count("webhook_deliveries").await,
        count("webhook_variants").await,
    ]
}

#[tokio::test]
async fn groups_share_a_transaction_and_receipts_keep_their_order() {
    let rig = Rig::start(&batches()).await;
    let mut descending = updates("a", 9);
    descending.reverse();
    let groups = [updates("m", 3), descending, updates("b", 1)];
    let admitted = admit_together(&rig, &groups).await;
    assert_eq!(rig.batches.lens(), [1, 13]);
    for (bodies, receipts) in groups.iter().zip(admitted) {
        let receipts = receipts.unwrap();
        assert_eq!(receipts.len(), bodies.len());
        for (body, receipt) in bodies.iter().zip(receipts) {
            assert_eq!(receipt.outcome, Outcome::Accepted);
            let stored = format!(
                "select cast(body as text) from webhook_payloads where seq = {}",
                receipt.seq.unwrap()
            );
            assert_eq!(rig.column(&stored).await, *body);
        }
    }
    let rows = "select count(*), count(distinct payload_hash), count(distinct inbox_seq) from webhook_deliveries";
    assert_eq!(rig.query(rows).await.concat(), ["14", "14", "14"]);
    rig.drain().await;
    assert_eq!(rig.column("select count(*) from docs").await, "14");
}

/// Has one row of the event `bad` refused: by the inbox, by the payloads or by the deliveries.
const REFUSALS: [&str; 3] = [
    "create trigger refuses before insert on webhook_inbox when new.event_id like '%bad%' begin \
     select raise(abort, 'refused by the test'); end",
    "create trigger refuses before insert on webhook_payloads when cast(new.body as text) like '%bad%' begin \
     select raise(abort, 'refused by the test'); end",
    "create trigger refuses before insert on webhook_deliveries when new.inbox_seq in \
     (select seq from webhook_inbox where event_id like '%bad%') begin \
     select raise(abort, 'refused by the test'); end",
];

#[tokio::test]
async fn a_group_fails_as_a_whole_and_only_itself() {
    for refusal in REFUSALS {
        // Rows are written in the order of their keys: before, between and behind the others of the group.
        for bad in ["a-bad", "e-bad", "z-bad"] {
            fails_as_a_whole(refusal, &update(bad, "bad", 1)).await;
        }
    }
}

async fn fails_as_a_whole(refusal: &str, bad: &str) {
    let rig = Rig::start(&batches()).await;
    admit(&rig, &[update("known", "k", 1)]).await;
    rig.script(refusal).await.unwrap();
    let failing = [
        update("f-1", "f", 1),
        titled("known", "k", 1, "other"),
        bad.to_owned(),
        update("c-1", "c", 1),
        update("known", "k", 1),
    ];
    // The last one carries an event of the failing group, and must not be taken for its duplicate.
    let groups = [
        updates("m", 2),
        failing.to_vec(),
        updates("n", 3),
        vec![failing[0].clone()],
    ];
    let admitted = admit_together(&rig, &groups).await;
    assert!(
        matches!(&admitted[1], Err(Error::Store { .. })),
        "{:?}",
        admitted[1]
    );
    for index in [0, 2, 3] {
        let receipts = admitted[index].as_ref().unwrap();
        let accepted = vec![Outcome::Accepted; groups[index].len()];
        assert_eq!(outcomes(receipts), accepted);
    }
    assert_eq!(
        rig.batches.lens(),
        [1, 1, 2, 3, 1],
        "each on its own after the failure"
    );
    assert_eq!(counts(&rig).await, ["8", "8", "8", "0"]);
    rig.script("drop trigger refuses").await.unwrap();
    let again = [
        Outcome::Duplicate,
        Outcome::InconsistentDuplicate,
        Outcome::Accepted,
        Outcome::Accepted,
        Outcome::Duplicate,
    ];
    assert_eq!(outcomes(&admit(&rig, &failing).await), again);
    assert_eq!(counts(&rig).await, ["10", "10", "13", "1"]);
    rig.drain().await;
    assert_eq!(
        rig.column("select title from docs where entity = 'k'")
            .await,
        "known"
    );
}

#[tokio::test]
async fn a_failing_group_alone_gets_its_error() {
    let rig = Rig::start(&batches()).await;
    rig.script(REFUSALS[0]).await.unwrap();
    let mut bodies = updates("m", 2);
    bodies.push(update("bad", "bad", 1));
    let admitted = rig.engine.admission().admit_all(group(&rig, &bodies)).await;
    let error = sekali::chain(&admitted.unwrap_err());
    assert!(error.contains("refused by the test"), "{error}");
    assert_eq!(counts(&rig).await, ["0", "0", "0", "0"]);
}

#[tokio::test]
async fn twins_in_one_group_meet_as_if_they_came_in_two_requests() {
    let (first, other) = (update("e", "d", 1), titled("e", "d", 1, "other"));
    let bodies = [
        first.clone(),
        first.replace(',', " , "),
        other.clone(),
        update("f", "f", 1),
        first.clone(),
        titled("e", "d", 1, "third"),
        other.clone(),
        first.replace("{", "{\"tenant\":\"t\","),
    ];
    let expected = [
        Outcome::Accepted,
        Outcome::Duplicate,
        Outcome::InconsistentDuplicate,
        Outcome::Accepted,
        Outcome::Duplicate,
        Outcome::InconsistentDuplicate,
        Outcome::InconsistentDuplicate,
        Outcome::Accepted,
    ];
    let (together, apart) = (Rig::start(&batches()).await, Rig::start(&batches()).await);
    let receipts = admit(&together, &bodies).await;
    assert_eq!(outcomes(&receipts), expected);
    let mut one_by_one = Vec::new();
    for body in &bodies {
        one_by_one.extend(admit(&apart, std::slice::from_ref(body)).await);
    }
    assert_eq!(outcomes(&one_by_one), expected);
    assert_eq!(together.batches.lens(), [8]);
    assert_eq!(counts(&together).await, ["3", "3", "8", "2"]);
    for rig in [&together, &apart] {
        let seen = "select seen, cast(body as text) from webhook_variants order by seen desc";
        let seen = rig.query(seen).await.concat();
        assert_eq!([&seen[0], &seen[2]], ["2", "1"]);
        assert!(seen[1].contains("other") && seen[3].contains("third"));
    }
    let of_first = [0, 1, 2, 4, 5, 6].map(|index| receipts[index].seq);
    assert_eq!(of_first, [receipts[0].seq; 6]);
    together.drain().await;
    let title = "select title from docs where entity = 'd'";
    assert_eq!(together.column(title).await, "e");
}

#[tokio::test]
async fn of_twins_in_two_groups_of_one_transaction_the_first_is_stored() {
    let rig = Rig::start(&batches()).await;
    let groups = [
        vec![update("x", "x", 1), titled("e", "d", 1, "first")],
        vec![titled("e", "d", 1, "second"), update("x", "x", 1)],
    ];
    let admitted = admit_together(&rig, &groups).await;
    assert_eq!(rig.batches.lens(), [1, 4]);
    let of = |index: usize| outcomes(admitted[index].as_ref().unwrap());
    assert_eq!(of(0), [Outcome::Accepted; 2]);
    assert_eq!(of(1), [Outcome::InconsistentDuplicate, Outcome::Duplicate]);
    rig.drain().await;
    let title = "select title from docs where entity = 'd'";
    assert_eq!(rig.column(title).await, "first");
}

#[tokio::test]
async fn a_repeated_group_is_all_duplicates() {
    let rig = Rig::start(&batches()).await;
    let (bodies, more) = (updates("e", 5), updates("e", 7));
    let first = admit(&rig, &bodies).await;
    let second = admit(&rig, &bodies).await;
    assert_eq!(outcomes(&second), [Outcome::Duplicate; 5]);
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first.seq, second.seq);
    }
    let grown = outcomes(&admit(&rig, &more).await);
    assert_eq!(grown[..5], [Outcome::Duplicate; 5]);
    assert_eq!(grown[5..], [Outcome::Accepted; 2]);
    assert_eq!(counts(&rig).await, ["7", "7", "17", "0"]);
    rig.drain().await;
    assert_eq!(rig.column("select count(*) from writes").await, "7");
}

#[tokio::test]
async fn a_group_with_more_rows_than_the_limit_goes_alone() {
    let rig = limited(Limits {
        admission_batch_len: 4,
        ..Limits::default()
    })
    .await;
    let lens = [1, 10, 1, 2, 1, 3, 4, 1];
    let named = lens.iter().zip('a'..);
    let groups: Vec<_> = named
        .map(|(len, name)| updates(&name.to_string(), *len))
        .collect();
    let admitted = admit_together(&rig, &groups).await;
    assert_eq!(
        rig.batches.lens(),
        [1, 1, 10, 4, 3, 4, 1],
        "never a part of a group"
    );
    for (len, receipts) in lens.iter().zip(admitted) {
        assert_eq!(outcomes(&receipts.unwrap()), vec![Outcome::Accepted; *len]);
    }
}

#[tokio::test]
async fn a_group_with_more_bytes_than_the_limit_goes_alone() {
    let rig = limited(Limits {
        admission_batch_bytes: 2 * updates("a", 1)[0].len(),
        ..Limits::default()
    })
    .await;
    let groups = [("a", 1), ("b", 1), ("c", 5), ("d", 1), ("e", 2), ("f", 1)];
    let groups = groups.map(|(name, len)| updates(name, len));
    let admitted = admit_together(&rig, &groups).await;
    assert!(admitted.iter().all(Result::is_ok));
    assert_eq!(rig.batches.lens(), [1, 2, 5, 1, 2, 1]);
}

#[tokio::test]
async fn the_queue_counts_groups_and_an_empty_one_does_not_enter_it() {
    let rig = limited(Limits {
        admission_queue_len: 2,
        ..Limits::default()
    })
    .await;
    let admission = rig.engine.admission();
    assert_eq!(admission.admit_all(Vec::new()).await.unwrap(), []);
    let held = rig.hold_writer().await;
    let mut waiting = vec![start(&rig, &updates("plug", 1))];
    settle().await;
    waiting.extend(["a", "b"].map(|name| start(&rig, &updates(name, 5))));
    settle().await;
    let full = admission.admit_all(group(&rig, &updates("c", 1))).await;
    assert!(
        matches!(full, Err(Error::Busy { queue: "admission" })),
        "{full:?}"
    );
    assert_eq!(admission.admit_all(Vec::new()).await.unwrap(), []);
    held.release().await;
    for group in waiting {
        group.await.unwrap().unwrap();
    }
    assert_eq!(rig.batches.lens(), [1, 10]);
    assert_eq!(counts(&rig).await, ["11", "11", "11", "0"]);
}

#[tokio::test]
async fn of_a_late_group_only_what_is_known_is_a_duplicate() {
    let rig = Rig::start(&batches()).await;
    let changed = titled("b", "b", 1, "changed");
    let late = [update("a", "a", 1), changed, update("new", "n", 1)];
    let request = sign(&rig, &late);
    admit(&rig, &[update("a", "a", 1), update("b", "b", 1)]).await;
    rig.advance(300_001);
    let deliveries = rig.deliveries("docs", request).unwrap();
    let receipts = rig.engine.admission().admit_all(deliveries).await.unwrap();
    assert_eq!(
        outcomes(&receipts),
        [Outcome::Duplicate, Outcome::Timestamp, Outcome::Timestamp]
    );
    let expired = |receipt: &Receipt| receipt.reason == Some(Reason::TimestampTooOld);
    assert!(receipts.iter().all(expired), "{receipts:?}");
    assert_eq!(counts(&rig).await, ["2", "2", "5", "0"]);
}
