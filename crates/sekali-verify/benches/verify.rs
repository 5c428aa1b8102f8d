//! What verification costs beyond the hash itself, for a body of 1 KB.
//!
//! Beside every scheme stands the bare HMAC over exactly the text that it signs, with the key already in it, measured in
//! the same rounds. That text is written out here by hand and held against what the proof says was signed.
//!
//! ```text
//! cargo bench -p sekali-verify --bench verify -- [--rounds N] [--calls N]
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints figures")]
#![expect(clippy::unwrap_used, reason = "a step that fails may end it")]

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue, header};
use sekali_verify::{
    NoDocuments, Outgoing, Preset, Prove as _, Prover, Scheme, Secret, Settings, Window,
};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// What may be added to the hash.
const LIMIT_NS: f64 = 5000.0;

const NOW_MS: i64 = 1_767_225_600_000;
const NOW_S: &str = "1767225600";
const URL: &str = "https://hooks.example.test/hooks/x";
const SECRET: &str = "fake-secret-of-the-bench";

/// A signed request, and the text that its signature is of.
struct Case {
    name: &'static str,
    prover: Prover,
    signed: Outgoing,
    text: Vec<Bytes>,
    is_sha1: bool,
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |name: &str, default: usize| {
        let place = words.iter().position(|word| word == name);
        place
            .and_then(|place| words.get(place + 1)?.parse().ok())
            .unwrap_or(default)
    };
    let (rounds, calls) = (
        number("--rounds", 11).max(1),
        number("--calls", 20_000).max(1),
    );
    println!(
        "{:<20} {:>5} {:>7} {:>7} {:>7} {:>6}   {:>7} {:>7}",
        "1 KB, ns per call", "bytes", "hash", "verify", "beyond", "ratio", "best", "beyond"
    );
    let mut most = f64::MIN;
    for case in cases() {
        case.check();
        most = most.max(case.measure(rounds, calls));
    }
    let verdict = if most < LIMIT_NS { "under" } else { "OVER" };
    println!(
        "\nat most {:.2} µs beyond the hash: {verdict} {:.0} µs",
        most / 1000.0,
        LIMIT_NS / 1000.0
    );
}

fn cases() -> Vec<Case> {
    let body = body();
    let dot = || Bytes::from_static(b".");
    let now = || Bytes::from_static(NOW_S.as_bytes());
    let url = || Bytes::from_static(URL.as_bytes());
    let one = |text: &'static str| Bytes::from_static(text.as_bytes());
    let json = |name, text| Case::new(name, SECRET, &body, text);
    let form = Bytes::from(format!("Body={}&MessageSid=SM1", "x".repeat(1004)));
    let sorted = Bytes::from(format!("Body{}MessageSidSM1", "x".repeat(1004)));
    let whsec = "whsec_ZmFrZS1zZWNyZXQtb2YtdGhlLWJlbmNo";
    let id = Bytes::from(format!("id_{}", hex::encode(&Sha256::digest(&body)[..12])));
    let hex = "66616b652d7365637265742d6f662d7468652d62656e6368";
    vec![
        json("timestamped", vec![now(), dot(), body.clone()]),
        json("stripe", vec![now(), dot(), body.clone()]),
        json("github", vec![body.clone()]),
        json("slack", vec![one("v0:"), now(), one(":"), body.clone()]),
        Case::new(
            "standard-webhooks",
            whsec,
            &body,
            vec![id, dot(), now(), dot(), body.clone()],
        ),
        json(
            "hubspot",
            vec![one("POST"), url(), body.clone(), one("1767225600000")],
        ),
        Case::new("twilio", SECRET, &form, vec![url(), sorted]),
        Case::new(
            "adyen",
            hex,
            &items(),
            vec![one("p::m::100:EUR:AUTHORISATION:true")],
        ),
    ]
}

/// A JSON body of 1 KB.
fn body() -> Bytes {
    fill(
        r#"{"id":"evt_1","type":"charge.succeeded","created":1767225600,"text":""#,
        "\"}",
    )
}

/// A body of 1 KB with an item that carries its own signature.
fn items() -> Bytes {
    let front = concat!(
        r#"{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"p","#,
        r#""merchantAccountCode":"m","amount":{"value":100,"currency":"EUR"},"#,
        r#""eventCode":"AUTHORISATION","success":"true","reason":""#
    );
    fill(front, r#"","additionalData":{}}}]}"#)
}

fn fill(front: &str, end: &str) -> Bytes {
    let rest = "x".repeat(1024 - front.len() - end.len());
    format!("{front}{rest}{end}").into()
}

impl Case {
    fn new(name: &'static str, secret: &str, body: &Bytes, text: Vec<Bytes>) -> Self {
        let preset = Preset::find(name);
        let schemes = preset.map_or(vec![Scheme::standard()], |preset| preset.schemes.clone());
        let window = Window {
            past_ms: 300_000,
            future_ms: 300_000,
        };
        let secrets = [Secret::new(secret).unwrap()];
        let prover = Prover::new(&schemes, &secrets, Settings::default(), window).unwrap();
        let kind = match name {
            "twilio" => "application/x-www-form-urlencoded",
            _ => "application/json",
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let request = Outgoing::post(URL, headers, body.clone());
        Self {
            name,
            signed: prover.sign_request(request, NOW_MS).unwrap(),
            prover,
            text,
            is_sha1: name == "twilio",
        }
    }

    /// Makes sure that the bare hash is taken of what is signed.
    fn check(&self) {
        let request = self.signed.request();
        let verified = self.prover.verify(&request, NOW_MS, &NoDocuments).unwrap();
        let mut digest = Sha256::new();
        self.text.iter().for_each(|piece| digest.update(piece));
        let digest: [u8; 32] = digest.finalize().into();
        assert_eq!(verified.signed_digest(), digest, "{}", self.name);
    }

    /// Prints a line, medians and then the best rounds, and returns what is added to the hash in the median.
    fn measure(&self, rounds: usize, calls: usize) -> f64 {
        let (mut hashes, mut proofs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            hashes.push(match self.is_sha1 {
                true => bare::<Hmac<Sha1>>(&self.text, calls),
                false => bare::<Hmac<Sha256>>(&self.text, calls),
            });
            proofs.push(nanoseconds(calls, || {
                let request = black_box(&self.signed).request();
                let verified = self.prover.verify(&request, NOW_MS, &NoDocuments);
                assert!(black_box(verified).is_ok());
            }));
        }
        let (hash, proof) = (median(&mut hashes), median(&mut proofs));
        println!(
            "{:<20} {:>5} {hash:>7.0} {proof:>7.0} {:>7.0} {:>6.2}   {:>7.0} {:>7.0}",
            self.name,
            self.text.iter().map(Bytes::len).sum::<usize>(),
            proof - hash,
            proof / hash,
            proofs[0],
            proofs[0] - hashes[0],
        );
        proof - hash
    }
}

/// Measures the bare hash over a text.
fn bare<M: Mac + KeyInit + Clone>(text: &[Bytes], calls: usize) -> f64 {
    let keyed = <M as KeyInit>::new_from_slice(SECRET.as_bytes()).unwrap();
    nanoseconds(calls, || {
        let mut mac = keyed.clone();
        for piece in black_box(text) {
            mac.update(piece);
        }
        black_box(mac.finalize());
    })
}

fn nanoseconds(calls: usize, mut call: impl FnMut()) -> f64 {
    let started = Instant::now();
    for _ in 0..calls {
        call();
    }
    started.elapsed().as_nanos() as f64 / calls as f64
}

/// Sorts, and takes the middle.
fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
