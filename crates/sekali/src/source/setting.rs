//! Single settings of a source: spans of time, secrets, choices.

use std::str::FromStr;
use std::time::Duration;

use sekali_verify::Scheme;
use serde::{Deserialize, Deserializer, de};

/// A span of time, written as `300s`, `5m`, `24h`, `90d` or `1m 30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let problem = || format!("{text} is no span of time; write 300s, 5m, 24h or 90d");
        let (mut span, mut rest) = (Duration::ZERO, text.trim());
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, unit) = rest.split_at(digits);
            let letters = unit.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, more) = unit.split_at(letters);
            let unit_ms: u64 = match unit {
                "ms" => 1,
                "s" => 1000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(problem()),
            };
            let number: u64 = number.parse().map_err(|_| problem())?;
            let part = number.checked_mul(unit_ms).map(Duration::from_millis);
            span = part
                .and_then(|part| span.checked_add(part))
                .ok_or_else(problem)?;
            rest = more.trim_start();
        }
        match text.trim().is_empty() {
            true => Err(problem()),
            false => Ok(Self(span)),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

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

/// A signature scheme by name, or written out.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "the name of a scheme, or a scheme written out as a table"
)]
pub enum SchemeRef {
    /// The name of a preset scheme.
    Named(String),
    /// A scheme of the user's own.
    Inline(Box<Scheme>),
}

/// What a delivery that is signed but cannot be used leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unusable {
    /// It is answered 400.
    #[default]
    Refuse,
    /// It is accepted, and stands in the inbox as ignored or dead letter with the reason.
    Store,
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

/// The status codes that can be chosen.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answers {
    /// For a new event: 200, 201, 202 or 204.
    pub accepted: u16,
    /// For a known id with other content: 200 or 409.
    pub inconsistent: u16,
    /// For a missing or wrong signature: 401 or 403.
    pub signature: u16,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            accepted: 202,
            inconsistent: 200,
            signature: 401,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units_up_to_days() {
        let seconds = |text: &str| text.parse::<Span>().unwrap().0.as_secs_f64();
        assert_eq!(seconds("300s"), 300.0);
        assert_eq!(seconds("1m 30s"), 90.0);
        assert_eq!(seconds("400d"), 400.0 * 86_400.0);
        assert_eq!(seconds("20ms"), 0.02);
        for text in [
            "",
            " ",
            "5",
            "m",
            "5 m",
            "-5m",
            "1.5h",
            "5x",
            "NaN",
            "99999999999999999999d",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
