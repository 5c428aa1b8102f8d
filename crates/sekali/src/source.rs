//! A source: one sender as configured, checked once, and asked for every delivery.
//!
//! [`SourceConfig`] is the text of the config file as data; [`Source`] is what the engine works with. A source knows how
//! its sender signs ([`Source::verifier`]), how its payload is read ([`crate::identify`]) and what applying does
//! ([`crate::effect`]). It does no I/O: secrets are handed in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sekali_verify::{Check, Pointer, Scheme, Secret, Window};
use sha2::{Digest as _, Sha256};

use crate::effect::{Effect, EffectConfig};
use crate::error::{Error, Result};
use crate::headers::KeptHeaders;
use crate::identify::Mapping;
use crate::order::{EqualVersion, RULES, Rule};
use crate::reason::Outcome;
use crate::retry::Retry;

mod config;
mod field;
mod setting;

pub use config::{MapConfig, SourceConfig};
pub use field::{EventField, EventIds, FieldRef, FieldRefs};
pub use setting::{
    Answers, FingerprintRule, Ordering, RateLimit, RetryConfig, SchemeRef, SecretRef, Span,
    Unusable,
};

/// Turns a secret's reference (`env:NAME`, `file:PATH`) into its bytes, or says why it cannot.
pub type Resolve<'a> = &'a dyn Fn(&str) -> std::result::Result<Vec<u8>, String>;

/// One sender, checked and ready.
#[derive(Debug)]
pub struct Source {
    /// The stable id: the key of everything that is stored.
    pub id: Arc<str>,
    /// Where it is received: `/hooks/{path}`.
    pub path: String,
    /// How its payload is read.
    pub mapping: Mapping,
    /// What applying an event does.
    pub effects: Vec<Effect>,
    /// What a delivery that is signed but cannot be used leads to.
    pub unusable: Unusable,
    /// Whether a late retry of a known event is refused like any other.
    pub strict_expiry: bool,
    /// What an event does whose version its entity already has.
    pub equal_version: EqualVersion,
    /// The rules of the order; a test switches one off to see that it is missed.
    pub rules: &'static [Rule],
    /// Whether an event without a version goes to the dead letter.
    pub require_version: bool,
    /// How versions follow each other.
    pub ordering: Ordering,
    /// How failed attempts are repeated.
    pub retry: Retry,
    /// The status codes that can be chosen.
    pub answers: Answers,
    /// How many verified deliveries are taken in.
    pub rate_limit: Option<RateLimit>,
    /// Which headers of the first delivery are kept.
    pub kept_headers: KeptHeaders,
    scheme: Option<Scheme>,
    secrets: Secrets,
    window: Window,
    replay_guard: bool,
}

/// The secrets of a source, and the times after which they no longer count.
#[derive(Debug, Default)]
struct Secrets {
    secrets: Vec<Secret>,
    until_ms: Vec<Option<i64>>,
}

impl Secrets {
    /// Returns those that count now.
    fn active(&self, now_ms: i64) -> Cow<'_, [Secret]> {
        let counts = |until_ms: &Option<i64>| until_ms.is_none_or(|until_ms| now_ms < until_ms);
        if self.until_ms.iter().all(counts) {
            return Cow::Borrowed(&self.secrets);
        }
        let all = self.secrets.iter().zip(&self.until_ms);
        Cow::Owned(
            all.filter(|(_, until_ms)| counts(until_ms))
                .map(|(secret, _)| secret.clone())
                .collect(),
        )
    }
}

/// A source's scheme with the secrets that count now.
#[derive(Debug)]
pub struct Verifier<'a> {
    scheme: Option<&'a Scheme>,
    secrets: Cow<'a, [Secret]>,
    window: Window,
    now_ms: i64,
}

impl Source {
    /// Checks a configuration and makes the source of it.
    pub fn build(config: SourceConfig, resolve: Resolve<'_>) -> Result<Self> {
        config.check_names()?;
        let scheme = config.scheme()?;
        let secrets = secrets(&config, scheme.is_some(), resolve)?;
        let window = config.window()?;
        let effects = effects(&config)?;
        config.check_order(&effects)?;
        let mapping = Mapping::build(&config)?;
        let replay_guard = scheme.as_ref().is_some_and(Scheme::covers_whole_body)
            && mapping.id_stands_outside_the_body();
        let kept_headers = config.kept_headers(&mapping)?;
        Ok(Self {
            id: config.id.as_str().into(),
            path: config.path.clone().unwrap_or_else(|| config.id.clone()),
            mapping,
            effects,
            unusable: config.unusable,
            strict_expiry: config.strict_expiry,
            equal_version: config.equal_version,
            rules: RULES,
            require_version: config.require_version,
            ordering: config.order.clone(),
            retry: config.retry(),
            answers: config.answers.clone(),
            rate_limit: config.rate_limit,
            kept_headers,
            scheme,
            secrets,
            window,
            replay_guard,
        })
    }

    /// Returns what verifies a delivery that arrives now.
    pub fn verifier(&self, now_ms: i64) -> Verifier<'_> {
        Verifier {
            scheme: self.scheme.as_ref(),
            secrets: self.secrets.active(now_ms),
            window: self.window,
            now_ms,
        }
    }

    /// Tells whether the replay guard is on: the signature covers the whole body, and the id stands outside of it.
    pub fn has_replay_guard(&self) -> bool {
        self.replay_guard
    }

    /// Tells whether its deliveries are signed.
    pub fn is_signed(&self) -> bool {
        self.scheme.is_some()
    }

    /// Returns the scheme its sender signs with.
    pub fn scheme(&self) -> Option<&Scheme> {
        self.scheme.as_ref()
    }

    /// Returns for how long a signed time counts, in milliseconds: how long a replay has to be remembered at least.
    pub fn window_ms(&self) -> Option<i64> {
        self.scheme.as_ref().filter(|scheme| scheme.signs_time())?;
        Some(self.window.past_ms.saturating_add(self.window.future_ms))
    }

    /// Returns the status code that an outcome is answered with.
    pub fn http_status(&self, outcome: Outcome) -> u16 {
        match outcome {
            Outcome::Accepted => self.answers.accepted,
            Outcome::InconsistentDuplicate => self.answers.inconsistent,
            Outcome::Signature => self.answers.signature,
            other => default_status(other),
        }
    }

    /// Finds the effects that an event type matches.
    pub fn effects_for<'a>(&'a self, event_type: &'a str) -> impl Iterator<Item = &'a Effect> {
        self.effects
            .iter()
            .filter(move |effect| effect.matches(event_type))
    }
}

impl Verifier<'_> {
    /// Verifies one delivery; a source without signatures lets everything through, marked as unsigned.
    pub fn verify(
        &self,
        headers: &http::HeaderMap,
        body: bytes::Bytes,
    ) -> std::result::Result<sekali_verify::Verified, sekali_verify::Rejection> {
        match self.scheme {
            None => Ok(sekali_verify::Verified::unsigned(body)),
            Some(scheme) => Check {
                scheme,
                secrets: &self.secrets,
                window: self.window,
                now_ms: self.now_ms,
            }
            .verify(headers, body),
        }
    }
}

/// Returns the status code of an outcome where the source does not say otherwise.
pub fn default_status(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Accepted => 202,
        Outcome::Duplicate | Outcome::InconsistentDuplicate | Outcome::Replay => 200,
        Outcome::Signature => 401,
        Outcome::Timestamp | Outcome::Malformed => 400,
        Outcome::TooLarge => 413,
        Outcome::Timeout => 408,
        Outcome::Throttled => 429,
        Outcome::Unavailable => 503,
    }
}

fn secrets(config: &SourceConfig, is_signed: bool, resolve: Resolve<'_>) -> Result<Secrets> {
    let field = format!("source.{}.secrets", config.id);
    if is_signed == config.secrets.is_empty() {
        let problem = if is_signed {
            "at least one secret is needed"
        } else {
            "an unsigned source has no secrets"
        };
        return Err(Error::config(field, problem));
    }
    let mut all = Secrets::default();
    for reference in &config.secrets {
        let bytes = resolve(&reference.from).map_err(|problem| Error::config(&field, problem))?;
        let secret = Secret::new(bytes)
            .map_err(|problem| Error::config(&field, format!("{} {problem}", reference.from)))?;
        all.secrets.push(secret);
        all.until_ms
            .push(reference.until.map(jiff::Timestamp::as_millisecond));
    }
    Ok(all)
}

fn effects(config: &SourceConfig) -> Result<Vec<Effect>> {
    let build = |(index, effect): (usize, &EffectConfig)| {
        Effect::build(effect).map_err(|problem| {
            Error::config(format!("source.{}.effect[{index}]", config.id), problem)
        })
    };
    config.effect.iter().enumerate().map(build).collect()
}

/// Returns the revision of a list of volatile paths: the first four bytes of its digest.
pub(crate) fn volatile_revision(paths: &[Pointer]) -> [u8; 4] {
    let mut digest = Sha256::new();
    for path in paths {
        digest.update(path.to_string().as_bytes());
        digest.update([0]);
    }
    let digest: [u8; 32] = digest.finalize().into();
    [digest[0], digest[1], digest[2], digest[3]]
}

/// The sources of a configuration, found by path.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    by_path: BTreeMap<String, Arc<Source>>,
    by_id: BTreeMap<Arc<str>, Arc<Source>>,
}

impl Sources {
    /// Collects sources; ids and paths must differ.
    pub fn new(sources: Vec<Source>) -> Result<Self> {
        let mut all = Self::default();
        for source in sources.into_iter().map(Arc::new) {
            let field = format!("source.{}", source.id);
            if all
                .by_id
                .insert(source.id.clone(), source.clone())
                .is_some()
            {
                return Err(Error::config(field, "the id is used twice"));
            }
            if all
                .by_path
                .insert(source.path.clone(), source.clone())
                .is_some()
            {
                return Err(Error::config(
                    field,
                    format!("the path {} is used twice", source.path),
                ));
            }
        }
        Ok(all)
    }

    /// Finds the source that is received at a path.
    pub fn at(&self, path: &str) -> Option<&Arc<Source>> {
        self.by_path.get(path)
    }

    /// Finds a source by its stable id.
    pub fn get(&self, id: &str) -> Option<&Arc<Source>> {
        self.by_id.get(id)
    }

    /// Iterates over all sources, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.by_id.values()
    }
}

/// How long a claim by version may wait for the versions before it.
pub(crate) fn gap_wait_ms(ordering: &Ordering) -> Option<i64> {
    ordering
        .contiguous
        .then(|| i64::try_from(Duration::from(ordering.gap_wait).as_millis()).unwrap_or(i64::MAX))
}
