//! The headers of a delivery that are kept: an allow-list, written as a JSON object, credentials only as their digest.

use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};

/// The longest value that is kept whole, in bytes.
///
/// Every event of a batch keeps the headers of its delivery.
const MAX_VALUE_BYTES: usize = 4096;

/// Which headers are kept, and which of them are credentials.
#[derive(Clone, Debug, Default)]
pub struct KeptHeaders {
    names: Vec<(HeaderName, bool)>,
}

impl KeptHeaders {
    /// Collects the names; whether one is a credential is decided here, once.
    pub(crate) fn new(mut names: Vec<HeaderName>) -> Self {
        names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        names.dedup();
        let names = names.into_iter().map(|name| {
            let is_credential = is_credential(name.as_str());
            (name, is_credential)
        });
        Self {
            names: names.collect(),
        }
    }

    /// Writes the kept headers of a delivery as a JSON object.
    pub(crate) fn write(&self, headers: &HeaderMap) -> String {
        let mut text = String::with_capacity(128);
        text.push('{');
        for (name, is_credential) in &self.names {
            let Some(value) = headers.get(name) else {
                continue;
            };
            let value = match is_credential {
                true => format!("sha256:{}", hex::encode(Sha256::digest(value.as_bytes()))).into(),
                false => String::from_utf8_lossy(value.as_bytes()),
            };
            let value = &value[..value.floor_char_boundary(MAX_VALUE_BYTES)];
            text.push_str(if text.len() == 1 { "\"" } else { ",\"" });
            text.push_str(name.as_str());
            text.push_str("\":");
            // A text always has a JSON form.
            text.push_str(&serde_json::to_string(&value).unwrap_or_default());
        }
        text.push('}');
        text
    }
}

/// Reads kept headers back.
pub(crate) fn read(text: &str) -> HeaderMap {
    let Ok(serde_json::Value::Object(kept)) = serde_json::from_str(text) else {
        return HeaderMap::new();
    };
    let pair = |(name, value): (&String, &serde_json::Value)| {
        let value = HeaderValue::from_str(value.as_str()?).ok()?;
        Some((name.parse::<HeaderName>().ok()?, value))
    };
    kept.iter().filter_map(pair).collect()
}

/// Tells whether a header or a parameter of this name may carry a credential.
pub fn is_credential(name: &str) -> bool {
    const MARKS: [&str; 8] = [
        "authorization",
        "cookie",
        "token",
        "secret",
        "signature",
        "password",
        "api-key",
        "hmac",
    ];
    MARKS.iter().any(|mark| name.contains(mark))
        || name.ends_with("-key") && !name.ends_with("idempotency-key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_kept_as_digests() {
        for name in [
            "authorization",
            "cookie",
            "x-gitlab-token",
            "x-custom-key",
            "x-signature",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["x-webhook-id", "content-type", "x-idempotency-key"] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn only_listed_headers_are_kept_and_read_back() {
        let names = ["x-b", "authorization", "x-a"].map(HeaderName::from_static);
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_static("quote \" and \\"));
        headers.insert("x-other", HeaderValue::from_static("not kept"));
        headers.insert("authorization", HeaderValue::from_static("Bearer fake"));
        let text = KeptHeaders::new(names.into()).write(&headers);
        assert!(
            !text.contains("fake") && !text.contains("not kept"),
            "{text}"
        );
        let back = read(&text);
        assert_eq!(back["x-a"], headers["x-a"]);
        assert!(
            back["authorization"]
                .to_str()
                .unwrap()
                .starts_with("sha256:")
        );
        assert_eq!(back.len(), 2);
    }
}
