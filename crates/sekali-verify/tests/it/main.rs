//! Tests of the public face of the crate, as an embedding program sees it.

#![expect(clippy::unwrap_used, reason = "a failed step of a test may end it")]

mod flips;
mod json;
mod reference;
mod sdks;
mod signatures;
mod timestamps;
mod vectors;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sekali_verify::{
    NoDocuments, Prove as _, Prover, Rejection, Request, Scheme, Secret, Settings, Verified, Window,
};

/// The time of the reference values.
const NOW_MS: i64 = 1_767_225_600_000;

const BODY: &[u8] = br#"{"entity_id":"o-1","source_version":1}"#;

fn secret() -> Secret {
    Secret::new("test-secret-not-for-production-0001").unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        headers.append(HeaderName::from_static(name), value);
    }
    headers
}

fn check_at(
    now_ms: i64,
    scheme: &Scheme,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Verified, Rejection> {
    let window = Window {
        past_ms: 300_000,
        future_ms: 300_000,
    };
    let prover = prover(scheme, &[secret()], window);
    verify_at(&prover, now_ms, headers, body)
}

fn prover(scheme: &Scheme, secrets: &[Secret], window: Window) -> Prover {
    Prover::new(
        std::slice::from_ref(scheme),
        secrets,
        Settings::default(),
        window,
    )
    .unwrap()
}

fn verify_at(
    prover: &Prover,
    now_ms: i64,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Verified, Rejection> {
    let body = Bytes::copy_from_slice(body);
    prover.verify(&Request::post(headers, &body), now_ms, &NoDocuments)
}

/// Signs with the scheme's own hand.
fn signed(scheme: &Scheme, secret: &Secret, body: &[u8], at_ms: i64) -> HeaderMap {
    let window = Window {
        past_ms: 0,
        future_ms: 0,
    };
    let prover = prover(scheme, std::slice::from_ref(secret), window);
    prover.sign(&Bytes::copy_from_slice(body), at_ms).unwrap()
}

/// The code of the outcome, `verified` for success.
fn code(outcome: &Result<Verified, Rejection>) -> &'static str {
    match outcome {
        Ok(_) => "verified",
        Err(rejection) => rejection.code(),
    }
}
