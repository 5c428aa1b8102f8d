//! The settings of a source as they stand in the config file. Data and their checks; unknown keys are refused.

use std::time::Duration;

use http::HeaderName;
use sekali_verify::{Pointer, Scheme, Window};
use serde::Deserialize;

use crate::effect::{Effect, EffectConfig};
use crate::error::{Error, Result};
use crate::headers::KeptHeaders;
use crate::identify::Mapping;
use crate::limits::MAX_KEY_BYTES;
use crate::order::{EffectOrder, EqualVersion};
use crate::retry::Retry;

use super::field::{EventIds, FieldRefs};
use super::setting::{
    Answers, FingerprintRule, Ordering, RateLimit, RetryConfig, SchemeRef, SecretRef, Span,
    Unusable,
};

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

    pub(super) fn kept_headers(&self, mapping: &Mapping) -> Result<KeptHeaders> {
        let mut names: Vec<HeaderName> = vec![http::header::CONTENT_TYPE, http::header::USER_AGENT];
        names.extend(mapping.headers().cloned());
        for name in &self.store_headers {
            let name: HeaderName = name
                .parse()
                .map_err(|_| self.error("store_headers", format!("{name} is no header name")))?;
            names.push(name);
        }
        Ok(KeptHeaders::new(names))
    }
}
