//! Requests that nobody signed, against every preset: none is ever taken, and nothing panics on the way.
//!
//! What the source's own secret signs is taken, and no longer when a bit of it has changed.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use sekali_fuzz::{Input, NOW_MS, Source, WINDOW, is_unproven, read};
use sekali_verify::{
    Coverage, NoDocuments, Outgoing, Prove as _, Request, Secret, Suspect, diagnose,
};

/// The search for causes tries some hundred requests.
const MAX_DIAGNOSED_BYTES: usize = 1000;

/// These sign what their bodies mean, and two bodies can mean the same.
const SIGN_A_MEANING: [&str; 2] = ["doku", "twilio"];

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::split(data) else {
        return;
    };
    let (source, request) = (Source::of(input.number), input.request());
    let verified = source
        .prover
        .verify(&request, input.now_ms(), &input.documents);
    let name = source.preset.name;
    let rejection = verified.expect_err("nobody signed it");
    assert!(is_unproven(&rejection), "{name} took it: {rejection:?}");
    if let Some(handshake) = source.prover.handshake(&source.preset.handshakes, &request) {
        let _ = source
            .prover
            .answer(handshake, &request, input.now_ms(), &input.documents);
    }
    read(&source.preset.map, &source.preset.batch, &request);
    match input.is_diagnosed() && data.len() <= MAX_DIAGNOSED_BYTES {
        true => find_no_cause(source, &input),
        false => sign_and_change(source, &request, data.len()),
    }
});

/// No change makes a signature fit that was never made.
fn find_no_cause(source: &Source, input: &Input) {
    let other = Secret::new("fake-secret-of-another-source").expect("long enough");
    let suspect = Suspect {
        schemes: &source.preset.schemes,
        secrets: &source.prover.secrets(),
        others: &[("other".to_owned(), other)],
        settings: source.prover.settings(),
        window: WINDOW,
    };
    let diagnosis = diagnose(&suspect, &input.request(), input.now_ms(), &input.documents);
    let only_missing = |finding: &sekali_verify::Finding| finding.code == "header_missing";
    assert!(
        diagnosis.code != "verified" && diagnosis.findings.iter().all(only_missing),
        "{}: {diagnosis:?}",
        source.preset.name
    );
}

fn sign_and_change(source: &Source, request: &Request<'_>, number: usize) {
    let (preset, prover) = (source.preset, &source.prover);
    let outgoing = Outgoing {
        method: request.method.clone(),
        url: request.url.to_owned(),
        tail: request.tail.to_owned(),
        headers: request.headers.clone(),
        body: request.body.clone(),
    };
    let Ok(signed) = prover.sign_request(outgoing, NOW_MS) else {
        return;
    };
    let Ok(verified) = prover.verify(&signed.request(), NOW_MS, &NoDocuments) else {
        return;
    };
    assert_eq!(verified.body(), &signed.body);
    read(&preset.map, &preset.batch, &signed.request());
    let is_all_signed = preset.covers == Coverage::Body && !SIGN_A_MEANING.contains(&preset.name);
    if is_all_signed && !signed.body.is_empty() {
        let mut changed = signed.body.to_vec();
        let place = number % changed.len();
        changed[place] ^= 1 << (number % 8);
        let changed = Outgoing {
            body: Bytes::from(changed),
            ..signed
        };
        let verified = prover.verify(&changed.request(), NOW_MS, &NoDocuments);
        let rejection = verified.expect_err("the body was changed");
        assert!(is_unproven(&rejection), "{}: {rejection:?}", preset.name);
    }
}
