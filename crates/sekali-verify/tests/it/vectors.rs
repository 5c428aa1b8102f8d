//! The vectors of 57 providers: published examples, and requests computed after the official algorithms.
//!
//! Each is proven, asked for a handshake, and read, and everything that its file states is compared.

use std::sync::LazyLock;

use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sekali_verify::{
    KeyDocument, KeyDocuments, Preset, Prove as _, Prover, Rejection, Reply, Request, Secret,
    SignatureProblem, StaleReason, Verified, Window,
};
use serde_json::Value;

mod bits;
mod read;

use read::Event;

/// All vectors, as they stand in the file.
pub(crate) static VECTORS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let text = include_str!("../../testdata/vectors.json");
    serde_json::from_str(text).expect("the file is JSON")
});

/// One vector, ready to be asked.
struct Case<'v> {
    vector: &'v Value,
    preset: &'static Preset,
    prover: Prover,
    method: Method,
    url: String,
    tail: String,
    headers: HeaderMap,
    body: Bytes,
    documents: Documents,
}

/// What the key addresses answer.
struct Documents {
    text: Option<String>,
}

impl KeyDocuments for Documents {
    fn find(&self, _: &KeyDocument) -> Option<Bytes> {
        self.text.clone().map(Bytes::from)
    }

    fn checks_certificates(&self) -> bool {
        false
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

impl<'v> Case<'v> {
    fn new(vector: &'v Value) -> Self {
        let preset = Preset::find(text(vector, "provider")).expect("every provider has a preset");
        let params = &vector["params"];
        let body = match &vector["body_base64"] {
            Value::String(text) => base64::prelude::BASE64_STANDARD.decode(text).unwrap(),
            _ => text(vector, "body").as_bytes().to_vec(),
        };
        let url = params["public_url"].as_str().unwrap_or(text(vector, "url"));
        let tail = match params["path_template"].as_str() {
            Some(template) => {
                let front = &template[..template.find('{').unwrap()];
                let path = url.split("://").nth(1).unwrap();
                let path = path[path.find('/').unwrap()..].split('?').next().unwrap();
                path.strip_prefix(front).unwrap().to_owned()
            }
            None => String::new(),
        };
        let document = match (&params["cert_pem"], &params["jwks"]) {
            (Value::String(pem), _) => Some(pem.clone()),
            (_, Value::Null) => None,
            (_, set) => Some(set.to_string()),
        };
        Self {
            preset,
            prover: prover(vector, preset, params),
            method: text(vector, "method").parse().unwrap(),
            url: url.to_owned(),
            tail,
            headers: headers(&vector["headers"]),
            body: body.into(),
            documents: Documents { text: document },
            vector,
        }
    }

    fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            url: &self.url,
            tail: &self.tail,
            headers: &self.headers,
            body: &self.body,
        }
    }

    fn now_ms(&self) -> i64 {
        self.vector["now"].as_i64().unwrap() * 1000
    }

    fn verify(&self) -> Result<Verified, Rejection> {
        self.prover
            .verify(&self.request(), self.now_ms(), &self.documents)
    }

    /// Goes the way of a request: handshake, proof, event.
    fn outcome(&self) -> Outcome {
        let request = self.request();
        let handshake = self.prover.handshake(&self.preset.handshakes, &request);
        if let Some(handshake) = handshake {
            if handshake.is_verified()
                && let Err(rejection) = self.verify()
            {
                return Outcome::Rejected(word(&rejection));
            }
            let reply = self
                .prover
                .answer(handshake, &request, self.now_ms(), &self.documents);
            return match reply {
                Ok(reply) => Outcome::Replied(reply),
                Err(rejection) => Outcome::Rejected(word(&rejection)),
            };
        }
        match self.verify() {
            Ok(verified) => match read::events(self, verified.body()) {
                Ok(events) => Outcome::Events(events),
                Err(word) => Outcome::Unread(word),
            },
            Err(rejection) => Outcome::Rejected(word(&rejection)),
        }
    }
}

fn prover(vector: &Value, preset: &Preset, params: &Value) -> Prover {
    let mut settings = preset.defaults();
    // The vectors are of topics that were never configured.
    settings.insert("topics", "*");
    for (name, value) in params.as_object().into_iter().flatten() {
        match value {
            Value::String(text) => settings.insert(name, text),
            Value::Array(all) => {
                let words: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                settings.insert(name, words.join(" "));
            }
            _ => {}
        }
    }
    let secrets: Vec<Secret> = match &params["secrets"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(of).collect(),
        _ => Some(text(vector, "secret"))
            .filter(|secret| !secret.is_empty())
            .map(of)
            .into_iter()
            .collect(),
    };
    // PayPal's and SNS's keys come from outside: what the vector calls secret is a setting.
    let secrets =
        match preset.schemes.iter().all(|scheme| scheme.is_asymmetric()) && !secrets.is_empty() {
            true if Prover::new(
                &preset.schemes,
                &secrets,
                settings.clone(),
                window(preset, params),
            )
            .is_err() =>
            {
                Vec::new()
            }
            _ => secrets,
        };
    Prover::new(&preset.schemes, &secrets, settings, window(preset, params))
        .unwrap_or_else(|problem| panic!("{}: {problem}", text(vector, "id")))
}

fn of(secret: &str) -> Secret {
    Secret::of_any_length(secret.as_bytes())
}

fn window(preset: &Preset, params: &Value) -> Window {
    let ms = |span: sekali_verify::Span| i64::try_from(span.0.as_millis()).unwrap();
    let past_ms = match params["tolerance"].as_i64() {
        Some(seconds) => seconds * 1000,
        None => preset.tolerance.map_or(300_000, ms),
    };
    Window {
        past_ms,
        future_ms: preset.tolerance_future.map_or(past_ms, ms),
    }
}

fn headers(value: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in value.as_object().unwrap() {
        let name: HeaderName = name.parse().unwrap();
        let values = match value {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            value => vec![value.as_str().unwrap()],
        };
        for value in values {
            headers.append(
                name.clone(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
    }
    headers
}

/// What became of a vector.
#[derive(Debug)]
enum Outcome {
    Events(Vec<Event>),
    Unread(&'static str),
    Replied(Reply),
    Rejected(&'static str),
}

impl Outcome {
    /// The word that the file has for it.
    fn word(&self) -> &'static str {
        match self {
            Self::Events(_) => "valid",
            Self::Unread(word) | Self::Rejected(word) => word,
            Self::Replied(reply) if reply.is_answered => "challenge",
            Self::Replied(_) => "rejected_challenge",
        }
    }
}

fn word(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Signature(SignatureProblem::Missing) => "missing_header",
        Rejection::Signature(SignatureProblem::Malformed | SignatureProblem::TooMany) => {
            "malformed"
        }
        Rejection::Signature(SignatureProblem::UntrustedKey) => "untrusted_key",
        Rejection::Signature(_) => "invalid_signature",
        Rejection::Timestamp(_) => "malformed",
        Rejection::Stale(stale) if stale.reason() == StaleReason::InFuture => "future",
        Rejection::Stale(_) => "expired",
        Rejection::KeyNeeded(_) => "key_needed",
    }
}

fn accepted(vector: &Value) -> Vec<&str> {
    let also = vector["accept"].as_array().into_iter().flatten();
    std::iter::once(text(vector, "expect"))
        .chain(also.filter_map(Value::as_str))
        .collect()
}

#[test]
fn every_vector_has_its_outcome() {
    let mut wrong = Vec::new();
    for vector in VECTORS.iter() {
        let case = Case::new(vector);
        let outcome = case.outcome();
        if !accepted(vector).contains(&outcome.word()) {
            wrong.push(format!(
                "{}: {} instead of {:?}",
                text(vector, "id"),
                outcome.word(),
                accepted(vector)
            ));
            continue;
        }
        wrong.extend(
            differences(&case, &outcome)
                .into_iter()
                .map(|line| format!("{}: {line}", text(vector, "id"))),
        );
    }
    assert_eq!(VECTORS.len(), 332);
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Compares everything that a vector states.
fn differences(case: &Case<'_>, outcome: &Outcome) -> Vec<String> {
    let response = &case.vector["response"];
    match outcome {
        Outcome::Events(events) => {
            let mut lines = read::differences(case.vector, events);
            if !response.is_null() {
                lines.extend(answer_differences(case.preset, response));
            }
            lines
        }
        Outcome::Replied(reply) => reply_differences(reply, response),
        Outcome::Rejected(_) if response["status"].is_number() => {
            let answer = &case.preset.answer;
            let status = answer.refused.unwrap_or(401);
            let body = answer.refused_body.as_deref();
            let mut lines = differ("status", &response["status"], &status.into());
            lines.extend(differ("body", &response["body"], &body.into()));
            lines
        }
        _ => Vec::new(),
    }
}

fn differ(what: &str, wanted: &Value, given: &Value) -> Vec<String> {
    match wanted.is_null() || wanted == given {
        true => Vec::new(),
        false => vec![format!("{what} is {given} instead of {wanted}")],
    }
}

/// The answer to an event is the preset's own.
fn answer_differences(preset: &Preset, response: &Value) -> Vec<String> {
    let answer = &preset.answer;
    let mut lines = differ(
        "status",
        &response["status"],
        &answer.status.unwrap_or(202).into(),
    );
    lines.extend(differ(
        "body",
        &response["body"],
        &answer.body.as_deref().into(),
    ));
    lines.extend(differ(
        "content_type",
        &response["content_type"],
        &answer.content_type.as_deref().into(),
    ));
    lines
}

fn reply_differences(reply: &Reply, response: &Value) -> Vec<String> {
    let header = |name: &str| {
        reply
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let mut lines = differ("status", &response["status"], &reply.status.into());
    lines.extend(differ(
        "content_type",
        &response["content_type"],
        &header("content-type").into(),
    ));
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        lines.extend(differ(name, value, &header(name).into()));
    }
    let body = String::from_utf8(reply.body.to_vec()).unwrap();
    lines.extend(differ("body", &response["body"], &body.clone().into()));
    if !response["json"].is_null() {
        let given: Value = serde_json::from_str(&body).unwrap_or_default();
        lines.extend(differ("json", &response["json"], &given));
    }
    if !response["action"].is_null() {
        let url = reply.confirm.as_ref().map(|(url, _)| url.clone());
        lines.extend(differ("action", &response["action"]["url"], &url.into()));
    }
    lines
}

#[test]
fn every_preset_names_vectors_that_check_it() {
    for preset in Preset::all() {
        let find = |id: &str| VECTORS.iter().find(|vector| text(vector, "id") == id);
        let of = |id: &str| {
            let vector = find(id).unwrap_or_else(|| panic!("{}: no vector {id}", preset.name));
            assert_eq!(text(vector, "provider"), preset.name, "{id}");
            text(vector, "expect")
        };
        assert!(
            ["valid", "challenge"].contains(&of(&preset.vectors.id)),
            "{}",
            preset.name
        );
        let refusal = of(&preset.vectors.refusal);
        assert!(
            !["valid", "challenge"].contains(&refusal),
            "{}",
            preset.name
        );
        assert!(
            !preset.confirmed.is_empty() && !preset.secret.is_empty(),
            "{}",
            preset.name
        );
    }
    assert!(Preset::names().count() >= 57);
}

#[test]
fn coverage_and_replay_guard_are_what_the_schemes_say() {
    for preset in Preset::all() {
        let least = preset
            .schemes
            .iter()
            .map(|scheme| scheme.coverage())
            .min()
            .unwrap();
        assert_eq!(preset.covers, least, "{} covers", preset.name);
        let covers_all = least == sekali_verify::Coverage::Body;
        assert_eq!(
            covers_all,
            preset.uncovered.is_empty(),
            "{} uncovered",
            preset.name
        );
        assert_eq!(
            preset.id_signed,
            preset.signs_ids(),
            "{} id_signed",
            preset.name
        );
        let guard = covers_all && !preset.id_signed && preset.batch.is_empty();
        assert_eq!(guard, preset.replay_guard, "{} replay_guard", preset.name);
    }
}
