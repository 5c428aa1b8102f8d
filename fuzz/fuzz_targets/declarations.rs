//! Whatever somebody writes as a scheme, handshake, map, preset or place is read or refused, and what is read can be used.
//!
//! The first byte says which of them the rest is.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sekali_fuzz::{Input, NOW_MS, WINDOW, is_unproven, read, secrets};
use sekali_verify::{
    Handshake, Map, NoDocuments, Outgoing, Pattern, Place, Preset, Prove as _, Prover, Request,
    Scheme, Settings,
};

/// Requests that have something at the places of most providers.
static INPUTS: LazyLock<[Input; 4]> = LazyLock::new(|| {
    [
        &include_bytes!("requests/json")[..],
        &include_bytes!("requests/form")[..],
        &include_bytes!("requests/xml")[..],
        &include_bytes!("requests/get")[..],
    ]
    .map(|text| Input::split(text).expect("a request"))
});

fn requests() -> impl Iterator<Item = Request<'static>> {
    INPUTS.iter().map(Input::request)
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match kind {
        b's' => with_parsed(text, |scheme: Scheme| use_schemes(&[scheme], &[])),
        b'h' => with_parsed(text, |handshake: Handshake| {
            use_schemes(&[Scheme::standard()], &[handshake]);
        }),
        b'm' => with_parsed(text, |map: Map| {
            requests().for_each(|request| read(&map, &[], &request));
            let standard = &Preset::find("stripe").expect("a preset").map;
            requests().for_each(|request| read(&map.clone().or(standard), &[], &request));
        }),
        b'p' => with_parsed(text, use_preset),
        _ => text.lines().take(8).for_each(use_place),
    }
});

/// Reads a declaration; what is wrong with it can be told.
fn with_parsed<T: serde::de::DeserializeOwned>(text: &str, then: impl FnOnce(T)) {
    match toml::from_str(text) {
        Ok(declared) => then(declared),
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
}

fn use_preset(preset: Preset) {
    let _ = (preset.window(), preset.signs_ids(), preset.can_sign());
    use_schemes(&preset.schemes, &preset.handshakes);
    requests().for_each(|request| read(&preset.map, &preset.batch, &request));
}

fn use_schemes(schemes: &[Scheme], handshakes: &[Handshake]) {
    let named = ["query", "public_key", "audience", "email", "a"];
    let settings: Settings = named.iter().map(|name| (*name, "fake")).collect();
    let secrets = secrets(schemes, &settings);
    let Ok(prover) = Prover::new(schemes, &secrets, settings, WINDOW) else {
        return;
    };
    let _ = (
        prover.coverage(),
        prover.signs_time(),
        prover.fetches_keys(),
    );
    for request in requests() {
        let verified = prover.verify(&request, NOW_MS, &NoDocuments);
        let rejection = verified.expect_err("nobody signed it");
        assert!(is_unproven(&rejection), "{rejection:?}");
        if let Some(handshake) = prover.handshake(handshakes, &request) {
            let _ = prover.answer(handshake, &request, NOW_MS, &NoDocuments);
        }
        let outgoing = Outgoing {
            method: request.method.clone(),
            url: request.url.to_owned(),
            tail: request.tail.to_owned(),
            headers: request.headers.clone(),
            body: request.body.clone(),
        };
        if let Ok(signed) = prover.sign_request(outgoing, NOW_MS) {
            let _ = prover.verify(&signed.request(), NOW_MS, &NoDocuments);
        }
    }
}

/// A place is printed as it was read.
fn use_place(text: &str) {
    let _ = Pattern::try_from(text.to_owned());
    let Ok(place) = text.parse::<Place>() else {
        return;
    };
    let printed = place.to_string();
    let again: Place = printed.parse().expect("what is printed can be read");
    assert_eq!(again, place, "{printed}");
    let map = Map {
        scope: Some(sekali_verify::Places(vec![place])),
        ..Map::default()
    };
    requests().for_each(|request| read(&map, &[], &request));
}
