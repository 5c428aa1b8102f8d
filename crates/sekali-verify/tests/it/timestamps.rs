//! Unit, window and grammar of signed times.

use hmac::{Hmac, KeyInit, Mac};
use sekali_verify::{Rejection, Scheme, SignatureProblem, TimestampProblem};
use sha2::Sha256;

use crate::{BODY, NOW_MS, check_at, code, headers};

const NOW: i64 = NOW_MS / 1000;

fn millis_scheme() -> Scheme {
    let text = include_str!("../../src/schemes/timestamped.toml");
    toml::from_str(&text.replace("unix_seconds", "unix_millis")).unwrap()
}

/// Signs any text as a timestamp, independently of the crate.
fn signature(timestamp: &str) -> String {
    let mut mac: Hmac<Sha256> =
        Hmac::new_from_slice(b"test-secret-not-for-production-0001").unwrap();
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(BODY);
    format!("v1={}", hex::encode(mac.finalize().into_bytes()))
}

fn outcome(scheme: &Scheme, timestamp: &str) -> &'static str {
    let signature = signature(timestamp);
    let headers = headers(&[
        ("x-webhook-timestamp", timestamp),
        ("x-webhook-signature", &signature),
    ]);
    code(&check_at(NOW_MS, scheme, &headers, BODY))
}

#[test]
fn the_window_is_two_sided_and_inclusive() {
    let at = |seconds: i64| outcome(&Scheme::standard(), &(NOW + seconds).to_string());
    for inside in [-300, -299, 0, 299, 300] {
        assert_eq!(at(inside), "verified", "{inside}");
    }
    assert_eq!(at(-301), "timestamp_expired");
    assert_eq!(at(301), "timestamp_in_future");
    assert_eq!(
        outcome(&millis_scheme(), &(NOW_MS - 300_000).to_string()),
        "verified"
    );
    assert_eq!(
        outcome(&millis_scheme(), &(NOW_MS - 300_001).to_string()),
        "timestamp_expired"
    );
}

#[test]
fn a_wrong_unit_is_named() {
    let seconds = Scheme::standard();
    assert_eq!(
        outcome(&seconds, &(NOW * 1000).to_string()),
        "timestamp_unit"
    );
    assert_eq!(
        outcome(&seconds, &(NOW * 1_000_000).to_string()),
        "timestamp_unit"
    );
    assert_eq!(
        outcome(&millis_scheme(), &NOW.to_string()),
        "timestamp_unit"
    );
}

#[test]
fn only_plain_digits_are_a_timestamp() {
    let forms = [
        "abc",
        "",
        "1767225600abc",
        "+1767225600",
        "1767225600.0",
        "1767225600.5",
        "1.7e9",
        "0x6955b900",
        "-1767225600",
        "NaN",
        "17672 25600",
        "１７６７",
    ];
    for timestamp in forms {
        let code = outcome(&Scheme::standard(), timestamp);
        assert_eq!(code, "timestamp_not_a_number", "{timestamp:?}");
    }
    for timestamp in [
        "999999999999999999",
        "9223372036854775808",
        &"9".repeat(5000),
    ] {
        assert_eq!(
            outcome(&Scheme::standard(), timestamp),
            "timestamp_out_of_range"
        );
    }
}

#[test]
fn a_number_is_signed_as_it_was_written() {
    assert_eq!(outcome(&Scheme::standard(), "01767225600"), "verified");
    let signature = signature("1767225600");
    let headers = headers(&[
        ("x-webhook-timestamp", "01767225600"),
        ("x-webhook-signature", &signature),
    ]);
    assert_eq!(
        code(&check_at(NOW_MS, &Scheme::standard(), &headers, BODY)),
        "signature_wrong"
    );
}

#[test]
fn the_signature_is_judged_before_the_time() {
    let good = signature("1767225600");
    for (timestamp, expected) in [
        ("abc", "signature_malformed"),
        ("1", "signature_wrong"),
        ("1767225600000", "signature_wrong"),
        ("999999999999999999", "signature_wrong"),
    ] {
        let headers = headers(&[
            ("x-webhook-timestamp", timestamp),
            ("x-webhook-signature", &good),
        ]);
        let outcome = check_at(NOW_MS, &Scheme::standard(), &headers, BODY);
        assert_eq!(code(&outcome), expected, "{timestamp}");
    }
}

#[test]
fn a_missing_timestamp_is_a_missing_signature() {
    let headers = headers(&[("x-webhook-signature", &signature("1767225600"))]);
    let outcome = check_at(NOW_MS, &Scheme::standard(), &headers, BODY);
    assert!(matches!(
        outcome,
        Err(Rejection::Signature(SignatureProblem::Missing))
    ));
}

#[test]
fn a_repeated_timestamp_is_refused() {
    let repeated = |signature: &str| {
        let headers = headers(&[
            ("x-webhook-timestamp", "1767225600"),
            ("x-webhook-timestamp", "1767225601"),
            ("x-webhook-signature", signature),
        ]);
        check_at(NOW_MS, &Scheme::standard(), &headers, BODY)
    };
    let outcome = repeated(&signature("1767225600"));
    assert!(matches!(
        outcome,
        Err(Rejection::Timestamp(TimestampProblem::Repeated))
    ));
    assert_eq!(code(&repeated(&signature("1767225601"))), "signature_wrong");
}
