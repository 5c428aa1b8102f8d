//! What verification costs beyond the hash itself, for a body of 1 KB.
//!
//! `cargo bench -p sekali-verify --bench verify`. The bare hash is measured in the same run, over the same bytes and with its
//! key already in it; of several rounds the best counts, since everything else only adds to it.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sekali_verify::{
    NoDocuments, Outgoing, Preset, Prove as _, Prover, Scheme, Secret, Settings, Window,
};
use sha2::Sha256;

const NOW_MS: i64 = 1_767_225_600_000;
const ROUNDS: usize = 9;
const CALLS: u32 = 20_000;

/// Measures one call, in nanoseconds.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let round = |call: &mut dyn FnMut()| {
        let started = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        started.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..ROUNDS)
        .map(|_| round(&mut call))
        .fold(f64::MAX, f64::min)
}

/// A body of 1 KB that every scheme can sign.
fn body() -> Bytes {
    let front = r#"{"pspReference":"p","eventCode":"AUTHORISATION","success":"true","text":""#;
    let rest = "x".repeat(1024 - front.len() - 2);
    format!("{front}{rest}\"}}").into()
}

fn prover(schemes: &[Scheme], settings: Settings, secret: &str) -> Prover {
    let window = Window {
        past_ms: 300_000,
        future_ms: 300_000,
    };
    let secrets = [Secret::new(secret).expect("a secret")];
    Prover::new(schemes, &secrets, settings, window).expect("a prover")
}

fn verify(prover: &Prover, form: bool) -> f64 {
    let mut headers = HeaderMap::new();
    let kind = if form {
        "application/x-www-form-urlencoded"
    } else {
        "application/json"
    };
    headers.insert("content-type", kind.parse().expect("a value"));
    let body = match form {
        true => format!("Body={}&MessageSid=SM1", "x".repeat(1000)).into(),
        false => body(),
    };
    let request = Outgoing::post("https://hooks.example.test/hooks/x", headers, body);
    let signed = prover.sign_request(request, NOW_MS).expect("it can sign");
    nanoseconds(|| {
        let verified = prover.verify(&black_box(&signed).request(), NOW_MS, &NoDocuments);
        assert!(black_box(verified).is_ok());
    })
}

fn main() {
    let keyed: Hmac<Sha256> =
        Hmac::new_from_slice(b"fake-secret-of-the-bench").expect("any length");
    let text = body();
    let hash = nanoseconds(|| {
        let mut mac = keyed.clone();
        mac.update(b"1767225600.");
        mac.update(black_box(&text));
        black_box(mac.finalize());
    });
    println!("{:<28} {:>9} {:>14}", "1 KB", "ns", "beyond the hash");
    println!("{:<28} {hash:>9.0}", "HMAC-SHA256 alone");
    let line = |name: &str, took: f64| println!("{name:<28} {took:>9.0} {:>12.0}", took - hash);
    line(
        "timestamped",
        verify(
            &prover(
                &[Scheme::standard()],
                Settings::default(),
                "fake-secret-of-the-bench",
            ),
            false,
        ),
    );
    for name in [
        "stripe",
        "github",
        "slack",
        "standard-webhooks",
        "shopify",
        "square",
        "hubspot",
        "twilio",
    ] {
        let preset = Preset::find(name).expect("a preset");
        let secret = match name {
            "standard-webhooks" => "whsec_ZmFrZS1zZWNyZXQtb2YtdGhlLWJlbmNo",
            _ => "fake-secret-of-the-bench",
        };
        line(
            name,
            verify(
                &prover(&preset.schemes, preset.defaults(), secret),
                name == "twilio",
            ),
        );
    }
}
