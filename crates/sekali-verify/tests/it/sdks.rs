//! Requests that official SDKs signed, recorded once: every one verifies, and with another body none does.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sekali_verify::{NoDocuments, Preset, Prove as _, Prover, Request, Secret, Settings, Window};
use serde_json::Value;

fn verifies(recorded: &Value, body: &str) -> bool {
    let text = |name: &str| recorded[name].as_str().unwrap();
    let preset = Preset::find(text("preset")).unwrap();
    let secrets = [Secret::new(text("secret")).unwrap()];
    let window = Window {
        past_ms: 1000,
        future_ms: 1000,
    };
    let prover = Prover::new(&preset.schemes, &secrets, Settings::default(), window).unwrap();
    let pairs = recorded["headers"].as_object().unwrap().iter();
    let headers: HeaderMap = pairs
        .map(|(name, value)| {
            let value = HeaderValue::from_bytes(value.as_str().unwrap().as_bytes());
            (name.parse::<HeaderName>().unwrap(), value.unwrap())
        })
        .collect();
    let body = Bytes::copy_from_slice(body.as_bytes());
    let request = Request {
        method: &Method::POST,
        url: text("url"),
        tail: "",
        headers: &headers,
        body: &body,
    };
    let now_ms = recorded["now"].as_i64().unwrap() * 1000;
    prover.verify(&request, now_ms, &NoDocuments).is_ok()
}

#[test]
fn what_official_sdks_signed_verifies() {
    let all: Vec<Value> = serde_json::from_str(include_str!("../../testdata/sdk.json")).unwrap();
    assert!(all.len() >= 18);
    for recorded in &all {
        let body = recorded["body"].as_str().unwrap();
        assert!(verifies(recorded, body), "{}", recorded["id"]);
        let tampered = body.replacen('1', "2", 1);
        // A token covers nothing.
        let is_token = recorded["preset"] == "cloudevents";
        assert_eq!(
            verifies(recorded, &tampered),
            is_token,
            "{}",
            recorded["id"]
        );
    }
}
