//! For every valid vector: no bit of what is covered, and none of the signature, may change unseen.

use bytes::Bytes;
use http::HeaderValue;
use sekali_verify::{Coverage, Preset, Prove as _, Prover, Request, Scheme, Secret, Spot};

use super::{Case, Outcome, VECTORS, text};

fn flip(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

fn verifies(case: &Case<'_>, request: &Request<'_>) -> bool {
    case.prover
        .verify(request, case.now_ms(), &case.documents)
        .is_ok()
}

/// Those that prove without ambiguity that the whole body is signed.
fn valid_cases() -> impl Iterator<Item = Case<'static>> {
    let is_valid = |vector: &&serde_json::Value| text(vector, "expect") == "valid";
    VECTORS.iter().filter(is_valid).map(Case::new)
}

/// Tells whether the signature is over the bytes of the body, and not over what they stand for.
fn is_over_bytes(case: &Case<'_>) -> bool {
    let is_form = ["twilio", "braintree"].contains(&case.preset.name);
    !is_form && text(case.vector, "variant") != "snap"
}

#[test]
fn no_bit_of_a_covered_body_changes_unseen() {
    let mut tried = 0;
    for case in valid_cases().filter(is_over_bytes) {
        if case.prover.coverage() != Coverage::Body {
            continue;
        }
        for bit in 0..case.body.len() * 8 {
            let body = Bytes::from(flip(&case.body, bit));
            let request = Request {
                body: &body,
                ..case.request()
            };
            assert!(
                !verifies(&case, &request),
                "{} bit {bit}",
                text(case.vector, "id")
            );
            tried += 1;
        }
    }
    assert!(tried > 100_000, "only {tried} bits were tried");
}

/// Where providers put a signature into the body, and how it is written there.
const IN_BODY: [&str; 5] = [
    "hmacSignature",
    "signature_key",
    "signature",
    "Signature",
    "parent-signature",
];

#[test]
fn no_bit_of_a_signature_inside_of_the_body_changes_unseen() {
    let mut tried = 0;
    for case in valid_cases() {
        let Ok(body) = std::str::from_utf8(&case.body) else {
            continue;
        };
        let inside = ["adyen", "midtrans", "mailgun", "aws-sns"].contains(&case.preset.name);
        // A parent's signature stands beside the account's own, which fits as well.
        let is_parent = text(case.vector, "variant") == "parent-signature";
        for name in IN_BODY.iter().filter(|_| inside && !is_parent) {
            let Some((front, rest)) = body.split_once(&format!("\"{name}\"")) else {
                continue;
            };
            let Some((between, rest)) = rest.split_once('"') else {
                continue;
            };
            let Some((value, back)) = rest.split_once('"') else {
                continue;
            };
            let Some((bytes, encode)) = decode(value) else {
                continue;
            };
            for bit in 0..bytes.len() * 8 {
                let changed = encode(&flip(&bytes, bit));
                let body = format!("{front}\"{name}\"{between}\"{changed}\"{back}");
                let body = Bytes::from(body);
                let request = Request {
                    body: &body,
                    ..case.request()
                };
                assert!(
                    !verifies(&case, &request),
                    "{} bit {bit}",
                    text(case.vector, "id")
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 5_000, "only {tried} bits were tried");
}

#[test]
fn no_bit_of_a_decoded_signature_changes_unseen() {
    let mut tried = 0;
    for case in valid_cases() {
        let id = text(case.vector, "id");
        for (name, value) in &case.headers {
            let text = value.to_str().unwrap_or_default();
            for start in runs(text) {
                let (front, run, back) = start;
                let Some((bytes, encode)) = decode(run) else {
                    continue;
                };
                for bit in 0..bytes.len() * 8 {
                    let changed = format!("{front}{}{back}", encode(&flip(&bytes, bit)));
                    let mut headers = case.headers.clone();
                    headers.insert(name, HeaderValue::try_from(changed).unwrap());
                    let request = Request {
                        headers: &headers,
                        ..case.request()
                    };
                    let still = case.prover.verify(&request, case.now_ms(), &case.documents);
                    // Where one signature of several fits, another may change.
                    let has_others = runs(text).len() > 1;
                    assert!(
                        still.is_err() || has_others || !is_signature(&case, name.as_str()),
                        "{id} bit {bit}"
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 10_000, "only {tried} bits were tried");
}

/// Only the headers that a scheme takes the signature from.
fn is_signature(case: &Case<'_>, name: &str) -> bool {
    case.preset
        .schemes
        .iter()
        .any(|scheme| matches!(scheme.signature_spot(), Spot::Header(header) if header == name))
}

type Encode = fn(&[u8]) -> String;

/// Finds the long runs of one encoding in a header's text.
fn runs(text: &str) -> Vec<(&str, &str, &str)> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "+/=".contains(character);
    let mut found = Vec::new();
    let mut start = None;
    for (index, character) in text.char_indices().chain([(text.len(), ' ')]) {
        match (is_part(character), start) {
            (true, None) => start = Some(index),
            (false, Some(from)) => {
                let run = &text[from..index];
                let from = from + run.find("v1=").map_or(0, |at| at + 3);
                let from = from + text[from..index].find("sha256=").map_or(0, |at| at + 7);
                if index - from >= 40 {
                    found.push((&text[..from], &text[from..index], &text[index..]));
                }
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn decode(run: &str) -> Option<(Vec<u8>, Encode)> {
    use base64::Engine as _;
    if let Ok(bytes) = hex::decode(run) {
        return Some((bytes, |bytes| hex::encode(bytes)));
    }
    let bytes = base64::prelude::BASE64_STANDARD.decode(run).ok()?;
    Some((bytes, |bytes| {
        base64::prelude::BASE64_STANDARD.encode(bytes)
    }))
}

#[test]
fn other_spellings_of_a_base64_signature_are_refused() {
    let mut tried = 0;
    for case in valid_cases() {
        for (name, value) in &case.headers {
            let text = value.to_str().unwrap_or_default();
            // Without its padding, and with bits set that no byte holds.
            let Some(front) = text.strip_suffix("=") else {
                continue;
            };
            if !is_signature(&case, name.as_str()) || front.contains(',') {
                continue;
            }
            let last = front.trim_end_matches('=').chars().last().unwrap();
            let loose = format!(
                "{}{}=",
                &front[..front.len() - 1],
                char::from(last as u8 + 1)
            );
            for changed in [
                front.to_owned(),
                loose,
                text.replace('+', "-").replace('/', "_"),
            ] {
                if changed == text {
                    continue;
                }
                let mut headers = case.headers.clone();
                headers.insert(name, HeaderValue::try_from(changed).unwrap());
                let request = Request {
                    headers: &headers,
                    ..case.request()
                };
                assert!(
                    !verifies(&case, &request),
                    "{}",
                    super::text(case.vector, "id")
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "only {tried} spellings were tried");
}

/// Whether one preset's schemes could take the other's requests by right.
fn same_scheme(a: &Preset, b: &Preset) -> bool {
    let is_same = |mine: &Scheme, theirs: &Scheme| mine.shape() == theirs.shape();
    a.schemes
        .iter()
        .any(|mine| b.schemes.iter().any(|theirs| is_same(mine, theirs)))
}

#[test]
fn a_signature_of_one_provider_is_none_of_another() {
    let mut tried = 0;
    for case in valid_cases() {
        let secrets: Vec<Secret> = [text(case.vector, "secret")]
            .into_iter()
            .filter(|secret| !secret.is_empty())
            .map(|secret| Secret::of_any_length(secret.as_bytes()))
            .collect();
        for other in Preset::all().filter(|other| other.name != case.preset.name) {
            let window = super::window(other, &case.vector["params"]);
            let mut settings = case.prover.settings().clone();
            for (name, rule) in &other.settings {
                settings.insert(name, rule.default.clone().unwrap_or_else(|| "x".into()));
            }
            let Ok(prover) = Prover::new(&other.schemes, &secrets, settings, window) else {
                continue;
            };
            let passes = prover
                .verify(&case.request(), case.now_ms(), &case.documents)
                .is_ok();
            let by_right = same_scheme(case.preset, other);
            assert!(
                !passes || by_right,
                "{} passes as {}",
                text(case.vector, "id"),
                other.name
            );
            tried += 1;
        }
    }
    assert!(tried > 3000, "only {tried} pairs were tried");
}

#[test]
fn an_event_of_its_provider_has_its_provider_s_id() {
    for preset in Preset::all() {
        let vector = VECTORS
            .iter()
            .find(|vector| text(vector, "id") == preset.vectors.id)
            .unwrap();
        if !vector["event_id"].is_string() {
            continue;
        }
        match Case::new(vector).outcome() {
            Outcome::Events(events) => assert!(
                events.iter().all(super::read::Event::has_own_id),
                "{}",
                preset.name
            ),
            Outcome::Replied(_) => {}
            other => panic!("{}: {other:?}", preset.name),
        }
    }
}
