//! Properties of every request: what is signed verifies, and nothing else does.

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use sekali_verify::{Rejection, Scheme, Secret, SignatureProblem, Verified, Window};

use crate::{prover, signed, verify_at};

const WIDE: Window = Window {
    past_ms: i64::MAX,
    future_ms: i64::MAX,
};

fn check(headers: &HeaderMap, body: Vec<u8>, now_ms: i64) -> Result<Verified, Rejection> {
    let secrets = [Secret::new("another-secret").unwrap(), crate::secret()];
    verify_at(
        &prover(&Scheme::standard(), &secrets, WIDE),
        now_ms,
        headers,
        &body,
    )
}

fn sign(body: &[u8], at_ms: i64) -> HeaderMap {
    signed(&Scheme::standard(), &crate::secret(), body, at_ms)
}

fn is_wrong_signature(outcome: &Result<Verified, Rejection>) -> bool {
    matches!(
        outcome,
        Err(Rejection::Signature(SignatureProblem::WrongSignature))
    )
}

proptest! {
    #[test]
    fn what_is_signed_verifies(
        body: Vec<u8>, at_ms in 0..=i64::MAX / 1000, now_ms: i64, text in "[!-~]{8,200}",
    ) {
        for name in Scheme::generic_names() {
            let (scheme, secrets) = (Scheme::generic(name).unwrap(), [Secret::new(&*text).unwrap()]);
            let headers = signed(scheme, &secrets[0], &body, at_ms);
            let window = Window { past_ms: 1000, future_ms: 1000 };
            let prover = prover(scheme, &secrets, window);
            let verified = verify_at(&prover, at_ms, &headers, &body).unwrap();
            prop_assert_eq!(verified.body(), &body);
            // No now, however far, may end in a panic.
            let _ = verify_at(&prover, now_ms, &headers, &body);
        }
    }

    #[test]
    fn a_flipped_bit_of_the_body_is_refused(
        body in prop::collection::vec(any::<u8>(), 1..300), place: prop::sample::Index, bit in 0..8u32,
    ) {
        let headers = sign(&body, 1_767_225_600_000);
        let mut flipped = body;
        let place = place.index(flipped.len());
        flipped[place] ^= 1u8 << bit;
        prop_assert!(is_wrong_signature(&check(&headers, flipped, 0)));
    }

    #[test]
    fn a_changed_length_of_the_body_is_refused(body: Vec<u8>, more: u8) {
        let headers = sign(&body, 1_767_225_600_000);
        let mut longer = body.clone();
        longer.push(more);
        prop_assert!(is_wrong_signature(&check(&headers, longer, 0)));
        if let Some((_, shorter)) = body.split_last() {
            prop_assert!(is_wrong_signature(&check(&headers, shorter.to_vec(), 0)));
        }
    }

    #[test]
    fn a_flipped_bit_of_the_timestamp_is_refused(body: Vec<u8>, place in 0..10usize, bit in 0..8u32) {
        let mut headers = sign(&body, 1_767_225_600_000);
        let mut text = headers["x-webhook-timestamp"].as_bytes().to_vec();
        text[place] ^= 1u8 << bit;
        // What no header can carry never gets here.
        if let Ok(value) = HeaderValue::from_bytes(&text) {
            headers.insert("x-webhook-timestamp", value);
            let outcome = check(&headers, body, 0);
            let is_no_time = !text.iter().all(u8::is_ascii_digit);
            prop_assert!(is_wrong_signature(&outcome) || is_no_time && crate::code(&outcome) == "signature_malformed");
        }
    }

    #[test]
    fn a_flipped_bit_of_the_signature_is_refused(body: Vec<u8>, place in 0..32usize, bit in 0..8u32) {
        let mut headers = sign(&body, 1_767_225_600_000);
        let text = headers["x-webhook-signature"].to_str().unwrap().to_owned();
        let mut bytes = hex::decode(&text[3..]).unwrap();
        bytes[place] ^= 1u8 << bit;
        let value = HeaderValue::try_from(format!("v1={}", hex::encode(bytes))).unwrap();
        headers.insert("x-webhook-signature", value);
        prop_assert!(is_wrong_signature(&check(&headers, body, 0)));
    }

    #[test]
    fn no_header_text_ends_in_a_panic(signature: Vec<u8>, timestamp: Vec<u8>, now_ms: i64) {
        let mut headers = HeaderMap::new();
        for (name, text) in [("x-webhook-signature", signature), ("x-webhook-timestamp", timestamp)] {
            if let Ok(value) = HeaderValue::from_bytes(&text) {
                headers.insert(name, value);
            }
        }
        prop_assert!(check(&headers, Vec::new(), now_ms).is_err());
    }
}
