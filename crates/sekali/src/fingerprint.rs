//! The fingerprint: whether two deliveries of one event id carry the same content although their bytes differ.
//!
//! It is the SHA-256 of the canonical JSON: keys sorted bytewise, numbers as written (`1` and `1.0` differ: they never
//! pass through a float), text decoded, without the paths that the source lists as volatile. It carries the revision of
//! that list, so that a stored fingerprint of an older list is recognized and made again from the payload.

use sekali_verify::{Json, Pointer};
use sha2::{Digest as _, Sha256};

use crate::event::{Fingerprint, Hash};
use crate::source::{FingerprintRule, volatile_revision};

/// Makes fingerprints by one source's rule.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprinter {
    rule: FingerprintRule,
    volatile: Vec<Pointer>,
    revision: [u8; 4],
}

impl Fingerprinter {
    pub(crate) fn new(rule: FingerprintRule, volatile: Vec<Pointer>) -> Self {
        let mut revision = volatile_revision(&volatile);
        // The rule is part of the revision: a raw fingerprint is never compared with a canonical one.
        revision[3] = (revision[3] & 0xfe) | u8::from(rule == FingerprintRule::Raw);
        Self {
            rule,
            volatile,
            revision,
        }
    }

    /// Makes the fingerprint of a parsed body; content that is no JSON is compared by its bytes.
    pub(crate) fn of(&self, json: Option<&Json<'_>>, payload_hash: Hash) -> Fingerprint {
        let digest = match (self.rule, json) {
            (FingerprintRule::Canonical, Some(json)) => {
                let volatile: Vec<&[String]> = self.volatile.iter().map(Pointer::tokens).collect();
                let mut canon = Canon {
                    sha: Sha256::new(),
                    buffer: Vec::with_capacity(1024),
                };
                canon.write(json, &volatile);
                canon.finish()
            }
            _ => payload_hash,
        };
        Fingerprint {
            revision: self.revision,
            digest,
        }
    }

    /// Tells whether a stored body carries the same content as a fingerprint made now.
    pub(crate) fn matches_body(
        &self,
        fingerprint: Fingerprint,
        body: &[u8],
        payload_hash: Hash,
    ) -> bool {
        let json = Json::parse(body);
        self.of(json.as_ref().ok(), payload_hash) == fingerprint
    }
}

struct Canon {
    sha: Sha256,
    buffer: Vec<u8>,
}

impl Canon {
    /// Writes a value so that no two different values have the same bytes: every part is tagged, text has its length.
    fn write(&mut self, json: &Json<'_>, volatile: &[&[String]]) {
        match json {
            Json::Null => self.put(b'z', b""),
            Json::Bool(value) => self.put(if *value { b't' } else { b'f' }, b""),
            Json::Number(text) => self.put(b'n', text.as_bytes()),
            Json::String(text) => self.put(b's', text.as_bytes()),
            Json::Array(items) => {
                self.put(b'a', &items.len().to_le_bytes());
                for (index, item) in items.iter().enumerate() {
                    let inner = below(volatile, || index.to_string());
                    match inner.iter().any(|rest| rest.is_empty()) {
                        true => self.put(b'v', b""),
                        false => self.write(item, &inner),
                    }
                }
            }
            Json::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
                self.put(b'o', b"");
                for (key, value) in sorted {
                    let inner = below(volatile, || {
                        String::from_utf8_lossy(key.as_bytes()).into_owned()
                    });
                    if inner.iter().any(|rest| rest.is_empty()) {
                        continue;
                    }
                    self.put(b'k', key.as_bytes());
                    self.write(value, &inner);
                }
                self.put(b'e', b"");
            }
        }
    }

    fn put(&mut self, tag: u8, bytes: &[u8]) {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.buffer.push(tag);
        self.buffer.extend_from_slice(&len.to_le_bytes());
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > 16 * 1024 {
            self.sha.update(&self.buffer);
            self.buffer.clear();
        }
    }

    fn finish(mut self) -> Hash {
        self.sha.update(&self.buffer);
        self.sha.finalize().into()
    }
}

/// Returns what is left of the volatile paths below one key; an empty rest means the key itself is volatile.
fn below<'a>(volatile: &[&'a [String]], key: impl FnOnce() -> String) -> Vec<&'a [String]> {
    if volatile.is_empty() {
        return Vec::new();
    }
    let key = key();
    volatile
        .iter()
        .filter_map(|path| path.split_first())
        .filter(|(first, _)| **first == key)
        .map(|(_, rest)| rest)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(body: &str, volatile: &[&str]) -> Hash {
        let volatile = volatile.iter().map(|path| path.parse().unwrap()).collect();
        let maker = Fingerprinter::new(FingerprintRule::Canonical, volatile);
        maker
            .of(Some(&Json::parse(body.as_bytes()).unwrap()), [0; 32])
            .digest
    }

    #[test]
    fn order_blanks_and_escapes_do_not_matter() {
        let first = print(r#"{"a":1,"b":["x",{"c":null}]}"#, &[]);
        assert_eq!(
            first,
            print("{ \"b\" : [\"\\u0078\", {\"c\":null}],\n \"a\":1}", &[])
        );
    }

    #[test]
    fn other_values_have_other_fingerprints() {
        let bodies = [
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":[1]}"#,
            r#"{"a":null}"#,
            r#"{}"#,
            r#"[]"#,
            r#"{"a":{}}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\ufffd"}"#,
            r#"{"ab":"c"}"#,
            r#"{"a":"bc"}"#,
        ];
        for (index, body) in bodies.iter().enumerate() {
            for other in &bodies[..index] {
                assert_ne!(print(body, &[]), print(other, &[]), "{body} {other}");
            }
        }
    }

    #[test]
    fn volatile_paths_are_left_out() {
        let volatile = ["/attempt", "/meta/sent", "/list/0"];
        let first = print(
            r#"{"x":1,"attempt":1,"meta":{"sent":"a","by":"b"},"list":[1,2]}"#,
            &volatile,
        );
        assert_eq!(
            first,
            print(
                r#"{"x":1,"attempt":2,"meta":{"sent":"z","by":"b"},"list":[9,2]}"#,
                &volatile
            )
        );
        assert_ne!(
            first,
            print(
                r#"{"x":1,"attempt":2,"meta":{"sent":"z","by":"c"},"list":[9,2]}"#,
                &volatile
            )
        );
        assert_ne!(
            first,
            print(
                r#"{"x":1,"attempt":2,"meta":{"sent":"z","by":"b"},"list":[9,3]}"#,
                &volatile
            )
        );
    }
}
