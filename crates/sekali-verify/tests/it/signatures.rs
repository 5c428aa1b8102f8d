//! Forms of the signature header, and the rotation of secrets.

use sekali_verify::{Rejection, Scheme, Secret, SignatureProblem, Window};

use crate::{BODY, NOW_MS, check_at, code, headers, prover, secret, signed, verify_at};

const GOOD: &str = "900372d3e6236dbb5502c0e0b4978869530c8f27c425a2eaaa8b08c3dfc25e6b";
const BAD: &str = "0000000000000000000000000000000000000000000000000000000000000000";

fn outcome(signature: &str) -> &'static str {
    let headers = headers(&[
        ("x-webhook-timestamp", "1767225600"),
        ("x-webhook-signature", signature),
    ]);
    code(&check_at(NOW_MS, &Scheme::standard(), &headers, BODY))
}

#[test]
fn malformed_signatures_are_refused_and_leave_no_trace() {
    let refused = [
        "v1=".to_owned(),
        "v1=abc".to_owned(),
        format!("v1={}", &GOOD[1..]),
        format!("v1={GOOD}0"),
        format!("v1={}", "z".repeat(64)),
        "v1=kANy0+Yjbbte/8DgtJeIaVMMjyfEJaLqqosIw9/CXms=".to_owned(),
        format!("v1={}", "é".repeat(64)),
        format!("sha256={GOOD}"),
        GOOD.to_owned(),
        format!("v0={GOOD}"),
        format!("V1={GOOD}"),
    ];
    for signature in refused {
        assert_eq!(outcome(&signature), "signature_malformed", "{signature}");
        assert_eq!(outcome(&format!("v1={GOOD}")), "verified");
    }
    assert_eq!(outcome(""), "signature_missing");
    assert_eq!(outcome(&"v1=00,".repeat(10_000)), "signature_too_many");
    let absent = headers(&[("x-webhook-timestamp", "1767225600")]);
    let missing = check_at(NOW_MS, &Scheme::standard(), &absent, BODY);
    assert!(matches!(
        missing,
        Err(Rejection::Signature(SignatureProblem::Missing))
    ));
}

#[test]
fn upper_case_and_outer_blanks_are_accepted() {
    assert_eq!(outcome(&format!("v1={}", GOOD.to_uppercase())), "verified");
    assert_eq!(outcome(&format!("  v1={GOOD}\t ")), "verified");
}

#[test]
fn the_order_and_the_separator_of_entries_do_not_matter() {
    for separator in [",", ", ", " ", " ,\t"] {
        assert_eq!(
            outcome(&format!("v1={BAD}{separator}v1={GOOD}")),
            "verified"
        );
        assert_eq!(
            outcome(&format!("v1={GOOD}{separator}v1={BAD}")),
            "verified"
        );
        assert_eq!(
            outcome(&format!("v0={BAD}{separator}v1={GOOD}")),
            "verified"
        );
        assert_eq!(
            outcome(&format!("v1={BAD}{separator}v1={BAD}")),
            "signature_wrong"
        );
    }
    assert_eq!(
        outcome(&format!("{}v1={GOOD}", format!("v1={BAD},").repeat(15))),
        "verified"
    );
    let many = format!("v1={GOOD},{}", format!("v1={BAD},").repeat(16));
    assert_eq!(outcome(&many), "signature_too_many");
}

#[test]
fn every_value_of_a_repeated_signature_header_counts() {
    let headers = headers(&[
        ("x-webhook-timestamp", "1767225600"),
        ("x-webhook-signature", &format!("v1={BAD}")),
        ("x-webhook-signature", &format!("v1={GOOD}")),
    ]);
    assert_eq!(
        code(&check_at(NOW_MS, &Scheme::standard(), &headers, BODY)),
        "verified"
    );
}

#[test]
fn every_active_secret_is_tried_and_a_retired_one_is_not() {
    let (old, new) = (secret(), Secret::new("the-next-secret-0002").unwrap());
    let scheme = Scheme::standard();
    let window = Window {
        past_ms: 0,
        future_ms: 0,
    };
    let check = |secrets: &[Secret], signer: &Secret| {
        let headers = signed(&scheme, signer, BODY, NOW_MS);
        code(&verify_at(
            &prover(&scheme, secrets, window),
            NOW_MS,
            &headers,
            BODY,
        ))
    };
    let both = [old.clone(), new.clone()];
    assert_eq!(check(&both, &old), "verified");
    assert_eq!(check(&both, &new), "verified");
    assert_eq!(check(&both[1..], &old), "signature_wrong");
    assert_eq!(check(&[], &old), "signature_wrong");
}

#[test]
fn the_scheme_without_time_needs_only_its_header() {
    let scheme = Scheme::generic("body-hmac").unwrap();
    let headers = signed(scheme, &secret(), BODY, 0);
    let verified = check_at(NOW_MS, scheme, &headers, BODY).unwrap();
    assert_eq!((verified.signed_at_ms(), verified.drift_ms()), (None, None));
    assert!(verified.covers_whole_body());
    assert_eq!(
        code(&check_at(NOW_MS, scheme, &headers, b"{}")),
        "signature_wrong"
    );
}

#[test]
fn no_rejection_shows_a_signature() {
    let headers = headers(&[
        ("x-webhook-timestamp", "1767225600"),
        ("x-webhook-signature", &format!("v1={GOOD}")),
    ]);
    for now_ms in [NOW_MS, 0] {
        let outcome = check_at(now_ms, &Scheme::standard(), &headers, BODY);
        assert!(!format!("{outcome:?}").contains(&GOOD[..8]));
    }
}
