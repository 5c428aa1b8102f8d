//! Tests of the public face of the crate, as an embedding program sees it.

#![expect(clippy::unwrap_used, reason = "a failed step of a test may end it")]

mod flips;
mod json;
mod reference;
mod signatures;
mod timestamps;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sekali_verify::{Check, Rejection, Scheme, Secret, Verified, Window};

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
    let check = Check {
        scheme,
        secrets: &[secret()],
        window,
        now_ms,
    };
    check.verify(headers, Bytes::copy_from_slice(body))
}

/// The code of the outcome, `verified` for success.
fn code(outcome: &Result<Verified, Rejection>) -> &'static str {
    match outcome {
        Ok(_) => "verified",
        Err(rejection) => rejection.code(),
    }
}
