//! Signed deliveries that cannot be used, or not yet: refused, stored or held, always with a reason.

use sekali::event::Receipt;
use sekali::{Outcome, Reason, Result};

use super::support::{Refused, Rig, START_MS, docs, update};

fn malformed(reason: Reason) -> Result<Receipt, Refused> {
    Err(Refused {
        outcome: Outcome::Malformed,
        reason: Some(reason),
    })
}

async fn receive(rig: &Rig, body: impl Into<bytes::Bytes>) -> Result<Receipt, Refused> {
    rig.receive("docs", rig.sign("docs", body)).await
}

#[tokio::test]
async fn ids_have_strict_limits() {
    let rig = Rig::start(&docs("")).await;
    let long = "x".repeat(255);
    for good in [long.as_str(), "x", &"\u{e9}".repeat(127)] {
        assert_eq!(
            rig.send("docs", update(good, "d", 1)).await,
            Outcome::Accepted
        );
    }
    for (bad, reason) in [
        (r#""""#.to_owned(), Reason::EventIdMissing),
        (r#""  ""#.to_owned(), Reason::EventIdMissing),
        ("null".to_owned(), Reason::EventIdMissing),
        (format!("\"{long}y\""), Reason::EventIdTooLong),
        (
            format!("\"{}\"", "\u{e9}".repeat(128)),
            Reason::EventIdTooLong,
        ),
        (format!("\"{}\"", "x".repeat(7000)), Reason::EventIdTooLong),
        (r#""a\u0000b""#.to_owned(), Reason::EventIdInvalid),
        (r#""a\nb""#.to_owned(), Reason::EventIdInvalid),
        (r#""\ud800""#.to_owned(), Reason::EventIdInvalid),
        ("1.5".to_owned(), Reason::EventIdInvalid),
        ("true".to_owned(), Reason::EventIdInvalid),
        (r#"{"a":1}"#.to_owned(), Reason::EventIdInvalid),
    ] {
        let body = format!(r#"{{"id":{bad},"type":"doc.updated","entity":"d","version":1}}"#);
        assert_eq!(receive(&rig, body).await, malformed(reason), "{bad:.40}");
    }
    assert_eq!(rig.column("select count(*) from webhook_inbox").await, "3");
}

/// Bodies that are signed and have an id, but cannot be used, with the reason.
fn unusable() -> Vec<(String, Reason)> {
    let body = |rest: &str| format!(r#"{{"id":"u","type":"doc.updated",{rest}}}"#);
    vec![
        (body(r#""version":1"#), Reason::EntityMissing),
        (body(r#""entity":"","version":1"#), Reason::EntityMissing),
        (
            body(r#""entity":"\ud800","version":1"#),
            Reason::FieldInvalid,
        ),
        (
            body(r#""entity":"a\u0000b","version":1"#),
            Reason::FieldInvalid,
        ),
        (body(r#""entity":["d"],"version":1"#), Reason::FieldInvalid),
        (
            body(&format!(r#""entity":"{}","version":1"#, "x".repeat(256))),
            Reason::FieldTooLong,
        ),
        (body(r#""entity":"d""#), Reason::PositionMissing),
        (
            body(r#""entity":"d","version":1.0"#),
            Reason::VersionInvalid,
        ),
        (body(r#""entity":"d","version":-1"#), Reason::VersionInvalid),
        (
            body(r#""entity":"d","version":9223372036854775808"#),
            Reason::VersionInvalid,
        ),
        (
            body(r#""entity":"d","version":"x""#),
            Reason::VersionInvalid,
        ),
        (
            body(r#""entity":"d","at":"2026-11-30T00:00:00""#),
            Reason::OccurredAtInvalid,
        ),
        (
            body(r#""entity":"d","at":1796083200"#),
            Reason::OccurredAtInvalid,
        ),
        (
            body(r#""entity":"d","entity":"e","version":1"#),
            Reason::DuplicateKey,
        ),
        (
            body(r#""entity":"d","at":"2026-12-01T01:00:00Z""#),
            Reason::OccurredAtInFuture,
        ),
    ]
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_by_default() {
    let rig = Rig::start(&docs("")).await;
    for (body, reason) in unusable() {
        assert_eq!(
            receive(&rig, body.clone()).await,
            malformed(reason),
            "{body:.200}"
        );
    }
    assert_eq!(rig.column("select count(*) from webhook_inbox").await, "0");
}

#[tokio::test]
async fn what_cannot_be_used_is_stored_as_dead_letter_where_the_source_says_so() {
    let rig = Rig::start(&docs("unusable = \"store\"")).await;
    let future = Reason::OccurredAtInFuture;
    for (number, (body, reason)) in unusable()
        .into_iter()
        .filter(|(_, r)| *r != future)
        .enumerate()
    {
        let id = format!("u-{number}");
        let receipt = receive(
            &rig,
            body.replace("\"id\":\"u\"", &format!("\"id\":\"{id}\"")),
        )
        .await
        .unwrap();
        assert_eq!(
            (receipt.outcome, receipt.reason),
            (Outcome::Accepted, Some(reason)),
            "{body:.200}"
        );
        assert_eq!(
            rig.standing(&id).await,
            ("dead_letter".to_owned(), reason.code().to_owned())
        );
    }
    rig.drain().await;
    assert_eq!(rig.column("select count(*) from docs").await, "0");
}

#[tokio::test]
async fn versions_are_taken_as_written_up_to_the_last() {
    let rig = Rig::start(&docs("")).await;
    for (id, version) in [
        ("a", "0"),
        ("b", "\"17\""),
        ("c", "9007199254740993"),
        ("d", "9223372036854775807"),
    ] {
        let body =
            format!(r#"{{"id":"{id}","type":"doc.updated","entity":"{id}","version":{version}}}"#);
        rig.accept("docs", body).await;
    }
    rig.drain().await;
    let versions = "select version from docs order by entity";
    assert_eq!(
        rig.column(versions).await,
        "0 17 9007199254740993 9223372036854775807"
    );
}

#[tokio::test]
async fn a_required_version_that_is_missing_is_a_dead_letter() {
    let rig = Rig::start(&docs("require_version = true")).await;
    rig.accept(
        "docs",
        r#"{"id":"a","type":"doc.updated","entity":"d","at":"2026-11-30T00:00:00Z"}"#,
    )
    .await;
    let expected = ("dead_letter".to_owned(), "version_missing".to_owned());
    assert_eq!(rig.standing("a").await, expected);
}

#[tokio::test]
async fn an_unknown_type_is_stored_and_left_unmatched() {
    let rig = Rig::start(&docs("")).await;
    rig.accept(
        "docs",
        r#"{"id":"a","type":"doc.archived","entity":"d","version":1}"#,
    )
    .await;
    rig.accept("docs", r#"{"id":"b","entity":"d","version":2}"#)
        .await;
    rig.drain().await;
    let expected = ("ignored_unmatched".to_owned(), "no_effect".to_owned());
    assert_eq!(rig.standing("a").await, expected);
    assert_eq!(rig.standing("b").await, expected);
    assert_eq!(rig.event("b").await.event_type, "unknown");
}

#[tokio::test]
async fn an_event_of_the_future_is_held_until_its_time() {
    let rig = Rig::start(&docs("unusable = \"store\"")).await;
    let at = |id: &str, at: &str| {
        format!(r#"{{"id":"{id}","type":"doc.updated","entity":"{id}","at":"{at}"}}"#)
    };
    for body in [
        at("soon", "2026-12-01T01:00:00Z"),
        at("never", "2027-12-01T00:00:00Z"),
    ] {
        let receipt = receive(&rig, body).await.unwrap();
        assert_eq!(receipt.reason, Some(Reason::WaitingForTime));
    }
    rig.accept("docs", at("now", "2026-12-01T00:05:00Z")).await;
    rig.settled("now", "processed").await;
    rig.advance(3_600_000 - 1);
    rig.accept("docs", at("mark", "2026-12-01T00:00:00Z")).await;
    rig.settled("mark", "processed").await;
    assert_eq!(rig.event("soon").await.status, "received");
    rig.advance(1);
    assert_eq!(rig.settled("soon", "processed").await.attempts, 1);
    let never = rig.event("never").await;
    assert_eq!(
        never.next_attempt_at,
        Some(START_MS + 24 * 3_600_000),
        "not held for ever"
    );
}

#[tokio::test]
async fn a_future_time_does_not_matter_where_a_version_decides() {
    let rig = Rig::start(&docs("")).await;
    let body =
        r#"{"id":"a","type":"doc.updated","entity":"d","version":1,"at":"2199-01-01T00:00:00Z"}"#;
    rig.accept("docs", body).await;
    rig.settled("a", "processed").await;
}
