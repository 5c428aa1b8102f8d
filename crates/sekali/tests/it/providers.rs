//! Sources made from presets, and sources that are proven by code of their own.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use sekali::identify::{Arrival, identify};
use sekali::{Source, SourceConfig};
use sekali_verify::{
    Coverage, KeyDocument, KeyDocuments, NoDocuments, Proof, Prove, Rejection, Request,
    SignatureProblem,
};
use serde_json::Value;

fn build(text: &str) -> Source {
    let config: SourceConfig = toml::from_str(text).unwrap();
    Source::build(config, &|_| Ok(b"a-secret-of-this-test".to_vec())).unwrap()
}

struct KeySet(String);

impl KeyDocuments for KeySet {
    fn find(&self, document: &KeyDocument) -> Option<Bytes> {
        assert_eq!(document.url, "https://www.googleapis.com/oauth2/v3/certs");
        Some(self.0.clone().into())
    }
}

#[test]
fn two_messages_with_one_token_are_two_events() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../../sekali-verify/testdata/vectors.json")).unwrap();
    let vector = vectors
        .iter()
        .find(|vector| vector["id"] == "google-pubsub-001")
        .unwrap();
    let text = |name: &str| vector["params"][name].as_str().unwrap();
    let source = build(&format!(
        "id = \"pubsub\"\npreset = \"google-pubsub\"\nsettings = {{ audience = \"{}\", email = \"{}\" }}",
        text("audience"),
        text("email")
    ));
    let token = vector["headers"]["Authorization"].as_str().unwrap();
    let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, token.parse().unwrap())]);
    let now_ms = vector["now"].as_i64().unwrap() * 1000;
    let keys = KeySet(vector["params"]["jwks"].to_string());
    let mut ids = Vec::new();
    for number in 1..=2 {
        let body = format!(r#"{{"message":{{"messageId":"m-{number}","data":""}}}}"#);
        let body = Bytes::from(body);
        let request = Request::post(&headers, &body);
        let verified = source.verify(&request, now_ms, &keys).unwrap();
        let arrival = Arrival {
            headers: &headers,
            url: Some(request),
            now_ms,
        };
        let events = identify(&source, &verified, arrival).unwrap();
        assert!(events.iter().all(|event| event.replay_key.is_none()));
        ids.extend(events.into_iter().map(|event| event.event_id));
    }
    assert_eq!(ids, ["m-1", "m-2"]);
    // Without its keys nothing is valid.
    let body = Bytes::from_static(b"{}");
    let refused = source.verify(&Request::post(&headers, &body), now_ms, &NoDocuments);
    assert!(matches!(refused, Err(Rejection::KeyNeeded(_))));
}

/// Believes whoever says the magic word.
#[derive(Debug)]
struct MagicWord;

impl Prove for MagicWord {
    fn prove(
        &self,
        request: &Request<'_>,
        now_ms: i64,
        _: &dyn KeyDocuments,
    ) -> Result<Proof, Rejection> {
        match request
            .headers
            .get("x-word")
            .map(http::HeaderValue::as_bytes)
        {
            Some(b"please") => {
                let proof = Proof::new(vec![request.body.clone()], Coverage::Nothing);
                Ok(proof.signed_at(now_ms - 5, now_ms))
            }
            Some(_) => Err(SignatureProblem::WrongSignature.into()),
            None => Err(SignatureProblem::Missing.into()),
        }
    }

    fn coverage(&self) -> Coverage {
        Coverage::Nothing
    }

    fn signs_time(&self) -> bool {
        true
    }
}

#[test]
fn a_source_can_be_proven_by_code_of_ones_own() {
    let source = build("id = \"own\"\nunsigned = true\nmap = { event_id = \"/id\" }");
    assert!(!source.is_signed());
    let source = source.proven_by(Arc::new(MagicWord));
    assert!(source.is_signed() && !source.has_replay_guard());
    let body = Bytes::from_static(b"{\"id\":\"e\"}");
    let outcome = |word: Option<&'static str>| {
        let word = word.map(|word| {
            (
                http::HeaderName::from_static("x-word"),
                word.parse().unwrap(),
            )
        });
        let headers: HeaderMap = word.into_iter().collect();
        source.verify(&Request::post(&headers, &body), 100, &NoDocuments)
    };
    let verified = outcome(Some("please")).unwrap();
    assert_eq!(
        (verified.signed_at_ms(), verified.drift_ms()),
        (Some(95), Some(5))
    );
    assert_eq!(outcome(Some("now")).unwrap_err().code(), "signature_wrong");
    assert_eq!(outcome(None).unwrap_err().code(), "signature_missing");
}

#[test]
fn what_a_source_says_replaces_what_its_preset_says() {
    let source = build(
        "id = \"s\"\npreset = \"stripe\"\nsecrets = [\"x\"]\nunusable = \"refuse\"\nvolatile = []\n\
         answer = { status = 200, refused = 403 }\n[map]\nevent_id = \"/data/id\"\n",
    );
    assert_eq!(source.unusable, sekali_verify::Unusable::Refuse);
    assert_eq!(
        (source.answers.accepted, source.answers.refused),
        (200, 403)
    );
    let body =
        Bytes::from_static(b"{\"id\":\"not-this\",\"type\":\"t\",\"data\":{\"id\":\"this\",\"object\":{\"id\":\"c\"}}}");
    let headers = source.prover().unwrap().sign(&body, 0).unwrap();
    let verified = source
        .verify(&Request::post(&headers, &body), 0, &NoDocuments)
        .unwrap();
    let arrival = Arrival {
        headers: &headers,
        url: None,
        now_ms: 0,
    };
    let events = identify(&source, &verified, arrival).unwrap();
    assert_eq!(
        (events[0].event_id.as_str(), events[0].event_type.as_str()),
        ("this", "t")
    );
}

#[test]
fn joined_ids_that_are_too_long_become_their_digest() {
    let source = build("id = \"j\"\nunsigned = true\nmap = { event_id = \"{/a}:{/b}\" }");
    let id = |a: &str, b: &str| {
        let body = Bytes::from(format!("{{\"a\":\"{a}\",\"b\":\"{b}\"}}"));
        let headers = HeaderMap::new();
        let arrival = Arrival {
            headers: &headers,
            url: None,
            now_ms: 0,
        };
        let verified = sekali_verify::Verified::unsigned(body);
        identify(&source, &verified, arrival).map(|mut events| events.remove(0).event_id)
    };
    assert_eq!(id("x", "y").unwrap(), "x:y");
    let long = "x".repeat(300);
    let digest = id(&long, "y").unwrap();
    assert!(digest.starts_with("sha256:") && digest.len() == 71);
    // Where one part ends and the next begins is part of it.
    assert_ne!(
        id(&format!("{long}:"), "y").unwrap(),
        id(&long, ":y").unwrap()
    );
}
