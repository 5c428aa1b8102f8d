//! Duplicates, variants, replays and late retries: what is known is never new again, and what differs is kept.

use sekali::{Outcome, Reason};
use sekali_verify::{SignatureProblem, StaleReason, TimestampProblem};

use super::support::{Refused, Request, Rig, docs, sources, titled, update};

/// A source whose id stands in a header that is not signed.
fn header_id(settings: &str) -> String {
    docs(settings).replace("event_id = \"/id\"", "event_id = \"header:X-Webhook-Id\"")
}

fn named(rig: &Rig, id: &str, body: &str) -> Request {
    rig.sign("docs", body.to_owned()).with("x-webhook-id", id)
}

async fn outcome(rig: &Rig, request: Request) -> Outcome {
    rig.receive("docs", request).await.unwrap().outcome
}

const BODY: &str =
    r#"{"id":"e","type":"doc.updated","entity":"d","version":1,"title":"x","sent":1,"n":1}"#;

#[tokio::test]
async fn the_same_content_in_other_bytes_is_a_duplicate() {
    let rig = Rig::start(&docs("volatile = [\"/sent\"]")).await;
    rig.accept("docs", BODY).await;
    let same = [
        BODY.to_owned(),
        BODY.replace(',', " ,\n "),
        r#"{"n":1,"sent":1,"title":"\u0078","version":1,"entity":"d","type":"doc.updated","id":"e"}"#.to_owned(),
        BODY.replace("\"sent\":1", "\"sent\":\"later\""),
        BODY.replace("\"sent\":1,", ""),
    ];
    for body in same {
        assert_eq!(
            rig.send("docs", body.clone()).await,
            Outcome::Duplicate,
            "{body}"
        );
    }
    let other = [
        BODY.replace("\"n\":1", "\"n\":1.0"),
        BODY.replace("\"n\":1", "\"n\":\"1\""),
        BODY.replace("\"n\":1", "\"n\":1,\"attempt\":2"),
        BODY.replace("\"title\":\"x\"", "\"title\":\"y\""),
    ];
    for body in &other {
        let outcome = rig.send("docs", body.clone()).await;
        assert_eq!(outcome, Outcome::InconsistentDuplicate, "{body}");
    }
    rig.drain().await;
    assert_eq!(rig.column("select title from docs").await, "x");
    assert_eq!(rig.column("select count(*) from writes").await, "1");
    let story = rig.story("e").await;
    assert_eq!((story.deliveries.len(), story.variants.len()), (10, 4));
    assert_eq!(story.variants[3].body.as_deref(), Some(other[3].as_bytes()));
}

#[tokio::test]
async fn raw_fingerprints_take_other_bytes_for_other_content() {
    let rig = Rig::start(&docs("fingerprint = \"raw\"")).await;
    rig.accept("docs", BODY).await;
    assert_eq!(rig.send("docs", BODY).await, Outcome::Duplicate);
    let spaced = BODY.replace(',', ", ");
    assert_eq!(
        rig.send("docs", spaced).await,
        Outcome::InconsistentDuplicate
    );
}

#[tokio::test]
async fn sixteen_variants_are_kept_and_repeats_counted() {
    let rig = Rig::start(&docs("")).await;
    rig.accept("docs", update("e", "d", 1)).await;
    for number in 0..20 {
        for _ in 0..=number % 2 {
            let body = titled("e", "d", 1, &format!("other-{number}"));
            assert_eq!(rig.send("docs", body).await, Outcome::InconsistentDuplicate);
        }
    }
    let story = rig.story("e").await;
    let seen: Vec<_> = story.variants.iter().map(|variant| variant.seen).collect();
    assert_eq!(seen, [1, 2].repeat(8));
    assert_eq!(
        story.deliveries.len(),
        1 + 30,
        "those past the bound have their rows"
    );
    rig.drain().await;
    assert_eq!(rig.column("select title from docs").await, "e");
}

#[tokio::test]
async fn a_replay_under_another_id_is_caught_also_after_a_restart() {
    let rig = Rig::start(&header_id("")).await;
    let original = named(&rig, "first", BODY);
    assert_eq!(outcome(&rig, original.clone()).await, Outcome::Accepted);
    let forged = original.clone().with("x-webhook-id", "forged");
    let receipt = rig.receive("docs", forged.clone()).await.unwrap();
    assert_eq!(receipt.outcome, Outcome::Replay);
    assert_eq!(receipt.seq, Some(rig.event("first").await.seq));
    let rig = rig.restart(sources(&header_id("")), &[]).await.unwrap();
    assert_eq!(outcome(&rig, forged).await, Outcome::Replay);
    assert_eq!(
        outcome(&rig, original).await,
        Outcome::Duplicate,
        "a known id is no replay"
    );
    let story = rig.story("first").await;
    assert_eq!(story.variants.len(), 1);
    assert_eq!(
        (story.variants[0].event_id.as_str(), story.variants[0].seen),
        ("forged", 2)
    );
    rig.drain().await;
    assert_eq!(
        rig.column("select event_id from webhook_inbox").await,
        "first"
    );
}

#[tokio::test]
async fn a_known_id_is_never_a_replay() {
    let rig = Rig::start(&header_id("")).await;
    let (first, second) = (
        named(&rig, "a", BODY),
        named(&rig, "b", &update("x", "d", 2)),
    );
    assert_eq!(outcome(&rig, first.clone()).await, Outcome::Accepted);
    assert_eq!(outcome(&rig, second).await, Outcome::Accepted);
    let crossed = outcome(&rig, first.with("x-webhook-id", "b")).await;
    assert_eq!(crossed, Outcome::InconsistentDuplicate);
}

#[tokio::test]
async fn equal_bytes_that_were_signed_at_another_time_are_no_replay() {
    let rig = Rig::start(&header_id("")).await;
    assert_eq!(
        outcome(&rig, named(&rig, "a", BODY)).await,
        Outcome::Accepted
    );
    rig.advance(1000);
    assert_eq!(
        outcome(&rig, named(&rig, "b", BODY)).await,
        Outcome::Accepted
    );
}

#[tokio::test]
async fn an_id_in_the_signed_body_needs_no_guard() {
    let rig = Rig::start(&docs("")).await;
    rig.accept("docs", BODY).await;
    assert_eq!(
        rig.column("select replay_key from webhook_inbox").await,
        "-"
    );
}

#[tokio::test]
async fn a_header_that_contradicts_the_signed_id_is_refused() {
    let settings = docs("").replace(
        "scope =",
        "event_id_same_as = \"header:X-Webhook-Id\"\nscope =",
    );
    let rig = Rig::start(&settings).await;
    let mismatch = Err(Refused {
        outcome: Outcome::Malformed,
        reason: Some(Reason::IdMismatch),
    });
    assert_eq!(
        rig.receive("docs", named(&rig, "other", BODY)).await,
        mismatch
    );
    assert_eq!(
        outcome(&rig, named(&rig, "e", BODY)).await,
        Outcome::Accepted
    );
}

#[tokio::test]
async fn a_longer_list_of_volatile_paths_counts_for_old_events_too() {
    let rig = Rig::start(&docs("volatile = [\"/sent\"]")).await;
    rig.accept("docs", BODY).await;
    let retried = BODY.replace("\"n\":1", "\"n\":2");
    assert_eq!(
        rig.send("docs", retried.clone()).await,
        Outcome::InconsistentDuplicate
    );
    let longer = docs("volatile = [\"/sent\", \"/n\"]");
    let rig = rig.restart(sources(&longer), &[]).await.unwrap();
    assert_eq!(rig.send("docs", retried).await, Outcome::Duplicate);
    let other = BODY.replace("\"title\":\"x\"", "\"title\":\"y\"");
    assert_eq!(
        rig.send("docs", other).await,
        Outcome::InconsistentDuplicate
    );
}

fn expired() -> Refused {
    Refused {
        outcome: Outcome::Timestamp,
        reason: Some(Reason::TimestampTooOld),
    }
}

#[tokio::test]
async fn a_late_retry_is_let_through_only_as_a_duplicate() {
    let rig = Rig::start(&docs("")).await;
    let known = rig.sign("docs", update("known", "d", 1));
    let unknown = rig.sign("docs", update("unknown", "d", 2));
    let changed = rig.sign("docs", titled("known", "d", 1, "changed"));
    assert_eq!(outcome(&rig, known.clone()).await, Outcome::Accepted);
    rig.advance(300_001);
    let receipt = rig.receive("docs", known).await.unwrap();
    assert_eq!(
        (receipt.outcome, receipt.reason),
        (Outcome::Duplicate, Some(Reason::TimestampTooOld))
    );
    for request in [unknown, changed] {
        let receipt = rig.receive("docs", request).await.unwrap();
        assert_eq!(
            (receipt.outcome, receipt.reason),
            (expired().outcome, expired().reason)
        );
        assert_eq!(receipt.seq, None);
    }
    rig.drain().await;
    assert_eq!(
        rig.column("select event_id from webhook_inbox").await,
        "known"
    );
    assert_eq!(
        rig.column("select count(*) from webhook_variants").await,
        "0"
    );
}

#[tokio::test]
async fn strict_expiry_refuses_late_retries_too() {
    let rig = Rig::start(&docs("strict_expiry = true")).await;
    let known = rig.sign("docs", update("known", "d", 1));
    assert_eq!(outcome(&rig, known.clone()).await, Outcome::Accepted);
    rig.advance(300_000);
    assert_eq!(
        outcome(&rig, known.clone()).await,
        Outcome::Duplicate,
        "still within the window"
    );
    rig.advance(1000);
    assert_eq!(rig.receive("docs", known).await, Err(expired()));
}

#[tokio::test]
async fn a_tampered_body_is_refused_by_its_signature() {
    let rig = Rig::start(&docs("")).await;
    let mut request = rig.sign("docs", update("e", "d", 1));
    request.body = update("e", "d", 2).into();
    let refused = Refused {
        outcome: Outcome::Signature,
        reason: Some(Reason::SignatureWrong),
    };
    assert_eq!(rig.receive("docs", request).await, Err(refused));
}

#[test]
fn what_verification_says_is_a_reason_of_the_engine() {
    let codes = [
        StaleReason::Expired.code(),
        StaleReason::InFuture.code(),
        SignatureProblem::Missing.code(),
        SignatureProblem::Malformed.code(),
        SignatureProblem::TooMany.code(),
        SignatureProblem::WrongSignature.code(),
        TimestampProblem::NotANumber.code(),
        TimestampProblem::Unit.code(),
        TimestampProblem::OutOfRange.code(),
        TimestampProblem::Repeated.code(),
    ];
    for code in codes {
        assert!(Reason::from_code(code).is_some(), "{code}");
    }
}
