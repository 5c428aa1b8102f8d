//! The schemes of one source with its secrets, made ready once and asked for every delivery.
//!
//! Schemes are alternatives: those whose conditions hold are tried in their order. Of several reasons why
//! none fits, the one that came furthest is told.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

use crate::batch::elements;
use crate::json::Json;
use crate::jwt::{self, Token};
use crate::key::Key;
use crate::outside::{self, KeyDocument, KeyDocuments};
use crate::rejection::{Rejection, SignatureProblem, TimestampProblem};
use crate::request::{Opened, Request};
use crate::scene::{Known, Scene, with_and_without_port};
use crate::scheme::{Algorithm, Coverage, KeyForm, Part, Scheme, Spot, Time};
use crate::secret::Secret;
use crate::settings::Settings;
use crate::signature;
use crate::timestamp::{self, Reading, StaleReason, Window};
use crate::verify::{Proof, Prove};

/// How far the clocks of issuer and receiver of a token may differ.
const JWT_LEEWAY_S: i64 = 60;

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

/// One scheme, tried on one request.
struct Attempt<'l> {
    lane: &'l Lane,
    window: Window,
    now_ms: i64,
    documents: &'l dyn KeyDocuments,
}

impl Attempt<'_> {
    fn run(&self, scene: &Scene<'_, '_>) -> Result<Proof, Rejection> {
        let scheme = &self.lane.scheme;
        if scheme.algorithm == Algorithm::Jwt {
            return self.token(scene);
        }
        let Some(pattern) = &scheme.each else {
            return self.text(scene);
        };
        let missing = SignatureProblem::Missing;
        let json = scene.opened.json().ok_or(missing)?;
        let body = scene.opened.request.body;
        let found = elements(body, std::slice::from_ref(pattern));
        let found = found
            .map_err(|_| SignatureProblem::TooMany)?
            .unwrap_or_default();
        let mut all = Proof::new(Vec::new(), scheme.coverage());
        for element in &found {
            let lineage = element.lineage(json);
            let inner = Scene {
                element: lineage.last().copied(),
                ..*scene
            };
            all.signed.extend(self.text(&inner)?.signed);
        }
        match found.is_empty() {
            true => Err(missing.into()),
            false => Ok(all),
        }
    }

    fn text(&self, scene: &Scene<'_, '_>) -> Result<Proof, Rejection> {
        let (lane, scheme) = (self.lane, &self.lane.scheme);
        let signatures = signature::find(scene, &scheme.signature, &lane.label, scheme.algorithm)?;
        let timestamp = match &scheme.time {
            Some(time) => Some((time, time_text(scene, time)?)),
            None => None,
        };
        let fetched = self.fetched_key(scene)?;
        let active = lane
            .keys
            .iter()
            .filter(|(secret, _)| secret.counts_at(self.now_ms));
        let keys = active.map(|(_, key)| key).chain(&fetched);
        let known = Known {
            timestamp: timestamp.as_ref().map_or(b"", |(_, text)| text),
            ..Known::default()
        };
        let Some(signed) = self.signed_text(scene, known, keys, &signatures)? else {
            let is_readable =
                timestamp.is_none_or(|(time, text)| timestamp::is_readable(&text, time.unit));
            return Err(match is_readable {
                true => SignatureProblem::WrongSignature.into(),
                // Nobody signs what is no time: the request was put together by hand.
                false => SignatureProblem::Malformed.into(),
            });
        };
        self.check_body_hash(scene)?;
        let mut proof = Proof::new(signed, scheme.coverage());
        if let Some((time, text)) = timestamp {
            if let Spot::Header(name) = &time.spot
                && scene
                    .opened
                    .request
                    .headers
                    .get_all(name)
                    .iter()
                    .nth(1)
                    .is_some()
            {
                return Err(TimestampProblem::Repeated.into());
            }
            let reading = timestamp::read(&text, time.unit, self.window, self.now_ms)?;
            proof.reading = Some(reading);
        }
        Ok(proof)
    }

    /// Finds the signed text that one of the signatures belongs to.
    fn signed_text<'k>(
        &self,
        scene: &Scene<'_, '_>,
        known: Known<'_>,
        keys: impl Iterator<Item = &'k Key>,
        signatures: &[Vec<u8>],
    ) -> Result<Option<Vec<Bytes>>, Rejection> {
        let (scheme, request) = (&self.lane.scheme, &scene.opened.request);
        let urls = match scheme.url_ports {
            true => with_and_without_port(request.url),
            false => vec![request.url.to_owned()],
        };
        for key in keys {
            for url in &urls {
                let known = Known {
                    url,
                    key: key.plain(),
                    ..known
                };
                let mut signed = scene.pieces(&scheme.signed, known)?;
                if key.fits(scheme.algorithm, &signed, signatures) {
                    if scheme.algorithm == Algorithm::Equals {
                        signed.push(request.body.clone());
                    }
                    return Ok(Some(signed));
                }
            }
        }
        Ok(None)
    }

    fn check_body_hash(&self, scene: &Scene<'_, '_>) -> Result<(), Rejection> {
        let Some(spot) = &self.lane.scheme.body_hash else {
            return Ok(());
        };
        let hash = hex::encode(Sha256::digest(scene.opened.request.body));
        let given = scene.value(spot)?.ok_or(SignatureProblem::Missing)?;
        let given = given.to_ascii_lowercase();
        match bool::from(given.as_slice().ct_eq(hash.as_bytes())) {
            true => Ok(()),
            false => Err(SignatureProblem::WrongSignature.into()),
        }
    }

    /// Gives the key of the certificate that the request names, where the scheme has such keys.
    fn fetched_key(&self, scene: &Scene<'_, '_>) -> Result<Option<Key>, Rejection> {
        let (KeyForm::Certificate, Some(rules)) = (self.lane.scheme.key, &self.lane.scheme.keys)
        else {
            return Ok(None);
        };
        let document = outside::document(rules, scene, "")?;
        let Some(pem) = self.documents.find(&document) else {
            return Err(Rejection::KeyNeeded(Box::new(document)));
        };
        let info = outside::certified_key(&pem, rules, self.documents, self.now_ms)?;
        let key = Key::of_public_info(&info).ok_or(SignatureProblem::UntrustedKey)?;
        Ok(Some(key))
    }

    fn token(&self, scene: &Scene<'_, '_>) -> Result<Proof, Rejection> {
        let (malformed, wrong) = (
            SignatureProblem::Malformed,
            SignatureProblem::WrongSignature,
        );
        let (lane, scheme) = (self.lane, &self.lane.scheme);
        let (Some(rules), request) = (&scheme.jwt, &scene.opened.request) else {
            return Err(malformed.into());
        };
        let texts = signature::find(scene, &scheme.signature, &lane.label, scheme.algorithm)?;
        let token = texts
            .first()
            .and_then(|text| Token::split(text))
            .ok_or(malformed)?;
        let header = token.header().ok_or(malformed)?;
        if !rules.algorithms.contains(&header.algorithm) {
            return Err(wrong.into());
        }
        if !self.token_fits(scene, &token, &header)? {
            return Err(wrong.into());
        }
        let claims = token.claims().ok_or(malformed)?;
        let mut settings = scene.settings.clone();
        settings.insert("url", request.url);
        if settings.get("audience").is_none() {
            settings.insert("audience", request.url);
        }
        jwt::check_claims(&claims, rules, &settings, request.body)?;
        let signed = vec![Bytes::copy_from_slice(token.signed()), request.body.clone()];
        let mut proof = Proof::new(signed, scheme.coverage());
        proof.reading = self.token_time(&claims)?;
        Ok(proof)
    }

    fn token_fits(
        &self,
        scene: &Scene<'_, '_>,
        token: &Token,
        header: &jwt::Header,
    ) -> Result<bool, Rejection> {
        let active = self
            .lane
            .keys
            .iter()
            .filter(|(secret, _)| secret.counts_at(self.now_ms));
        let mut has_key = false;
        for (_, key) in active {
            let fits = match key {
                Key::Jwks(set) => token.fits_set(header, set),
                Key::Plain(secret) => {
                    Some(header.algorithm == "HS256" && token.fits_secret(secret))
                }
                _ => None,
            };
            has_key |= fits.is_some();
            if fits == Some(true) {
                return Ok(true);
            }
        }
        let Some(rules) = &self.lane.scheme.keys else {
            return match has_key {
                true => Ok(false),
                false => Err(SignatureProblem::UntrustedKey.into()),
            };
        };
        let document = outside::document(rules, scene, &header.kid)?;
        let Some(set) = self.documents.find(&document) else {
            return Err(Rejection::KeyNeeded(Box::new(document)));
        };
        if let Some(fits) = token.fits_set(header, &set) {
            return Ok(fits);
        }
        // The key may be newer than the copy.
        let newer = KeyDocument {
            is_refresh: true,
            ..document
        };
        match self.documents.find(&newer) {
            Some(set) => token
                .fits_set(header, &set)
                .ok_or_else(|| SignatureProblem::UntrustedKey.into()),
            None => Err(Rejection::KeyNeeded(Box::new(newer))),
        }
    }

    /// Judges the dates of a token: its expiry and start always, its issue where the scheme asks for it.
    fn token_time(&self, claims: &Json<'_>) -> Result<Option<Reading>, Rejection> {
        let now_s = self.now_ms.div_euclid(1000);
        let reading = |at_s: i64, stale| {
            let signed_at_ms = at_s.saturating_mul(1000);
            Some(Reading {
                signed_at_ms,
                drift_ms: self.now_ms.saturating_sub(signed_at_ms),
                stale,
            })
        };
        let expiry = jwt::date(claims, "exp");
        if let Some(expiry) = expiry.filter(|expiry| now_s >= expiry.saturating_add(JWT_LEEWAY_S)) {
            return Ok(reading(expiry, Some(StaleReason::Expired)));
        }
        let start = jwt::date(claims, "nbf");
        if let Some(start) = start.filter(|start| now_s < start.saturating_sub(JWT_LEEWAY_S)) {
            return Ok(reading(start, Some(StaleReason::InFuture)));
        }
        let Some(Time {
            spot: Spot::Claim(name),
            unit,
            ..
        }) = &self.lane.scheme.time
        else {
            // Without an expiry the token would be good for ever.
            return match expiry {
                Some(_) => Ok(None),
                None => Err(SignatureProblem::WrongSignature.into()),
            };
        };
        let at = jwt::date(claims, name).ok_or(SignatureProblem::WrongSignature)?;
        let text = at.to_string();
        Ok(Some(timestamp::read(
            text.as_bytes(),
            *unit,
            self.window,
            self.now_ms,
        )?))
    }
}

/// Gives the text of the time as it was received; without it there is nothing that could have been signed.
fn time_text(scene: &Scene<'_, '_>, time: &Time) -> Result<Vec<u8>, SignatureProblem> {
    let values = scene.values(&time.spot)?;
    let value = values.first().ok_or(SignatureProblem::Missing)?;
    if time.entries.separator.is_empty() && time.entries.label.is_empty() {
        return Ok(value.to_vec());
    }
    let text = signature::labelled(&time.entries, value);
    text.map(<[u8]>::to_vec).ok_or(SignatureProblem::Malformed)
}
