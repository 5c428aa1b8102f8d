//! A source: one sender as configured, checked once, and asked for every delivery.
//!
//! [`SourceConfig`] is the text of the config file as data; [`Source`] is what the engine works with. A source knows how
//! its sender signs ([`Source::verify`]), how its payload is read ([`crate::identify`]) and what applying does
//! ([`crate::effect`]). It does no I/O: secrets are handed in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use sekali_verify::{
    CannotProve, Handshake, KeyDocuments, Pointer, Preset, Prove, Prover, Rejection, Request,
    Scheme, Secret, Verified, Window, signs_places,
};
use sha2::{Digest as _, Sha256};

use crate::effect::{Effect, EffectConfig};
use crate::error::{Error, Result};
use crate::headers::KeptHeaders;
use crate::identify::Mapping;
use crate::order::{EqualVersion, RULES, Rule};
use crate::reason::Outcome;
use crate::retry::Retry;

mod addresses;
mod config;
mod field;
mod setting;

pub use addresses::{Addresses, Network};
pub use config::SourceConfig;
pub use field::{EventField, FieldRef, FieldRefs};
pub use sekali_verify::{Span, Unusable};
pub use setting::{
    Answers, FingerprintRule, Ordering, RateLimit, RetryConfig, SchemeRef, SecretRef,
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
    /// What the sender asks beside sending events.
    pub handshakes: Vec<Handshake>,
    /// Whether an address is called that a handshake asks to confirm.
    pub confirm_handshakes: bool,
    /// The URL as the sender knows it, where the server's own address and headers do not tell.
    pub public_url: Option<String>,
    /// The addresses that deliveries may come from; any where there is no list.
    pub allow_from: Option<Addresses>,
    /// How many requests with a wrong signature are kept to be looked at.
    pub keep_rejected: u32,
    /// The preset that it was made from.
    pub preset: Option<&'static Preset>,
    prover: Option<Prover>,
    custom: Option<Arc<dyn Prove>>,
    window: Window,
    replay_guard: bool,
}

impl Source {
    /// Checks a configuration and makes the source of it.
    pub fn build(config: SourceConfig, resolve: Resolve<'_>) -> Result<Self> {
        config.check_names()?;
        let preset = config.preset()?;
        let config = match preset {
            Some(preset) => config.with_preset(preset),
            None => config,
        };
        let (schemes, window) = (config.schemes()?, config.window()?);
        let prover = prover(&config, preset, &schemes, window, resolve)?;
        let effects = effects(&config)?;
        config.check_order(&effects)?;
        let mapping = Mapping::build(&config);
        let covers_body = !schemes.is_empty() && schemes.iter().all(Scheme::covers_whole_body);
        let can_guard =
            covers_body && !mapping.has_batches() && !signs_places(&schemes, mapping.id_places());
        Ok(Self {
            id: config.id.as_str().into(),
            path: config.path.clone().unwrap_or_else(|| config.id.clone()),
            effects,
            unusable: config.unusable.unwrap_or_default(),
            strict_expiry: config.strict_expiry,
            equal_version: config.equal_version(),
            rules: RULES,
            require_version: config.require_version,
            ordering: config.order.clone(),
            retry: config.retry(),
            answers: config.answers(preset)?,
            rate_limit: config.rate_limit,
            kept_headers: config.kept_headers(&mapping)?,
            mapping,
            handshakes: config.handshake.clone().unwrap_or_default(),
            confirm_handshakes: config.confirm_handshakes,
            public_url: config.public_url.clone(),
            allow_from: config.allow_from.clone(),
            keep_rejected: config.keep_rejected()?,
            preset,
            prover,
            custom: None,
            window,
            replay_guard: config.replay_guard(can_guard)?,
        })
    }

    /// Has deliveries proven by code of one's own instead of a scheme that is data.
    #[must_use]
    pub fn proven_by(self, prove: Arc<dyn Prove>) -> Self {
        Self {
            custom: Some(prove),
            replay_guard: false,
            ..self
        }
    }

    /// Verifies one delivery; a source without signatures lets everything through, marked as unsigned.
    pub fn verify(
        &self,
        request: &Request<'_>,
        now_ms: i64,
        documents: &dyn KeyDocuments,
    ) -> std::result::Result<Verified, Rejection> {
        match self.prove() {
            None => Ok(Verified::unsigned(request.body.clone())),
            Some(prove) => prove.verify(request, now_ms, documents),
        }
    }

    fn prove(&self) -> Option<&dyn Prove> {
        match (&self.custom, &self.prover) {
            (Some(custom), _) => Some(&**custom),
            (None, Some(prover)) => Some(prover),
            (None, None) => None,
        }
    }

    /// Returns what holds the schemes and secrets, where the proof is data.
    pub fn prover(&self) -> Option<&Prover> {
        self.prover.as_ref()
    }

    /// Lists the methods that its requests may have.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        let asked = self.handshakes.iter().flat_map(Handshake::methods);
        std::iter::once(&Method::POST).chain(asked)
    }

    /// Tells whether the replay guard is on: the signature covers the whole body, and the id stands outside of it.
    pub fn has_replay_guard(&self) -> bool {
        self.replay_guard
    }

    /// Tells whether its deliveries are signed.
    pub fn is_signed(&self) -> bool {
        self.prove().is_some()
    }

    /// Tells whether the URL, as the sender knows it, is part of what is proven.
    pub fn signs_url(&self) -> bool {
        self.prover.as_ref().is_some_and(Prover::signs_url)
    }

    /// Returns for how long a signed time counts, in milliseconds: how long a replay has to be remembered at least.
    pub fn window_ms(&self) -> Option<i64> {
        self.prove().filter(|prove| prove.signs_time())?;
        Some(self.window.past_ms.saturating_add(self.window.future_ms))
    }

    /// Returns the status code that an outcome is answered with.
    pub fn http_status(&self, outcome: Outcome) -> u16 {
        match outcome {
            Outcome::Accepted => self.answers.accepted,
            Outcome::Duplicate | Outcome::Replay => self.answers.known,
            Outcome::InconsistentDuplicate => self.answers.inconsistent,
            Outcome::Signature => self.answers.refused,
            Outcome::Malformed => self.answers.malformed,
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

/// Makes the schemes ready with their secrets.
fn prover(
    config: &SourceConfig,
    preset: Option<&Preset>,
    schemes: &[Scheme],
    window: Window,
    resolve: Resolve<'_>,
) -> Result<Option<Prover>> {
    let secrets = secrets(config, schemes, resolve)?;
    if schemes.is_empty() {
        return Ok(None);
    }
    let settings = config.settings(preset, resolve)?;
    let prover = Prover::new(schemes, &secrets, settings, window);
    prover.map(Some).map_err(|problem| match &problem {
        CannotProve::Secret(number) => {
            let from = &config.secrets[number - 1].from;
            config.error("secrets", format!("{from}: {problem}"))
        }
        CannotProve::Setting(name) => config.error(&format!("settings.{name}"), "is needed"),
        _ => config.error("scheme", problem.to_string()),
    })
}

fn secrets(config: &SourceConfig, schemes: &[Scheme], resolve: Resolve<'_>) -> Result<Vec<Secret>> {
    let field = format!("source.{}.secrets", config.id);
    let brings_secret = config
        .handshake
        .iter()
        .flatten()
        .any(Handshake::brings_secret);
    let may_lack = brings_secret || schemes.iter().all(Scheme::has_outside_keys);
    if config.secrets.is_empty() && !may_lack {
        return Err(Error::config(field, "at least one secret is needed"));
    }
    if schemes.is_empty() && !config.secrets.is_empty() {
        return Err(Error::config(field, "an unsigned source has no secrets"));
    }
    let read = |reference: &SecretRef| {
        let bytes = resolve(&reference.from).map_err(|problem| Error::config(&field, problem))?;
        let secret = Secret::new(bytes)
            .map_err(|problem| Error::config(&field, format!("{} {problem}", reference.from)))?;
        Ok(secret.until(reference.until.map(jiff::Timestamp::as_millisecond)))
    };
    config.secrets.iter().map(read).collect()
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
