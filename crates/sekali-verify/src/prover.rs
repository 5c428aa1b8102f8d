//! The schemes of one source with its secrets, made ready once and asked for every delivery.
//!
//! Schemes are alternatives: those whose conditions hold are tried in their order. Of several reasons why
//! none fits, the one that came furthest is told.

use std::sync::Arc;

use thiserror::Error;

use crate::key::Key;
use crate::outside::KeyDocuments;
use crate::rejection::{Rejection, SignatureProblem};
use crate::request::{Opened, Request};
use crate::scene::Scene;
use crate::scheme::{Coverage, Part, Scheme};
use crate::secret::Secret;
use crate::settings::Settings;
use crate::timestamp::Window;
use crate::verify::{Proof, Prove};

mod attempt;
mod token;

use attempt::Attempt;

/// The reason why schemes and secrets do not go together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CannotProve {
    /// Says that no scheme can use a secret, which is numbered from 1.
    #[error("secret {0} has not the form that the scheme needs")]
    Secret(usize),
    /// Says that a setting is missing.
    #[error("the setting `{0}` is needed")]
    Setting(String),
    /// Says that there is nothing to try.
    #[error("no scheme is given")]
    NoScheme,
}

/// The schemes of one source with its keys.
#[derive(Clone, Debug)]
pub struct Prover {
    pub(crate) lanes: Arc<[Lane]>,
    pub(crate) settings: Settings,
    window: Window,
}

/// One scheme with the keys that it makes of the secrets.
pub(crate) struct Lane {
    pub(crate) scheme: Scheme,
    pub(crate) label: String,
    pub(crate) keys: Vec<(Secret, Key)>,
}

// Keys are never printed.
impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane")
            .field("scheme", &self.scheme)
            .field("keys", &self.keys.len())
            .finish()
    }
}

impl Prover {
    /// Makes schemes ready; every secret must be usable by one of them.
    pub fn new(
        schemes: &[Scheme],
        secrets: &[Secret],
        settings: Settings,
        window: Window,
    ) -> Result<Self, CannotProve> {
        if schemes.is_empty() {
            return Err(CannotProve::NoScheme);
        }
        let lane = |scheme: &Scheme| {
            let keys = secrets.iter();
            let keys = keys.filter_map(|secret| Some((secret.clone(), Key::new(scheme, secret)?)));
            Ok(Lane {
                label: label(scheme, &settings)?,
                keys: keys.collect(),
                scheme: scheme.clone(),
            })
        };
        let lanes: Result<Vec<Lane>, CannotProve> = schemes.iter().map(lane).collect();
        let mut lanes = lanes?;
        for (index, secret) in secrets.iter().enumerate() {
            let is_used = lanes
                .iter()
                .any(|lane| Key::new(&lane.scheme, secret).is_some());
            if !is_used {
                return Err(CannotProve::Secret(index + 1));
            }
        }
        // Whatever stands in a request for a scheme without a key could only blur the reason of a refusal.
        let has_key = |lane: &Lane| !lane.keys.is_empty() || lane.scheme.has_outside_keys();
        if lanes.iter().any(has_key) {
            lanes.retain(has_key);
        }
        Ok(Self {
            lanes: lanes.into(),
            settings,
            window,
        })
    }

    /// Gives the configured values beside the secrets.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Gives the tolerated distance of a signed time.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Gives the schemes that can be used with its keys.
    pub fn schemes(&self) -> Vec<Scheme> {
        self.lanes.iter().map(|lane| lane.scheme.clone()).collect()
    }

    /// Gives its secrets, also those that no longer count.
    pub fn secrets(&self) -> Vec<Secret> {
        let mut all: Vec<Secret> = Vec::new();
        for (secret, _) in self.lanes.iter().flat_map(|lane| &lane.keys) {
            if !all.contains(secret) {
                all.push(secret.clone());
            }
        }
        all
    }

    /// Tells whether the URL, as the sender knows it, is part of what is proven.
    pub fn signs_url(&self) -> bool {
        let has_audience = self.settings.get("audience").is_some();
        let signs = |scheme: &Scheme| {
            let is_url = |part: &Part| matches!(part, Part::Url | Part::UrlUnescaped);
            let audience = scheme.jwt.as_ref().and_then(|jwt| jwt.audience.as_deref());
            scheme.signed.iter().any(is_url)
                || audience.is_some_and(|text| {
                    text.contains("{url}") || text.contains("{audience}") && !has_audience
                })
        };
        self.lanes.iter().any(|lane| signs(&lane.scheme))
    }

    /// Tells whether a key may come from outside of the configuration.
    pub fn fetches_keys(&self) -> bool {
        self.lanes.iter().any(|lane| lane.scheme.keys.is_some())
    }
}

fn label(scheme: &Scheme, settings: &Settings) -> Result<String, CannotProve> {
    let label = &scheme.signature.entries.label;
    for part in scheme.signed.iter() {
        if let Part::Setting(name) = part
            && settings.get(name).is_none()
        {
            return Err(CannotProve::Setting(name.clone()));
        }
    }
    if let Some(name) = Settings::names(label).find(|name| settings.get(name).is_none()) {
        return Err(CannotProve::Setting(name.to_owned()));
    }
    Ok(settings.expand(label).unwrap_or_default())
}

impl Prove for Prover {
    fn prove(
        &self,
        request: &Request<'_>,
        now_ms: i64,
        documents: &dyn KeyDocuments,
    ) -> Result<Proof, Rejection> {
        let opened = Opened::new(*request);
        let scene = Scene {
            opened: &opened,
            element: None,
            settings: &self.settings,
        };
        let mut furthest: Option<Rejection> = None;
        for lane in self.lanes.iter() {
            if !lane
                .scheme
                .when
                .iter()
                .all(|condition| scene.holds(condition))
            {
                continue;
            }
            let attempt = Attempt {
                lane,
                window: self.window,
                now_ms,
                documents,
            };
            match attempt.run(&scene) {
                Ok(proof) => return Ok(proof),
                Err(rejection) => match &furthest {
                    Some(before) if rank(before) >= rank(&rejection) => {}
                    _ => furthest = Some(rejection),
                },
            }
        }
        // No scheme is meant for a request like this one.
        Err(furthest.unwrap_or(SignatureProblem::Malformed.into()))
    }

    fn coverage(&self) -> Coverage {
        let all = self.lanes.iter().map(|lane| lane.scheme.coverage());
        all.min().unwrap_or_default()
    }

    fn signs_time(&self) -> bool {
        self.lanes.iter().all(|lane| lane.scheme.signs_time())
    }
}

/// Orders rejections by how far they came.
fn rank(rejection: &Rejection) -> u8 {
    match rejection {
        Rejection::KeyNeeded(_) => 6,
        Rejection::Stale(_) | Rejection::Timestamp(_) => 5,
        Rejection::Signature(SignatureProblem::WrongSignature) => 4,
        Rejection::Signature(SignatureProblem::UntrustedKey) => 3,
        Rejection::Signature(SignatureProblem::TooMany) => 2,
        Rejection::Signature(SignatureProblem::Malformed) => 1,
        Rejection::Signature(SignatureProblem::Missing) => 0,
    }
}
