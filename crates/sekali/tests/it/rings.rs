//! Handshakes and rejected requests: the newest of each source are kept, and none longer than the audit trail.

use sekali::Reason;
use sekali::store::{
    Cursor, FindRejected, HandshakeOutcome, KeepRejected, ListHandshakes, ListRejected,
    NoteHandshake, Prune, Pruned, Retention,
};
use sekali_verify::Secret;

use super::support::{Rig, START_MS, docs};

fn handshake(source: &str, at_ms: i64) -> NoteHandshake {
    NoteHandshake {
        source: source.into(),
        at_ms,
        kind: "challenge".into(),
        outcome: HandshakeOutcome::Answered,
        remote_address: Some("192.0.2.1".into()),
        detail: None,
        secret: None,
    }
}

async fn note(rig: &Rig, handshake: NoteHandshake) {
    rig.engine.store().write(handshake).await.unwrap();
}

fn listing(source: Option<&str>) -> ListHandshakes {
    ListHandshakes {
        source: source.map(Into::into),
        limit: 100,
    }
}

#[tokio::test]
async fn a_thousand_handshakes_of_a_source_are_kept() {
    let rig = Rig::start(&docs("")).await;
    note(&rig, handshake("other", 1)).await;
    rig.script(
        "insert into webhook_handshakes (source, at_ms, kind, outcome) \
         with recursive n(at) as (select 1 union all select at + 1 from n where at < 999) \
         select 'docs', at, 'challenge', 'answered' from n",
    )
    .await
    .unwrap();
    let kept = "select source, count(*), min(at_ms), max(at_ms) from webhook_handshakes group by source order by source";
    for (at_ms, oldest) in [(1000, "1"), (1001, "2"), (1002, "3")] {
        note(&rig, handshake("docs", at_ms)).await;
        let newest = at_ms.to_string();
        assert_eq!(
            rig.query(kept).await,
            [["docs", "1000", oldest, &newest], ["other", "1", "1", "1"]]
        );
    }
}

#[tokio::test]
async fn handshakes_are_listed_newest_first() {
    let rig = Rig::start(&docs("")).await;
    for (source, at_ms) in [("a", 1), ("b", 2), ("a", 3), ("a", 4)] {
        note(&rig, handshake(source, at_ms)).await;
    }
    let times = async |list: ListHandshakes| {
        let rows = rig.engine.store().read(list).await.unwrap();
        rows.iter().map(|row| row.at_ms).collect::<Vec<_>>()
    };
    assert_eq!(times(listing(None)).await, [4, 3, 2, 1]);
    assert_eq!(times(listing(Some("a"))).await, [4, 3, 1]);
    assert_eq!(times(listing(Some("c"))).await, [0; 0]);
    let newest = ListHandshakes {
        limit: 2,
        ..listing(None)
    };
    assert_eq!(times(newest).await, [4, 3]);
    let row = &rig.engine.store().read(listing(Some("b"))).await.unwrap()[0];
    let (kind, outcome) = (row.kind.as_str(), row.outcome.as_str());
    assert_eq!((kind, outcome), ("challenge", "answered"));
    assert_eq!(row.remote_address.as_deref(), Some("192.0.2.1"));
}

#[tokio::test]
async fn a_secret_is_read_and_never_printed() {
    let rig = Rig::start(&docs("")).await;
    let shown = NoteHandshake {
        secret: Some(Secret::of_any_length(b"tok-123")),
        ..handshake("docs", 1)
    };
    assert!(!format!("{shown:?}").contains("tok-123"));
    note(&rig, shown).await;
    let rows = rig.engine.store().read(listing(None)).await.unwrap();
    assert_eq!(rows[0].secret.as_ref().unwrap().reveal(), b"tok-123");
    assert!(!format!("{rows:?}").contains("tok-123"));
    assert!(!serde_json::to_string(&rows).unwrap().contains("tok-123"));
}

#[tokio::test]
async fn what_a_handshake_brings_has_a_bound() {
    let rig = Rig::start(&docs("")).await;
    for (at_ms, len) in [(1, 2048), (2, 2049)] {
        let bounded = NoteHandshake {
            detail: Some(format!("x{}", "\u{e9}".repeat(len))),
            secret: Some(Secret::of_any_length(&vec![b's'; len])),
            ..handshake("docs", at_ms)
        };
        note(&rig, bounded).await;
    }
    let lens = "select octet_length(detail), length(secret) from webhook_handshakes order by id";
    let rows = rig.query(lens).await;
    assert_eq!(rows[0], ["2047", "2048"], "cut between characters");
    assert_eq!(rows[1], ["2047", "-"], "a part of a secret is of no use");
}

fn rejected(source: &str, number: i64, keep: u32) -> KeepRejected {
    KeepRejected {
        source: source.into(),
        at_ms: START_MS + number,
        reason: Reason::SignatureWrong,
        method: "POST".into(),
        url: format!("https://hooks.example/{source}?n={number}"),
        headers: r#"[["content-type","text/plain"]]"#.into(),
        body: vec![0, 159, 146, number.try_into().unwrap()].into(),
        keep,
    }
}

async fn keep(rig: &Rig, requests: impl IntoIterator<Item = KeepRejected>) {
    for request in requests {
        rig.engine.store().write(request).await.unwrap();
    }
}

/// The numbers of the rejected requests that are listed.
async fn listed(rig: &Rig, source: Option<&str>) -> Vec<i64> {
    let list = ListRejected {
        source: source.map(Into::into),
        limit: 100,
    };
    let rows = rig.engine.store().read(list).await.unwrap();
    rows.iter().map(|row| row.at_ms - START_MS).collect()
}

#[tokio::test]
async fn the_newest_rejected_requests_of_a_source_are_kept() {
    let rig = Rig::start(&docs("")).await;
    keep(&rig, [rejected("other", 0, 3)]).await;
    keep(&rig, (1..=7).map(|number| rejected("docs", number, 3))).await;
    keep(&rig, [rejected("other", 8, 3)]).await;
    assert_eq!(listed(&rig, None).await, [8, 7, 6, 5, 0]);
    assert_eq!(listed(&rig, Some("docs")).await, [7, 6, 5]);
    keep(&rig, [rejected("docs", 9, 1)]).await;
    assert_eq!(
        listed(&rig, None).await,
        [9, 8, 0],
        "a lower bound counts at once"
    );
    keep(&rig, [rejected("docs", 10, 0)]).await;
    assert_eq!(listed(&rig, None).await, [8, 0]);
}

#[tokio::test]
async fn a_rejected_request_is_found_as_it_came() {
    let rig = Rig::start(&docs("")).await;
    keep(&rig, (1..=2).map(|number| rejected("docs", number, 5))).await;
    let list = ListRejected {
        source: None,
        limit: 1,
    };
    let row = rig.engine.store().read(list).await.unwrap().remove(0);
    assert_eq!(row.at_ms, START_MS + 2);
    let find = FindRejected { id: row.id };
    let found = rig.engine.store().read(find).await.unwrap().unwrap();
    assert_eq!(found.url, "https://hooks.example/docs?n=2");
    let (method, reason) = (found.method.as_str(), found.reason.as_str());
    assert_eq!((method, reason), ("POST", "signature_wrong"));
    assert_eq!(found.headers, r#"[["content-type","text/plain"]]"#);
    assert_eq!(found.body, [0, 159, 146, 2]);
    let missing = FindRejected { id: row.id + 1 };
    assert!(rig.engine.store().read(missing).await.unwrap().is_none());
}

async fn prune(rig: &Rig, audit_ms: Option<i64>) -> Pruned {
    let retention = Retention {
        payloads_ms: None,
        audit_ms,
        keys_ms: None,
    };
    let (mut from, mut all) = (Cursor::default(), Pruned::default());
    while !from.is_done() {
        let prune = Prune {
            retention,
            batch_len: 2,
            from,
        };
        let (pruned, next) = rig.engine.store().write(prune).await.unwrap();
        all.add(pruned);
        from = next;
    }
    all
}

#[tokio::test]
async fn both_end_with_the_audit_trail() {
    let rig = Rig::start(&docs("")).await;
    for number in 0..5 {
        note(&rig, handshake("docs", START_MS + number)).await;
        keep(&rig, [rejected("docs", number, 100)]).await;
    }
    rig.clock.advance(10_000);
    note(&rig, handshake("docs", START_MS + 10_000)).await;
    keep(&rig, [rejected("docs", 5, 100)]).await;
    assert_eq!(prune(&rig, None).await, Pruned::default());
    let pruned = prune(&rig, Some(9_996)).await;
    assert_eq!((pruned.deliveries, pruned.total()), (8, 8));
    assert_eq!(listed(&rig, None).await, [5, 4]);
    let rows = rig.engine.store().read(listing(None)).await.unwrap();
    let times: Vec<_> = rows.iter().map(|row| row.at_ms - START_MS).collect();
    assert_eq!(times, [10_000, 4]);
}
