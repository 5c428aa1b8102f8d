//! Leases: work of a process that died is taken over, and work under a lost lease is not kept.

use super::support::{Rig, START_MS, docs, sources, update};

/// Makes the held event `e` look as if a worker that is gone had claimed it, until 30 s from now.
pub(super) async fn claim_by_a_dead_worker(rig: &Rig) {
    rig.accept(
        "docs",
        r#"{"id":"e","type":"doc.updated","entity":"d","at":"2026-12-01T10:00:00Z"}"#,
    )
    .await;
    let until = START_MS + 30_000;
    let sql = format!(
        "update webhook_inbox set processing_status = 'processing', lease_token = 'dead', attempts = 1, \
         status_reason = null, lease_until = {until}, next_attempt_at = {until} where event_id = 'e'"
    );
    rig.script(&sql).await.unwrap();
}

#[tokio::test]
async fn a_lease_that_ran_out_is_taken_over_and_counted() {
    let rig = Rig::start(&docs("unusable = \"store\"")).await;
    claim_by_a_dead_worker(&rig).await;
    rig.advance(29_999);
    rig.accept("docs", update("mark", "m", 1)).await;
    rig.settled("mark", "processed").await;
    assert_eq!(
        rig.event("e").await.status,
        "processing",
        "the lease still holds"
    );
    rig.advance(1);
    assert_eq!(rig.settled("e", "processed").await.attempts, 2);
    let attempts = rig.story("e").await.attempts;
    let rows: Vec<_> = attempts
        .iter()
        .map(|row| (row.attempt, row.status.as_str(), row.reason.as_deref()))
        .collect();
    assert_eq!(
        rows,
        [(1, "failed", Some("lease_expired")), (2, "processed", None)]
    );
    assert_eq!(
        rig.column("select count(*) from writes where event = 'e'")
            .await,
        "1"
    );
}

#[tokio::test]
async fn an_event_whose_workers_always_die_is_given_up() {
    let settings = docs("unusable = \"store\"\nretry = { max_attempts = 1 }");
    let rig = Rig::start(&settings).await;
    claim_by_a_dead_worker(&rig).await;
    rig.advance(30_000);
    let dead = rig.settled("e", "dead_letter").await;
    assert_eq!(dead.reason.as_deref(), Some("attempts_exhausted"));
    assert_eq!(rig.column("select count(*) from docs").await, "0");
}

#[tokio::test]
async fn a_holder_whose_lease_was_taken_over_commits_nothing() {
    let rig = Rig::start(&docs("")).await;
    rig.script(
        "create trigger steals after insert on docs when new.entity = 'stolen' begin \
         update webhook_inbox set lease_token = 'other' where event_id = new.event; end",
    )
    .await
    .unwrap();
    // MariaDB does not find the table in a statement that was prepared before the trigger was made.
    let rig = rig.restart(sources(&docs("")), &[]).await.unwrap();
    let bodies = (0..10).map(|n| update(&format!("e-{n}"), &format!("d-{n}"), 1));
    for body in bodies.chain([update("s", "stolen", 1), update("after", "after", 1)]) {
        rig.accept("docs", body).await;
    }
    rig.settled("after", "processed").await;
    assert_eq!(rig.column("select count(*) from writes").await, "11");
    let stolen = rig.event("s").await;
    assert_eq!(
        (stolen.status.as_str(), stolen.attempts),
        ("processing", 1),
        "{stolen:?}"
    );
    assert_eq!(
        rig.column("select count(*) from docs where entity = 'stolen'")
            .await,
        "0"
    );
    assert_eq!(
        rig.column("select last_event_id from webhook_entities where entity_id = 'stolen'")
            .await,
        ""
    );
    rig.script("drop trigger steals").await.unwrap();
    rig.advance(31_000);
    assert_eq!(rig.settled("s", "processed").await.attempts, 2);
    assert_eq!(
        rig.column("select event from writes where entity = 'stolen'")
            .await,
        "s"
    );
}
