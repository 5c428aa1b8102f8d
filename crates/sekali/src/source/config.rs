//! The settings of a source as they stand in the config file. Data and their checks; unknown keys are refused.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::HeaderName;
use sekali_verify::{Pointer, Scheme, Window};
use serde::{Deserialize, Deserializer, de};

use crate::effect::{Effect, EffectConfig};
use crate::error::{Error, Result};
use crate::identify::Mapping;
use crate::limits::MAX_KEY_BYTES;
use crate::order::{EffectOrder, EqualVersion};
use crate::retry::Retry;

/// A span of time, written as `300s`, `5m`, `24h` or `1m 30s`.
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
        let problem = || format!("{text} is no span of time; write 300s, 5m or 24h");
        let span: jiff::SignedDuration = text.parse().map_err(|_| problem())?;
        Duration::try_from(span)
            .map(Self)
            .map_err(|_| format!("{text} is negative"))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// Where a value comes from: `/json/pointer`, `header:Name` or `event:field`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRef {
    /// A place in the JSON body.
    Body(Pointer),
    /// A header of the delivery.
    Header(HeaderName),
    /// What identification found: `event:id`, `event:type`, `event:entity_id`, `event:version`, `event:occurred_at`, …
    Event(EventField),
}

/// A field of an identified event that an effect can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventField {
    /// The event's id.
    Id,
    /// The event's type.
    Type,
    /// The tenant.
    Scope,
    /// The source's id.
    Source,
    /// The entity's type.
    EntityType,
    /// The entity's id.
    EntityId,
    /// The version.
    Version,
    /// When it happened, as RFC 3339 text in UTC.
    OccurredAt,
    /// When it was received, as RFC 3339 text in UTC.
    ReceivedAt,
}

impl FromStr for FieldRef {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Some(name) = text.strip_prefix("header:") {
            let name = name
                .parse()
                .map_err(|_| format!("{name} is no header name"))?;
            return Ok(Self::Header(name));
        }
        if let Some(name) = text.strip_prefix("event:") {
            return event_field(name).map(Self::Event);
        }
        if text.starts_with('/') {
            return Pointer::from_str(text)
                .map(Self::Body)
                .map_err(|problem| problem.to_string());
        }
        Err(format!(
            "{text} is neither a JSON pointer (/a/b) nor header:Name nor event:field"
        ))
    }
}

fn event_field(name: &str) -> std::result::Result<EventField, String> {
    Ok(match name {
        "id" => EventField::Id,
        "type" => EventField::Type,
        "scope" => EventField::Scope,
        "source" => EventField::Source,
        "entity_type" => EventField::EntityType,
        "entity_id" => EventField::EntityId,
        "version" => EventField::Version,
        "occurred_at" => EventField::OccurredAt,
        "received_at" => EventField::ReceivedAt,
        _ => {
            return Err(format!(
                "event:{name} is unknown; there are id, type, scope, source, entity_type, entity_id, version, \
                 occurred_at and received_at"
            ));
        }
    })
}

/// A value's place with its fall-backs: the first that is there and not null counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRefs(pub Vec<FieldRef>);

impl<'de> Deserialize<'de> for FieldRefs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let texts = OneOrMany::deserialize(deserializer)?.0;
        texts
            .iter()
            .map(|text| text.parse())
            .collect::<std::result::Result<_, _>>()
            .map(Self)
            .map_err(de::Error::custom)
    }
}

/// A text or a list of texts.
struct OneOrMany(Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = OneOrMany;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> std::result::Result<OneOrMany, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMany(texts))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Where the event id comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventIds {
    /// Out of the delivery.
    From(FieldRefs),
    /// The sender has none: one is minted for every delivery, so that it is at least once.
    #[default]
    Minted,
}

impl<'de> Deserialize<'de> for EventIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let texts = OneOrMany::deserialize(deserializer)?.0;
        if texts == ["none"] {
            return Ok(Self::Minted);
        }
        if texts.is_empty() {
            return Err(de::Error::custom(
                "event_id names no place; write \"none\" if the sender has no ids",
            ));
        }
        let refs: std::result::Result<Vec<FieldRef>, String> =
            texts.iter().map(|text| text.parse()).collect();
        refs.map(|refs| Self::From(FieldRefs(refs)))
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

/// How a source's payload is read, as configured.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MapConfig {
    /// Where the event id is, or `"none"`.
    pub event_id: EventIds,
    /// Places that must hold the same id where they hold one.
    pub event_id_same_as: FieldRefs,
    /// Where the tenant is.
    pub scope: FieldRefs,
    /// Where the event type is.
    pub event_type: FieldRefs,
    /// Where the entity's type is.
    pub entity_type: FieldRefs,
    /// Where the entity's id is.
    pub entity_id: FieldRefs,
    /// Where the version is.
    pub version: FieldRefs,
    /// Where the time of the event is.
    pub occurred_at: FieldRefs,
    /// Where the time of the delivery is.
    pub delivered_at: FieldRefs,
    /// Where the producer is.
    pub producer: FieldRefs,
    /// Where the address of the content is.
    pub source_url: FieldRefs,
    /// Where the hash of the content is.
    pub content_hash: FieldRefs,
}

/// The settings of one source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The stable id: the key of everything that is stored. It is never changed.
    pub id: String,
    /// Where it is received, `/hooks/{path}`; the id by default.
    pub path: Option<String>,
    /// How the sender signs.
    pub scheme: Option<SchemeRef>,
    /// Must be true where the sender does not sign.
    #[serde(default)]
    pub unsigned: bool,
    /// The sender's secrets; any of them may have signed.
    #[serde(default)]
    pub secrets: Vec<SecretRef>,
    /// How far a signed time may be from now, in both directions (5m).
    pub tolerance: Option<Span>,
    /// How far it may be in the future, where that differs.
    pub tolerance_future: Option<Span>,
    /// Whether a late retry of a known event is refused like any other.
    #[serde(default)]
    pub strict_expiry: bool,
    /// What a signed delivery that cannot be used leads to.
    #[serde(default)]
    pub unusable: Unusable,
    /// What decides whether two deliveries of one id have the same content.
    #[serde(default)]
    pub fingerprint: FingerprintRule,
    /// Places in the body that may differ between deliveries of one event.
    #[serde(default)]
    pub volatile: Vec<Pointer>,
    /// How the payload is read.
    #[serde(default)]
    pub map: MapConfig,
    /// What an event does whose version its entity already has.
    #[serde(default)]
    pub equal_version: EqualVersion,
    /// Event types from the lowest to the highest rank at equal times.
    #[serde(default)]
    pub rank: Vec<String>,
    /// Whether an event without a version goes to the dead letter.
    #[serde(default)]
    pub require_version: bool,
    /// How far ahead of the receiver an event may have happened (5m), where time decides the order.
    pub max_future: Option<Span>,
    /// How versions follow each other.
    #[serde(default)]
    pub order: Ordering,
    /// How failed attempts are repeated.
    #[serde(default)]
    pub retry: RetryConfig,
    /// The status codes that can be chosen.
    #[serde(default)]
    pub answers: Answers,
    /// How many verified deliveries are taken in.
    pub rate_limit: Option<RateLimit>,
    /// Further headers of the first delivery to store.
    #[serde(default)]
    pub store_headers: Vec<String>,
    /// What applying an event does.
    #[serde(default)]
    pub effect: Vec<EffectConfig>,
}

impl SourceConfig {
    fn error(&self, field: &str, problem: impl Into<String>) -> Error {
        Error::config(format!("source.{}.{field}", self.id), problem)
    }

    pub(super) fn check_names(&self) -> Result<()> {
        let is_plain = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        if self.id.len() > MAX_KEY_BYTES || !is_plain(&self.id) {
            return Err(self.error("id", "an id has letters, digits, - _ and ."));
        }
        if self.path.as_ref().is_some_and(|path| !is_plain(path)) {
            return Err(self.error(
                "path",
                "a path has letters, digits, - _ and ., without a slash",
            ));
        }
        let answers = &self.answers;
        let is_allowed = matches!(answers.accepted, 200..=202 | 204)
            && matches!(answers.inconsistent, 200 | 409)
            && matches!(answers.signature, 401 | 403);
        if !is_allowed {
            return Err(self.error(
                "answers",
                "accepted is 200, 201, 202 or 204; inconsistent 200 or 409; signature 401 or 403",
            ));
        }
        if self
            .rate_limit
            .is_some_and(|limit| limit.per_second == 0 || limit.burst == Some(0))
        {
            return Err(self.error("rate_limit", "a limit of 0 would let nothing in"));
        }
        if self.retry.max_attempts == Some(0) {
            return Err(self.error("retry.max_attempts", "at least one attempt is needed"));
        }
        Ok(())
    }

    pub(super) fn scheme(&self) -> Result<Option<Scheme>> {
        match (&self.scheme, self.unsigned) {
            (None, true) => Ok(None),
            (Some(_), true) => {
                Err(self.error("unsigned", "a source with a scheme is not unsigned"))
            }
            (None, false) => Err(self.error(
                "scheme",
                "a scheme is needed; a sender that does not sign needs unsigned = true",
            )),
            (Some(SchemeRef::Inline(scheme)), false) => Ok(Some((**scheme).clone())),
            (Some(SchemeRef::Named(name)), false) => {
                Scheme::preset(name).cloned().map(Some).ok_or_else(|| {
                    self.error(
                        "scheme",
                        format!(
                            "{name} is unknown; there are {}",
                            Scheme::presets().join(", ")
                        ),
                    )
                })
            }
        }
    }

    pub(super) fn window(&self) -> Result<Window> {
        let past = self
            .tolerance
            .map_or(Duration::from_secs(300), Duration::from);
        let future = self.tolerance_future.map_or(past, Duration::from);
        if past.is_zero() || future.is_zero() {
            return Err(self.error("tolerance", "a tolerance of 0 would refuse everything"));
        }
        let ms = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Ok(Window {
            past_ms: ms(past),
            future_ms: ms(future),
        })
    }

    pub(super) fn check_order(&self, effects: &[Effect]) -> Result<()> {
        let map = &self.map;
        let has_entity = !map.entity_id.0.is_empty();
        let needs_order = effects
            .iter()
            .any(|effect| effect.order() == EffectOrder::LatestWins);
        if needs_order && !has_entity {
            return Err(self.error(
                "map.entity_id",
                "an effect with order = \"latest_wins\" needs an entity",
            ));
        }
        if needs_order && map.version.0.is_empty() && map.occurred_at.0.is_empty() {
            return Err(self.error(
                "map",
                "order = \"latest_wins\" needs a version or an occurred_at to decide by",
            ));
        }
        if (self.order.contiguous || self.require_version) && map.version.0.is_empty() {
            return Err(self.error(
                "map.version",
                "contiguous and require_version need a version",
            ));
        }
        if self.order.first_version.is_some_and(|first| first < 0) {
            return Err(self.error("order.first_version", "versions are integers from 0"));
        }
        Ok(())
    }

    pub(super) fn retry(&self) -> Retry {
        let default = Retry::default();
        Retry {
            base: self.retry.base.map_or(default.base, Duration::from),
            cap: self.retry.cap.map_or(default.cap, Duration::from),
            max_attempts: self.retry.max_attempts.unwrap_or(default.max_attempts),
        }
    }

    pub(super) fn stored_headers(&self, mapping: &Mapping) -> Result<Vec<HeaderName>> {
        let mut names: Vec<HeaderName> = vec![http::header::CONTENT_TYPE, http::header::USER_AGENT];
        names.extend(mapping.headers().cloned());
        for name in &self.store_headers {
            let name: HeaderName = name
                .parse()
                .map_err(|_| self.error("store_headers", format!("{name} is no header name")))?;
            names.push(name);
        }
        names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        names.dedup();
        Ok(names)
    }
}
