//! Sources whose versions follow each other: n + 1 waits for n, is woken by it, and does not wait for ever.

use super::support::{Rig, START_MS, docs, titled, update};

const FROM_ONE: &str = "order = { contiguous = true, gap_wait = \"60s\", first_version = 1 }";
const FROM_ANY: &str = "order = { contiguous = true, gap_wait = \"60s\" }";

async fn waits(rig: &Rig, id: &str) {
    rig.until(&format!("{id} waits"), async || {
        rig.standing(id).await == ("received".to_owned(), "waiting_for_version".to_owned())
    })
    .await;
}

async fn writes(rig: &Rig) -> String {
    rig.column("select event from writes order by n").await
}

#[tokio::test]
async fn versions_are_applied_in_turn_and_waiting_costs_no_attempt() {
    let rig = Rig::start(&docs(FROM_ONE)).await;
    for version in [4, 2, 3] {
        let id = format!("v{version}");
        rig.accept("docs", update(&id, "d", version)).await;
        waits(&rig, &id).await;
        assert_eq!(rig.event(&id).await.attempts, 0);
    }
    assert_eq!(writes(&rig).await, "");
    rig.accept("docs", update("v1", "d", 1)).await;
    rig.drain().await;
    assert_eq!(writes(&rig).await, "v1 v2 v3 v4");
    for id in ["v1", "v2", "v3", "v4"] {
        assert_eq!(rig.event(id).await.attempts, 1, "{id}");
        assert_eq!(rig.standing(id).await, ("processed".into(), String::new()));
    }
    let waited = rig.story("v2").await.attempts;
    let reasons: Vec<_> = waited.iter().map(|row| row.reason.as_deref()).collect();
    assert_eq!(
        reasons,
        [Some("waiting_for_version"), None],
        "one row however often it was looked at"
    );
}

#[tokio::test]
async fn other_entities_do_not_wait() {
    let rig = Rig::start(&docs(FROM_ONE)).await;
    rig.accept("docs", update("late", "a", 2)).await;
    rig.accept("docs", update("good", "b", 1)).await;
    rig.settled("good", "processed").await;
    waits(&rig, "late").await;
}

#[tokio::test]
async fn a_gap_that_is_not_filled_in_time_is_passed() {
    let rig = Rig::start(&docs(FROM_ONE)).await;
    rig.accept("docs", update("v1", "d", 1)).await;
    rig.accept("docs", update("v3", "d", 3)).await;
    waits(&rig, "v3").await;
    assert_eq!(
        rig.event("v3").await.next_attempt_at,
        Some(START_MS + 60_000)
    );
    rig.advance(59_999);
    rig.accept("docs", update("mark", "m", 1)).await;
    rig.settled("mark", "processed").await;
    waits(&rig, "v3").await;
    rig.advance(1);
    assert_eq!(
        rig.settled("v3", "processed").await.reason.as_deref(),
        Some("gap_timed_out")
    );
    rig.accept("docs", update("v2", "d", 2)).await;
    rig.drain().await;
    assert_eq!(
        rig.standing("v2").await,
        ("ignored_out_of_order".into(), "older_version".into())
    );
    rig.accept("docs", update("v4", "d", 4)).await;
    rig.drain().await;
    assert_eq!(
        rig.standing("v4").await,
        ("processed".into(), String::new())
    );
}

#[tokio::test]
async fn a_version_that_was_given_up_counts_as_passed() {
    let rig = Rig::start(&docs(FROM_ONE)).await;
    rig.script(
        "create trigger poison before update on docs when new.title = 'poison' begin \
         select raise(abort, 'refused'); end",
    )
    .await
    .unwrap();
    rig.accept("docs", update("v1", "d", 1)).await;
    rig.accept("docs", update("v3", "d", 3)).await;
    waits(&rig, "v3").await;
    rig.accept("docs", titled("v2", "d", 2, "poison")).await;
    rig.drain().await;
    assert_eq!(
        rig.standing("v2").await,
        ("dead_letter".into(), "constraint".into())
    );
    assert_eq!(
        rig.standing("v3").await,
        ("processed".into(), String::new())
    );
    assert_eq!(writes(&rig).await, "v1 v3");
}

#[tokio::test]
async fn a_failed_version_holds_its_followers_until_it_recovers() {
    let rig = Rig::start(&docs(&format!("{FROM_ONE}\nretry = {{ base = \"1s\" }}"))).await;
    rig.script("alter table docs rename to hidden")
        .await
        .unwrap();
    rig.accept("docs", update("v1", "d", 1)).await;
    rig.settled("v1", "failed").await;
    rig.accept("docs", update("v2", "d", 2)).await;
    waits(&rig, "v2").await;
    rig.script("alter table hidden rename to docs")
        .await
        .unwrap();
    rig.advance(1000);
    rig.drain().await;
    assert_eq!(writes(&rig).await, "v1 v2");
}

#[tokio::test]
async fn without_a_first_version_the_lowest_that_came_in_time_is_the_base() {
    let rig = Rig::start(&docs(FROM_ANY)).await;
    for version in [7, 5, 6] {
        let id = format!("v{version}");
        rig.accept("docs", update(&id, "d", version)).await;
        waits(&rig, &id).await;
    }
    assert_eq!(writes(&rig).await, "");
    rig.advance(60_000);
    rig.drain().await;
    assert_eq!(writes(&rig).await, "v5 v6 v7");
    rig.accept("docs", update("v8", "d", 8)).await;
    rig.drain().await;
    assert_eq!(
        rig.standing("v8").await,
        ("processed".into(), String::new())
    );
}

#[tokio::test]
async fn versions_behind_a_gap_that_timed_out_keep_their_order() {
    let rig = Rig::start(&docs(FROM_ONE)).await;
    for (version, later) in [(5, 10_000), (3, 10_000), (4, 40_000)] {
        let id = format!("v{version}");
        rig.accept("docs", update(&id, "d", version)).await;
        waits(&rig, &id).await;
        rig.advance(later);
    }
    rig.drain().await;
    assert_eq!(writes(&rig).await, "v3 v4 v5");
    assert_eq!(
        rig.event("v3").await.reason.as_deref(),
        Some("gap_timed_out")
    );
    assert_eq!(rig.event("v5").await.attempts, 1);
}
