//! The order of an entity's events, told by the reasons that stand beside them.

use sekali::event::EntityKey;
use sekali::store::ResetEntity;

use super::support::{Rig, docs, titled, update};

fn standing(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// Sends bodies one by one, each applied before the next.
async fn in_order(rig: &Rig, bodies: &[String]) {
    for body in bodies {
        rig.accept("docs", body.clone()).await;
        rig.drain().await;
    }
}

fn deleted(id: &str, version: i64) -> String {
    format!(r#"{{"id":"{id}","type":"doc.deleted","entity":"d","version":{version}}}"#)
}

fn timed(id: &str, version: i64, at: &str) -> String {
    format!(r#"{{"id":"{id}","type":"doc.updated","entity":"d","version":{version},"at":"{at}"}}"#)
}

fn hashed(id: &str, hash: &str) -> String {
    format!(r#"{{"id":"{id}","type":"doc.updated","entity":"d","version":1,"hash":"{hash}"}}"#)
}

#[tokio::test]
async fn a_duplicate_is_applied_once() {
    let rig = Rig::start(&docs("")).await;
    rig.accept("docs", update("a", "d", 1)).await;
    for _ in 0..20 {
        assert_eq!(
            rig.send("docs", update("a", "d", 1)).await,
            sekali::Outcome::Duplicate
        );
    }
    rig.drain().await;
    assert_eq!(rig.column("select event from writes").await, "a");
    let story = rig.story("a").await;
    assert_eq!((story.attempts.len(), story.deliveries.len()), (1, 21));
    assert_eq!(story.attempts[0].decisions[0]["decision"], "applied");
}

#[tokio::test]
async fn an_older_version_is_skipped_and_says_why() {
    let rig = Rig::start(&docs("")).await;
    in_order(&rig, &[update("b", "d", 2), update("a", "d", 1)]).await;
    assert_eq!(
        rig.standing("a").await,
        standing("ignored_out_of_order", "older_version")
    );
    let decision = &rig.story("a").await.attempts[0].decisions[0];
    assert_eq!(
        (&decision["decision"], &decision["reason"]),
        (&"skipped".into(), &"older_version".into())
    );
    assert_eq!(rig.column("select event from writes").await, "b");
}

#[tokio::test]
async fn a_tombstone_stops_what_is_older_and_lets_the_newer_through() {
    let rig = Rig::start(&docs("")).await;
    in_order(
        &rig,
        &[update("a", "d", 1), deleted("c", 3), update("b", "d", 2)],
    )
    .await;
    assert_eq!(rig.column("select count(*) from docs").await, "0");
    assert_eq!(
        rig.column("select deleted from webhook_entities").await,
        "1"
    );
    in_order(&rig, &[update("e", "d", 4)]).await;
    assert_eq!(rig.column("select event from docs").await, "e");
    assert_eq!(
        rig.column("select deleted from webhook_entities").await,
        "0"
    );
}

#[tokio::test]
async fn a_delete_that_comes_first_stops_the_update_before_it() {
    let rig = Rig::start(&docs("")).await;
    in_order(&rig, &[deleted("b", 2), update("a", "d", 1)]).await;
    assert_eq!(rig.standing("b").await, standing("processed", ""));
    assert_eq!(rig.column("select count(*) from docs").await, "0");
}

#[tokio::test]
async fn a_version_that_repeats_with_other_content_is_flagged_whichever_comes_first() {
    for (first, second) in [("a", "b"), ("b", "a")] {
        let rig = Rig::start(&docs("")).await;
        in_order(&rig, &[hashed(first, first), hashed(second, second)]).await;
        assert_eq!(rig.standing(first).await, standing("processed", ""));
        assert_eq!(
            rig.standing(second).await,
            standing("ignored_out_of_order", "version_conflict")
        );
        assert_eq!(rig.column("select event from docs").await, first);
    }
}

#[tokio::test]
async fn content_hashes_are_compared_as_bytes() {
    for (first, second) in [("aB", "Ab"), ("x", "x "), ("e", "\u{e9}")] {
        let rig = Rig::start(&docs("")).await;
        in_order(&rig, &[hashed("1", first), hashed("2", second)]).await;
        assert_eq!(
            rig.standing("2").await,
            standing("ignored_out_of_order", "version_conflict"),
            "{first:?} and {second:?}"
        );
        assert_eq!(rig.event("2").await.content_hash.as_deref(), Some(second));
    }
}

#[tokio::test]
async fn a_conflict_is_found_behind_newer_versions_too() {
    let rig = Rig::start(&docs("")).await;
    in_order(
        &rig,
        &[hashed("a", "x"), update("c", "d", 2), hashed("b", "y")],
    )
    .await;
    assert_eq!(
        rig.standing("b").await,
        standing("ignored_out_of_order", "version_conflict")
    );
}

#[tokio::test]
async fn a_version_that_repeats_with_the_same_content_is_no_conflict() {
    let rig = Rig::start(&docs("")).await;
    in_order(&rig, &[hashed("a", "same"), hashed("b", "same")]).await;
    assert_eq!(
        rig.standing("b").await,
        standing("ignored_out_of_order", "equal_version")
    );
}

#[tokio::test]
async fn without_a_content_hash_the_fingerprint_tells_a_conflict() {
    let rig = Rig::start(&docs("volatile = [\"/id\", \"/sent\"]")).await;
    in_order(
        &rig,
        &[
            titled("a", "d", 1, "x"),
            titled("b", "d", 1, "x"),
            titled("c", "d", 1, "y"),
        ],
    )
    .await;
    assert_eq!(
        rig.standing("b").await,
        standing("ignored_out_of_order", "equal_version")
    );
    assert_eq!(
        rig.standing("c").await,
        standing("ignored_out_of_order", "version_conflict")
    );
}

#[tokio::test]
async fn a_lower_version_with_a_later_time_is_flagged() {
    let rig = Rig::start(&docs("")).await;
    let (early, late) = ("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z");
    in_order(
        &rig,
        &[
            timed("a", 5, early),
            timed("b", 3, late),
            timed("c", 2, early),
        ],
    )
    .await;
    assert_eq!(
        rig.standing("b").await,
        standing("ignored_out_of_order", "version_regressed")
    );
    assert_eq!(
        rig.standing("c").await,
        standing("ignored_out_of_order", "older_version")
    );
}

#[tokio::test]
async fn an_unversioned_event_does_not_move_a_versioned_entity() {
    let rig = Rig::start(&docs("")).await;
    let unversioned = r#"{"id":"b","type":"doc.updated","entity":"d","at":"2026-11-30T00:00:00Z"}"#;
    in_order(&rig, &[update("a", "d", 1), unversioned.to_owned()]).await;
    assert_eq!(
        rig.standing("b").await,
        standing("ignored_out_of_order", "unversioned")
    );
}

#[tokio::test]
async fn a_reset_entity_takes_a_lower_version_over_the_guard_of_its_row() {
    let rig = Rig::start(&docs("")).await;
    in_order(&rig, &[update("a", "d", 5)]).await;
    let entity = EntityKey {
        source: "docs".into(),
        scope: String::new(),
        entity_type: String::new(),
        entity_id: "d".into(),
    };
    rig.engine
        .store()
        .write(ResetEntity { entity })
        .await
        .unwrap();
    in_order(
        &rig,
        &[
            update("b", "d", 1),
            update("c", "d", 2),
            update("z", "d", 1),
        ],
    )
    .await;
    assert_eq!(
        rig.column("select event from writes order by n").await,
        "a b c"
    );
    assert_eq!(rig.standing("z").await.0, "ignored_out_of_order");
    let last = rig.story("a").await.attempts.pop().unwrap();
    assert_eq!(
        (last.attempt, last.reason.as_deref()),
        (0, Some("entity_reset"))
    );
}

#[tokio::test]
async fn a_row_that_somebody_else_raised_is_not_touched() {
    let rig = Rig::start(&docs("")).await;
    in_order(&rig, &[update("a", "d", 1)]).await;
    rig.script("update docs set version = 99, title = 'theirs'")
        .await
        .unwrap();
    in_order(&rig, &[update("b", "d", 2), deleted("c", 3)]).await;
    assert_eq!(
        rig.standing("b").await,
        standing("dead_letter", "write_guard")
    );
    assert_eq!(
        rig.standing("c").await,
        standing("dead_letter", "write_guard")
    );
    assert_eq!(rig.column("select title from docs").await, "theirs");
    assert_eq!(
        rig.column("select version from webhook_entities").await,
        "1"
    );
}

#[tokio::test]
async fn a_stale_event_has_the_effects_that_do_not_follow_the_order() {
    let log = "[[source.effect]]\nkind = \"upsert\"\ntable = \"seen\"\nkey = { event = \"event:id\" }\norder = \"none\"\n";
    let options = super::support::Options {
        setup: "create table docs (entity text primary key, version bigint, title text, event text); \
            create table seen (event text primary key);",
        ..super::support::Options::default()
    };
    let text = format!("{}{log}", docs(""));
    let rig = Rig::with(super::support::sources(&text), options).await;
    in_order(&rig, &[update("b", "d", 2), update("a", "d", 1)]).await;
    assert_eq!(rig.column("select event from seen order by 1").await, "a b");
    assert_eq!(rig.column("select event from docs").await, "b");
    assert_eq!(
        rig.standing("a").await,
        standing("processed", "older_version")
    );
    let decisions = &rig.story("a").await.attempts[0].decisions;
    assert_eq!(
        (&decisions[0]["decision"], &decisions[1]["stale"]),
        (&"skipped".into(), &true.into())
    );
    assert_eq!(
        rig.column("select last_event_id from webhook_entities")
            .await,
        "b"
    );
}
