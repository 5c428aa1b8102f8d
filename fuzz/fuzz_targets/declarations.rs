//! Whatever somebody writes as a preset is read or refused, and what is read can be used.
#![no_main]

use bytes::Bytes;
use http::HeaderMap;
use libfuzzer_sys::fuzz_target;
use sekali_verify::{
    Handshake, Map, NoDocuments, Place, Prove as _, Prover, Request, Scheme, Secret, Settings, Window,
};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(place) = text.parse::<Place>() {
        let printed = place.to_string();
        let again: Place = printed.parse().expect("what is printed can be read");
        assert_eq!(again.to_string(), printed);
    }
    let _ = toml::from_str::<Map>(text);
    let _ = toml::from_str::<Handshake>(text);
    let Ok(scheme) = toml::from_str::<Scheme>(text) else {
        return;
    };
    let secret = Secret::new("fake-9f8b1c7d2e6a4f50").expect("long enough");
    let window = Window {
        past_ms: 1000,
        future_ms: 1000,
    };
    let settings = Settings::default();
    let Ok(prover) = Prover::new(std::slice::from_ref(&scheme), &[secret], settings, window) else {
        return;
    };
    let body = Bytes::from_static(b"{\"id\":1,\"a\":{\"b\":[1,2]}}");
    let unsigned = prover.verify(&Request::post(&HeaderMap::new(), &body), 0, &NoDocuments);
    assert!(unsigned.is_err());
    if let Ok(headers) = prover.sign(&body, 0) {
        let _ = prover.verify(&Request::post(&headers, &body), 0, &NoDocuments);
    }
});
