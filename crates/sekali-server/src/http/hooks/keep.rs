//! Requests with a wrong signature, kept to be looked at with `sekali verify`: never with what would be a credential.
//!
//! A signature is kept as it came, since it is worth nothing for another text. Whatever a token stands in is kept as a
//! digest: where the source's schemes say that one stands, where its name says so, and wherever a configured secret is
//! found. A body in which a token stands is not kept at all.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use sekali::Reason;
use sekali::headers::is_credential;
use sekali::store::KeepRejected;
use sekali_verify::{Prover, Request, Scheme, Secret, Spot};
use sha2::{Digest as _, Sha256};

use super::Hook;

/// Names of parameters that may hold a token and do not say so.
const TOKENS: [&str; 4] = ["code", "k", "key", "sig"];

impl Hook<'_> {
    /// Keeps a request with a wrong signature, where the source wants that.
    pub(super) fn keep(&self, reason: Reason, request: &Request<'_>) {
        let keep = self.source.keep_rejected;
        if keep == 0 {
            return;
        }
        let hidden = Hidden::of(self.source.prover());
        let pairs: Vec<(&str, String)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), hidden.header(name, value)))
            .collect();
        let row = KeepRejected {
            source: self.source.id.clone(),
            at_ms: self.received_at,
            reason,
            method: request.method.to_string(),
            url: hidden.url(request.url, request.tail),
            // Pairs of texts have a JSON form.
            headers: serde_json::to_string(&pairs).unwrap_or_default(),
            body: hidden.body(request.body),
            keep,
        };
        let store = self.app.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.write(row).await {
                tracing::debug!(
                    error = sekali::chain(&error),
                    "a rejected request was not kept"
                );
            }
        });
    }
}

/// What of a request is not kept as it came.
#[derive(Default)]
struct Hidden {
    secrets: Vec<Secret>,
    signatures: Vec<HeaderName>,
    headers: Vec<HeaderName>,
    parameters: Vec<String>,
    has_tail: bool,
    has_body: bool,
}

impl Hidden {
    fn of(prover: Option<&Prover>) -> Self {
        let mut hidden = Self::default();
        let Some(prover) = prover else {
            return hidden;
        };
        hidden.secrets = prover.secrets();
        for scheme in prover.schemes() {
            hidden.add(&scheme, prover);
        }
        hidden
    }

    fn add(&mut self, scheme: &Scheme, prover: &Prover) {
        match (scheme.signature_spot(), scheme.signs_text()) {
            (Spot::Header(name), true) => self.signatures.push(name.clone()),
            (_, true) => {}
            (Spot::Header(name), false) => self.headers.push(name.clone()),
            (Spot::Query(name), false) => {
                self.parameters.extend(prover.settings().expand(name));
            }
            (Spot::Tail(_), false) => self.has_tail = true,
            (Spot::Json(_) | Spot::Form(_), false) => self.has_body = true,
            (_, false) => {}
        }
    }

    fn header(&self, name: &HeaderName, value: &HeaderValue) -> String {
        let is_signature = self.signatures.contains(name);
        let is_named = self.headers.contains(name) || is_credential(name.as_str());
        match !is_signature && (is_named || self.is_in(value.as_bytes())) {
            true => digest(value.as_bytes()),
            false => String::from_utf8_lossy(value.as_bytes()).into(),
        }
    }

    fn url(&self, url: &str, tail: &str) -> String {
        let (front, query) = match url.split_once('?') {
            Some((front, query)) => (front, Some(query)),
            None => (url, None),
        };
        let mut shown = match front.strip_suffix(tail) {
            Some(path) if !tail.is_empty() && (self.has_tail || self.is_in(&decoded(tail))) => {
                path.to_owned() + &digest(tail.as_bytes())
            }
            _ => front.to_owned(),
        };
        for (index, pair) in query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .enumerate()
        {
            shown.push(if index == 0 { '?' } else { '&' });
            shown.push_str(&self.pair(pair));
        }
        shown
    }

    fn pair<'p>(&self, pair: &'p str) -> Cow<'p, str> {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let known = decoded(name);
        let known = String::from_utf8_lossy(&known);
        let is_token = |name: &str| {
            self.parameters.iter().any(|parameter| parameter == name)
                || TOKENS.contains(&name)
                || is_credential(&name.to_ascii_lowercase())
        };
        match is_token(&known) || self.is_in(&decoded(value)) {
            true => format!("{name}={}", digest(value.as_bytes())).into(),
            false => pair.into(),
        }
    }

    fn body(&self, body: &Bytes) -> Bytes {
        match self.has_body || self.is_in(body) {
            true => Bytes::new(),
            false => body.clone(),
        }
    }

    /// Tells whether one of the secrets stands in a text.
    fn is_in(&self, text: &[u8]) -> bool {
        self.secrets.iter().any(|secret| {
            let secret = secret.reveal();
            !secret.is_empty() && text.windows(secret.len()).any(|part| part == secret)
        })
    }
}

fn decoded(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}

fn digest(value: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(value)))
}

#[cfg(test)]
mod tests {
    use sekali_verify::{Settings, Window};

    use super::*;

    const TOKEN: &str = "fake-token-of-a-test";

    fn hidden(schemes: &str, settings: &[(&str, &str)]) -> Hidden {
        #[derive(serde::Deserialize)]
        struct Schemes {
            scheme: Vec<Scheme>,
        }
        let schemes: Schemes = toml::from_str(schemes).unwrap();
        let mut known = Settings::default();
        for (name, value) in settings {
            known.insert(*name, *value);
        }
        let secrets = [Secret::new(TOKEN.as_bytes()).unwrap()];
        let prover = Prover::new(
            &schemes.scheme,
            &secrets,
            known,
            Window {
                past_ms: 300_000,
                future_ms: 300_000,
            },
        )
        .unwrap();
        Hidden::of(Some(&prover))
    }

    #[test]
    fn tokens_are_hidden_where_schemes_read_them() {
        let scheme = |place: &str| {
            let rest = "encoding = \"text\"";
            format!("[[scheme]]\nalgorithm = \"equals\"\nsignature = {{ {place}, {rest} }}")
        };
        let query = hidden(&scheme("query = \"{name}\""), &[("name", "geheim")]);
        let shown = query.url("https://h/hooks/a?geheim=old-one&%67eheim=x&b=2", "");
        assert!(
            !shown.contains("old-one") && !shown.contains("=x"),
            "{shown}"
        );
        assert!(shown.ends_with("&b=2"), "{shown}");
        let tail = hidden(&scheme("tail = 0"), &[]);
        let shown = tail.url("https://h/in/a/old-one?b=2", "old-one");
        assert!(shown.starts_with("https://h/in/a/sha256:") && shown.ends_with("?b=2"));
        let body = hidden(&scheme("json = \"/token\""), &[]);
        assert!(body.body(&Bytes::from_static(b"{}")).is_empty());
        let header = hidden(&scheme("header = \"x-plain\""), &[]);
        let name = HeaderName::from_static("x-plain");
        let shown = header.header(&name, &HeaderValue::from_static("old-one"));
        assert!(shown.starts_with("sha256:"), "{shown}");
    }

    #[test]
    fn a_configured_secret_is_hidden_wherever_it_stands() {
        let scheme = "[[scheme]]\nsigned = [\"body\"]\nalgorithm = \"hmac_sha256\"\n\
            signature = { header = \"x-sign\", encoding = \"hex\" }";
        let hidden = hidden(scheme, &[]);
        for url in [
            format!("https://h/hooks/a/{TOKEN}"),
            format!("https://h/hooks/a?b={TOKEN}"),
            format!("https://h/hooks/a?{}", TOKEN.replace('-', "%2d")),
        ] {
            let tail = url.split("/a/").nth(1).unwrap_or_default();
            assert!(hidden.url(&url, tail).contains("sha256:"), "{url}");
        }
        let other = HeaderName::from_static("x-other");
        let value = |text: &str| HeaderValue::from_str(text).unwrap();
        assert!(hidden.header(&other, &value(TOKEN)).starts_with("sha256:"));
        assert_eq!(hidden.header(&other, &value("plain")), "plain");
        let signature = HeaderName::from_static("x-sign");
        assert_eq!(hidden.header(&signature, &value("00ff")), "00ff");
        assert!(hidden.body(&Bytes::from(format!("a{TOKEN}b"))).is_empty());
        assert_eq!(hidden.body(&Bytes::from_static(b"plain")), "plain");
    }
}
