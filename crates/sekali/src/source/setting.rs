//! Single settings of a source: spans of time, secrets, choices.

use std::fmt;
use std::time::Duration;

use sekali_verify::{AnswerRules, Scheme, Span};
use serde::{Deserialize, Deserializer, de};

/// A secret's place, and the time after which it no longer counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRef {
    /// `env:NAME` or `file:PATH`.
    pub from: String,
    /// The end of its life, RFC 3339.
    pub until: Option<jiff::Timestamp>,
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Dated {
            from: String,
            until: Option<String>,
        }
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "\"env:NAME\", \"file:PATH\" or { from = \"env:NAME\", until = \"2027-01-01T00:00:00Z\" }"
        )]
        enum Form {
            Plain(String),
            Dated(Dated),
        }
        let (from, until) = match Form::deserialize(deserializer)? {
            Form::Plain(from) => (from, None),
            Form::Dated(dated) => (dated.from, dated.until),
        };
        let until = until
            .map(|text| text.parse())
            .transpose()
            .map_err(de::Error::custom)?;
        Ok(Self { from, until })
    }
}

/// Signature schemes: one by its name, or written out.
#[derive(Clone, Debug)]
pub enum SchemeRef {
    /// The name of a generic scheme.
    Named(String),
    /// Schemes of the user's own, of which one that fits is enough.
    Own(Vec<Scheme>),
}

// By hand, because an untagged enum would hide what is wrong inside of a scheme.
impl<'de> Deserialize<'de> for SchemeRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = SchemeRef;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a scheme, a scheme as a table, or several such tables")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<SchemeRef, E> {
                Ok(SchemeRef::Named(text.to_owned()))
            }
            fn visit_map<A: de::MapAccess<'de>>(
                self,
                map: A,
            ) -> std::result::Result<SchemeRef, A::Error> {
                let scheme = Scheme::deserialize(de::value::MapAccessDeserializer::new(map));
                scheme.map(|scheme| SchemeRef::Own(vec![scheme]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(
                self,
                list: A,
            ) -> std::result::Result<SchemeRef, A::Error> {
                let schemes = Vec::deserialize(de::value::SeqAccessDeserializer::new(list));
                schemes.map(SchemeRef::Own)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// What decides whether two deliveries of one id have the same content, once their bytes differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FingerprintRule {
    /// The canonical JSON values, numbers as written, without the volatile paths.
    #[default]
    Canonical,
    /// Nothing: other bytes are other content.
    Raw,
}

/// How the versions of an entity follow each other.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ordering {
    /// Whether version n + 1 waits for version n.
    pub contiguous: bool,
    /// For how long it waits.
    pub gap_wait: Span,
    /// The version that an entity starts with; without it, the lowest that arrived within `gap_wait`.
    pub first_version: Option<i64>,
}

impl Default for Ordering {
    fn default() -> Self {
        Self {
            contiguous: false,
            gap_wait: Span(Duration::from_secs(300)),
            first_version: None,
        }
    }
}

/// The answers that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The status code for a new event, and for one that is known.
    pub accepted: u16,
    /// The status code for a known event.
    pub known: u16,
    /// The status code for a known id with other content: that of a known event, or 409.
    pub inconsistent: u16,
    /// The status code for a missing or wrong signature.
    pub refused: u16,
    /// The status code for a delivery that cannot be stored.
    pub malformed: u16,
    /// The body of success, where it is not our own.
    pub body: Option<String>,
    /// Its media type.
    pub content_type: Option<String>,
    /// The body of a refused signature, where it is not our own.
    pub refused_body: Option<String>,
}

impl Answers {
    /// Takes the answers from the configuration, then from the preset.
    pub(super) fn of(config: &AnswerRules, preset: &AnswerRules) -> Self {
        let status = config.status.or(preset.status);
        let known = status.filter(|_| preset.status.is_some()).unwrap_or(200);
        Self {
            accepted: status.unwrap_or(202),
            known,
            inconsistent: config.inconsistent.unwrap_or(known),
            refused: config.refused.or(preset.refused).unwrap_or(401),
            malformed: config.malformed.or(preset.malformed).unwrap_or(400),
            body: config.body.clone().or(preset.body.clone()),
            content_type: config.content_type.clone().or(preset.content_type.clone()),
            refused_body: config.refused_body.clone().or(preset.refused_body.clone()),
        }
    }

    /// Tells whether every status code is one that makes sense.
    pub(super) fn are_allowed(&self) -> bool {
        matches!(self.accepted, 200..=202 | 204)
            && (self.inconsistent == self.known || matches!(self.inconsistent, 200 | 409))
            && matches!(self.refused, 401 | 403 | 404 | 406 | 410)
            && matches!(self.malformed, 400 | 403 | 406 | 410 | 422)
    }
}

/// How many verified deliveries a source may bring.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// How many a second in the long run.
    pub per_second: u32,
    /// How many at once; the same as `per_second` by default.
    pub burst: Option<u32>,
}

/// How failed attempts are repeated.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// The upper bound of the first delay (1s).
    pub base: Option<Span>,
    /// The largest delay (1h).
    pub cap: Option<Span>,
    /// How many attempts are made (12).
    pub max_attempts: Option<u32>,
}
