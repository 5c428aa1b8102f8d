//! What operators do: redrive, replay, erase, prune, accept a variant, retire a source, and start only once.

use sekali::event::Delivery;
use sekali::store::{AcceptVariant, Cursor, Erase, Prune, Pruned, Redrive, Retention};
use sekali::{Error, Outcome, Result};

use super::support::{Options, Rig, docs, source, sources, titled, update};

async fn redrive(rig: &Rig, id: &str, force: bool) -> Result<usize> {
    let seqs = vec![rig.event(id).await.seq];
    rig.engine.store().write(Redrive { seqs, force }).await
}

pub(super) fn conflict<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(Error::Conflict { problem }) => problem,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_dead_letter_is_redriven_once_its_cause_is_gone() {
    let rig = Rig::start(&docs("retry = { max_attempts = 1 }")).await;
    rig.script("alter table docs rename to hidden")
        .await
        .unwrap();
    rig.accept("docs", update("e", "d", 1)).await;
    rig.settled("e", "dead_letter").await;
    rig.script("alter table hidden rename to docs")
        .await
        .unwrap();
    assert_eq!(redrive(&rig, "e", false).await.unwrap(), 1);
    rig.engine.wake();
    assert_eq!(rig.settled("e", "processed").await.attempts, 1);
    let attempts = rig.story("e").await.attempts;
    let reasons: Vec<_> = attempts.iter().map(|row| row.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("effect_failed"), Some("redriven"), None]);
    assert_eq!(rig.column("select event from writes").await, "e");
}

#[tokio::test]
async fn a_finished_event_is_applied_again_only_by_force() {
    let rig = Rig::start(&docs("")).await;
    rig.accept("docs", update("e", "d", 1)).await;
    rig.drain().await;
    assert!(conflict(redrive(&rig, "e", false).await).contains("is finished"));
    assert_eq!(redrive(&rig, "e", true).await.unwrap(), 1);
    rig.engine.wake();
    rig.drain().await;
    assert_eq!(
        rig.event("e").await.status,
        "ignored_out_of_order",
        "it stands where its entity stands"
    );
}

#[tokio::test]
async fn a_replay_of_an_old_event_meets_the_gate() {
    let rig = Rig::start(&docs("")).await;
    for version in 1..=3 {
        rig.accept("docs", update(&format!("v{version}"), "d", version))
            .await;
        rig.drain().await;
    }
    redrive(&rig, "v1", true).await.unwrap();
    rig.engine.wake();
    rig.drain().await;
    assert_eq!(
        rig.standing("v1").await,
        ("ignored_out_of_order".into(), "older_version".into())
    );
    assert_eq!(rig.column("select event from docs").await, "v3");
    assert_eq!(rig.column("select count(*) from writes").await, "3");
}

#[tokio::test]
async fn an_event_that_is_on_its_way_is_not_redriven() {
    let rig = Rig::start(&docs("unusable = \"store\"")).await;
    rig.accept(
        "docs",
        r#"{"id":"e","type":"doc.updated","entity":"d","at":"2026-12-01T10:00:00Z"}"#,
    )
    .await;
    for force in [false, true] {
        assert!(conflict(redrive(&rig, "e", force).await).contains("on its way"));
    }
}

#[tokio::test]
async fn erasing_removes_the_content_and_keeps_the_key() {
    let rig = Rig::start(&docs("")).await;
    let seq = rig.accept("docs", titled("e", "d", 1, "private")).await;
    assert_eq!(
        rig.send("docs", titled("e", "d", 1, "private too")).await,
        Outcome::InconsistentDuplicate
    );
    rig.drain().await;
    rig.engine.store().write(Erase { seq }).await.unwrap();
    assert_eq!(
        rig.standing("e").await,
        ("erased".into(), "erased_by_operator".into())
    );
    let story = rig.story("e").await;
    assert_eq!((story.body, &story.variants[0].body), (None, &None));
    assert_eq!(
        rig.send("docs", titled("e", "d", 1, "private")).await,
        Outcome::Duplicate
    );
    for force in [false, true] {
        assert!(conflict(redrive(&rig, "e", force).await).contains("erased"));
    }
    assert_eq!(
        rig.column("select count(*) from webhook_payloads").await,
        "0"
    );
    assert_eq!(rig.column("select count(*) from webhook_inbox").await, "1");
}

#[tokio::test]
async fn what_is_left_of_an_erased_event_goes_with_its_key() {
    let rig = Rig::start(&docs("")).await;
    let seq = rig.accept("docs", update("e", "d", 1)).await;
    rig.send("docs", titled("e", "d", 1, "other")).await;
    rig.drain().await;
    rig.engine.store().write(Erase { seq }).await.unwrap();
    rig.clock.advance(10_000);
    let prune = |keys_ms| Prune {
        retention: Retention {
            payloads_ms: Some(5_000),
            audit_ms: None,
            keys_ms,
        },
        batch_len: 100,
        from: Cursor::default(),
    };
    let store = rig.engine.store();
    let (pruned, _) = store.write(prune(None)).await.unwrap();
    assert_eq!(pruned, Pruned::default());
    let (pruned, _) = store.write(prune(Some(6_000))).await.unwrap();
    assert_eq!((pruned.keys, pruned.variants), (1, 1));
    for table in ["webhook_inbox", "webhook_positions", "webhook_variants"] {
        let left = rig.column(&format!("select count(*) from {table}")).await;
        assert_eq!(left, "0", "{table}");
    }
}

#[tokio::test]
async fn pruning_payloads_makes_no_event_new_again() {
    let rig = Rig::start(&docs("")).await;
    rig.script("create trigger poison before insert on docs when new.title = 'poison' begin select raise(abort, 'x'); end")
        .await
        .unwrap();
    rig.accept("docs", update("old", "d", 1)).await;
    rig.accept("docs", titled("dead", "x", 1, "poison")).await;
    rig.drain().await;
    rig.advance(10_000);
    rig.accept("docs", update("young", "d", 2)).await;
    rig.drain().await;
    let retention = Retention {
        payloads_ms: Some(5_000),
        audit_ms: Some(1_000_000),
        keys_ms: Some(1_000_000),
    };
    let prune = Prune {
        retention,
        batch_len: 100,
        from: Cursor::default(),
    };
    let (pruned, next) = rig.engine.store().write(prune).await.unwrap();
    assert!(next.is_done(), "young rows do not end the walk");
    assert_eq!(
        pruned,
        Pruned {
            payloads: 1,
            ..Pruned::default()
        }
    );
    let kept = "select event_id from webhook_payloads join webhook_inbox using (seq) order by 1";
    assert_eq!(rig.column(kept).await, "dead young");
    assert_eq!(
        rig.send("docs", update("old", "d", 1)).await,
        Outcome::Duplicate
    );
    assert_eq!(
        rig.send("docs", update("old", "d", 1).replace(',', ", "))
            .await,
        Outcome::Duplicate
    );
    assert_eq!(
        rig.send("docs", titled("old", "d", 1, "z")).await,
        Outcome::InconsistentDuplicate
    );
    assert!(conflict(redrive(&rig, "old", true).await).contains("is gone"));
    rig.drain().await;
    assert_eq!(rig.column("select count(*) from writes").await, "2");
}

#[tokio::test]
async fn an_accepted_variant_is_an_event_of_its_own_and_wins_over_its_equal() {
    let rig = Rig::start(&docs("")).await;
    rig.accept("docs", titled("e", "d", 1, "first")).await;
    let other = titled("e", "d", 1, "second");
    assert_eq!(
        rig.send("docs", other.clone()).await,
        Outcome::InconsistentDuplicate
    );
    rig.drain().await;
    let variant = rig.story("e").await.variants.remove(0);
    let name = format!("e#{}", &variant.payload_hash[..16]);
    let accept = || {
        let mut delivery: Delivery = rig
            .delivery("docs", rig.sign("docs", other.clone()))
            .unwrap();
        delivery.event.event_id = name.clone();
        delivery.event.position.event_id = name.clone();
        AcceptVariant {
            id: variant.id,
            event: Box::new(delivery),
        }
    };
    rig.engine.store().write(accept()).await.unwrap();
    rig.engine.wake();
    rig.settled(&name, "processed").await;
    assert_eq!(rig.column("select title from docs").await, "second");
    assert!(conflict(rig.engine.store().write(accept()).await).contains("accepted before"));
}

#[tokio::test]
async fn a_source_with_pending_events_is_missed_at_start_unless_it_is_retired() {
    let rig = Rig::start(&docs("unusable = \"store\"")).await;
    rig.accept(
        "docs",
        r#"{"id":"e","type":"doc.updated","entity":"d","at":"2026-12-01T10:00:00Z"}"#,
    )
    .await;
    let rig = rig
        .restart(sources(&source("other", "")), &["docs"])
        .await
        .unwrap();
    rig.advance(36_000_000);
    rig.drain().await;
    assert_eq!(
        rig.standing("e").await,
        ("dead_letter".into(), "source_retired".into())
    );
    let rig = rig.restart(sources(&source("third", "")), &[]).await;
    assert!(rig.is_ok(), "nothing is pending any more");
}

#[tokio::test]
async fn a_start_without_a_source_that_has_pending_events_is_refused() {
    let rig = Rig::start(&docs("unusable = \"store\"")).await;
    rig.accept(
        "docs",
        r#"{"id":"e","type":"doc.updated","entity":"d","at":"2026-12-01T10:00:00Z"}"#,
    )
    .await;
    let refused = rig
        .restart(sources(&source("other", "")), &[])
        .await
        .err()
        .unwrap();
    assert!(
        matches!(&refused, Error::Config { problem, .. } if problem.contains("docs")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_start_with_an_effect_that_the_schema_lacks_is_refused() {
    let rig = Rig::start(&docs("")).await;
    let wrong = docs("").replace("title = {", "subject = {");
    let refused = rig.restart(sources(&wrong), &[]).await.err().unwrap();
    assert!(
        matches!(&refused, Error::Config { problem, .. } if problem.contains("subject")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_process_that_only_receives_needs_no_table_of_the_user() {
    let options = Options {
        setup: "",
        workers: 0,
        ..Options::default()
    };
    let rig = Rig::with(sources(&docs("")), options).await;
    rig.accept("docs", update("e", "d", 1)).await;
    assert_eq!(rig.event("e").await.status, "received");
}

#[tokio::test]
async fn a_walk_goes_past_what_must_stay_and_ends_at_what_is_young() {
    let rig = Rig::start(&docs("")).await;
    rig.script("create trigger refuse before insert on docs when new.entity like 'bad%' begin select raise(abort, 'no'); end")
        .await
        .unwrap();
    for number in 0..5 {
        rig.accept(
            "docs",
            update(&format!("bad{number}"), &format!("bad{number}"), 1),
        )
        .await;
    }
    for number in 0..5 {
        rig.accept(
            "docs",
            update(&format!("old{number}"), &format!("d{number}"), 1),
        )
        .await;
    }
    rig.drain().await;
    rig.clock.advance(10_000);
    rig.accept("docs", update("young", "y", 1)).await;
    rig.drain().await;
    let retention = Retention {
        payloads_ms: Some(5_000),
        audit_ms: Some(5_000),
        keys_ms: Some(8_000),
    };
    let (mut from, mut all) = (Cursor::default(), Pruned::default());
    while !from.is_done() {
        let (pruned, next) = rig
            .engine
            .store()
            .write(Prune {
                retention,
                batch_len: 2,
                from,
            })
            .await
            .unwrap();
        all.add(pruned);
        from = next;
    }
    assert_eq!((all.payloads, all.deliveries), (5, 10), "{all:?}");
    let left = rig
        .column("select event_id from webhook_inbox order by seq")
        .await;
    assert_eq!(left, "bad0 bad1 bad2 bad3 bad4 young");
    assert_eq!(
        rig.column("select count(*) from webhook_positions").await,
        "6"
    );
}
