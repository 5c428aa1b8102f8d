//! The settings of a source as they stand in the config file. Data and their checks; unknown keys are refused.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderName;
use sekali_verify::{
    AnswerRules, Condition, Handshake, Map, Pattern, Places, Pointer, Preset, Scheme, Settings,
    Span, Unusable, VersionIs, Window,
};
use serde::Deserialize;

use crate::effect::{Effect, EffectConfig};
use crate::error::{Error, Result};
use crate::headers::KeptHeaders;
use crate::identify::Mapping;
use crate::limits::MAX_KEY_BYTES;
use crate::order::{EffectOrder, EqualVersion};
use crate::retry::Retry;

use super::addresses::Addresses;
use super::setting::{
    Answers, FingerprintRule, Ordering, RateLimit, RetryConfig, SchemeRef, SecretRef,
};

/// The settings of one source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The stable id: the key of everything that is stored. It is never changed.
    pub id: String,
    /// Where it is received, `/hooks/{path}`; the id by default.
    pub path: Option<String>,
    /// The provider, from which everything is taken that is not set here.
    pub preset: Option<String>,
    /// How the sender signs.
    pub scheme: Option<SchemeRef>,
    /// The values that the preset or the scheme needs beside the secrets.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// What the sender asks beside sending events.
    pub handshake: Option<Vec<Handshake>>,
    /// Whether an address is called that a handshake asks to confirm.
    #[serde(default)]
    pub confirm_handshakes: bool,
    /// The URL as the sender knows it, where the server's own address and headers do not tell.
    pub public_url: Option<String>,
    /// The addresses that deliveries may come from; any where the list is missing.
    pub allow_from: Option<Addresses>,
    /// How many requests with a wrong signature are kept to be looked at.
    #[serde(default)]
    pub keep_rejected: u32,
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
    pub unusable: Option<Unusable>,
    /// What decides whether two deliveries of one id have the same content.
    #[serde(default)]
    pub fingerprint: FingerprintRule,
    /// Places in the body that may differ between deliveries of one event.
    pub volatile: Option<Vec<Pointer>>,
    /// How the payload is read.
    #[serde(default)]
    pub map: Map,
    /// Where the elements stand of a delivery that carries several events.
    pub batch: Option<Vec<Pattern>>,
    /// What makes a delivery one that may be a batch.
    pub batch_when: Option<Vec<Condition>>,
    /// `false` switches the replay guard off, where equal bodies under different ids are normal.
    pub replay_guard: Option<bool>,
    /// What an event does whose version its entity already has.
    pub equal_version: Option<EqualVersion>,
    /// Event types from the lowest to the highest rank at equal times.
    pub rank: Option<Vec<String>>,
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
    /// What the sender hears.
    #[serde(default)]
    pub answer: AnswerRules,
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
    pub(super) fn error(&self, field: &str, problem: impl Into<String>) -> Error {
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
        let is_url = |url: &String| {
            let is_http = url.starts_with("https://") || url.starts_with("http://");
            is_http && !url.contains(['?', '#']) && url.parse::<http::Uri>().is_ok()
        };
        if self.public_url.as_ref().is_some_and(|url| !is_url(url)) {
            let problem = "write it like https://hooks.example.com/hooks/name: \
                without a query, which is always the one of the request";
            return Err(self.error("public_url", problem));
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

    /// Finds the preset, if one is named.
    pub(super) fn preset(&self) -> Result<Option<&'static Preset>> {
        let Some(name) = &self.preset else {
            return Ok(None);
        };
        if let Some(preset) = Preset::find(name) {
            return Ok(Some(preset));
        }
        let mut near: Vec<_> = Preset::names()
            .map(|known| (strsim::damerau_levenshtein(known, name), known))
            .filter(|(distance, known)| *distance <= 3 || known.contains(name.as_str()))
            .collect();
        near.sort_unstable();
        let near: Vec<&str> = near.into_iter().take(3).map(|(_, known)| known).collect();
        let hint = match near.is_empty() {
            true => "`sekali providers` lists all".to_owned(),
            false => format!("did you mean {}?", near.join(" or ")),
        };
        Err(self.error("preset", format!("{name} is unknown; {hint}")))
    }

    /// Takes from the preset whatever is not set.
    pub(super) fn with_preset(mut self, preset: &Preset) -> Self {
        self.map = self.map.or(&preset.map);
        self.tolerance_future = self.tolerance_future.or(match self.tolerance {
            None => preset.tolerance_future,
            Some(_) => None,
        });
        self.tolerance = self.tolerance.or(preset.tolerance);
        self.unusable = self.unusable.or(Some(preset.unusable));
        self.volatile = self.volatile.or_else(|| Some(preset.volatile.clone()));
        self.rank = self.rank.or_else(|| Some(preset.rank.clone()));
        self.batch_when = match self.batch {
            None => self.batch_when.or_else(|| Some(preset.batch_when.clone())),
            Some(_) => self.batch_when,
        };
        self.batch = self.batch.or_else(|| Some(preset.batch.clone()));
        self.handshake = self.handshake.or_else(|| Some(preset.handshakes.clone()));
        self.scheme = self
            .scheme
            .or_else(|| Some(SchemeRef::Own(preset.schemes.clone())));
        self
    }

    pub(super) fn schemes(&self) -> Result<Vec<Scheme>> {
        match (&self.scheme, self.unsigned) {
            (None, true) => Ok(Vec::new()),
            (Some(_), true) => {
                Err(self.error("unsigned", "a source with a scheme is not unsigned"))
            }
            (None, false) => Err(self.error(
                "scheme",
                "a preset or a scheme is needed; a sender that does not sign needs unsigned = true",
            )),
            (Some(SchemeRef::Own(schemes)), false) => Ok(schemes.clone()),
            (Some(SchemeRef::Named(name)), false) => {
                let scheme = Scheme::generic(name).cloned().map(|scheme| vec![scheme]);
                let hint = match Preset::find(name) {
                    Some(_) => format!("write preset = \"{name}\""),
                    None => format!("there are {}", Scheme::generic_names().join(", ")),
                };
                scheme.ok_or_else(|| self.error("scheme", format!("{name} is unknown; {hint}")))
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

    /// Resolves the settings: configured, or the preset's own.
    pub(super) fn settings(
        &self,
        preset: Option<&Preset>,
        resolve: super::Resolve<'_>,
    ) -> Result<Settings> {
        let rules = preset.map(|preset| &preset.settings);
        let mut settings = Settings::default();
        for (name, rule) in rules.into_iter().flatten() {
            match (&rule.default, self.settings.contains_key(name)) {
                (Some(default), false) => settings.insert(name, default),
                (None, false) if !rule.optional => {
                    return Err(self.error(
                        &format!("settings.{name}"),
                        format!("is needed: {}", rule.about),
                    ));
                }
                _ => {}
            }
        }
        for (name, text) in &self.settings {
            let rule = rules.and_then(|rules| rules.get(name));
            if let (Some(rules), None) = (rules, rule) {
                let known: Vec<&str> = rules.keys().map(String::as_str).collect();
                let problem = format!("is unknown to the preset; there are {}", known.join(", "));
                return Err(self.error(&format!("settings.{name}"), problem));
            }
            let is_reference = text.starts_with("env:") || text.starts_with("file:");
            if rule.is_some_and(|rule| rule.secret) && !is_reference {
                return Err(self.error(
                    &format!("settings.{name}"),
                    "is a secret; write \"env:NAME\" or \"file:PATH\"",
                ));
            }
            let value = match is_reference {
                true => resolve(text).and_then(|bytes| {
                    let text = String::from_utf8(bytes).map_err(|_| "is no text".to_owned());
                    text.map(|text| text.trim().to_owned())
                }),
                false => Ok(text.clone()),
            };
            let value =
                value.map_err(|problem| self.error(&format!("settings.{name}"), problem))?;
            settings.insert(name, value);
        }
        Ok(settings)
    }

    /// Says what decides between two events of one version: with times, which two changes can share, nothing is a conflict.
    pub(super) fn equal_version(&self) -> EqualVersion {
        let default = match self.map.version_is {
            Some(VersionIs::Time) => EqualVersion::TieBreak,
            _ => EqualVersion::default(),
        };
        self.equal_version.unwrap_or(default)
    }

    /// Decides whether the replay guard is on; it can be switched off, but not on where it makes no sense.
    pub(super) fn replay_guard(&self, can_be_on: bool) -> Result<bool> {
        match self.replay_guard {
            Some(true) if !can_be_on => Err(self.error(
                "replay_guard",
                "it needs a signature over the whole body, and an id outside of what is signed",
            )),
            wanted => Ok(wanted.unwrap_or(can_be_on)),
        }
    }

    pub(super) fn keep_rejected(&self) -> Result<u32> {
        match self.keep_rejected {
            kept @ 0..=100 => Ok(kept),
            _ => Err(self.error("keep_rejected", "at most 100 requests are kept")),
        }
    }

    pub(super) fn answers(&self, preset: Option<&Preset>) -> Result<Answers> {
        let none = AnswerRules::default();
        let answers = Answers::of(&self.answer, preset.map_or(&none, |preset| &preset.answer));
        match answers.are_allowed() {
            true => Ok(answers),
            false => Err(self.error(
                "answer",
                "status is 200, 201, 202 or 204; inconsistent that of success or 409; refused 401, 403, 404, 406 or \
                 410; malformed 400, 403, 406, 410 or 422",
            )),
        }
    }

    pub(super) fn check_order(&self, effects: &[Effect]) -> Result<()> {
        let map = &self.map;
        let is_mapped =
            |places: &Option<Places>| places.as_ref().is_some_and(|places| !places.0.is_empty());
        let has_entity = is_mapped(&map.entity_id);
        let needs_order = effects
            .iter()
            .any(|effect| effect.order() == EffectOrder::LatestWins);
        if needs_order && !has_entity {
            return Err(self.error(
                "map.entity_id",
                "an effect with order = \"latest_wins\" needs an entity",
            ));
        }
        if needs_order && !is_mapped(&map.version) && !is_mapped(&map.occurred_at) {
            return Err(self.error(
                "map",
                "order = \"latest_wins\" needs a version or an occurred_at to decide by",
            ));
        }
        if (self.order.contiguous || self.require_version) && !is_mapped(&map.version) {
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
        names.extend(mapping.headers());
        for name in &self.store_headers {
            let name: HeaderName = name
                .parse()
                .map_err(|_| self.error("store_headers", format!("{name} is no header name")))?;
            names.push(name);
        }
        Ok(KeptHeaders::new(names))
    }
}
