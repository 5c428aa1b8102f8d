//! Schemes whose signature is a JSON Web Token: its key, its claims and its dates.

use bytes::Bytes;

use super::attempt::Attempt;
use crate::json::Json;
use crate::jwt::{self, Token};
use crate::key::Key;
use crate::outside::{self, KeyDocument};
use crate::rejection::{Rejection, SignatureProblem};
use crate::scene::Scene;
use crate::scheme::{Spot, Time};
use crate::signature;
use crate::timestamp::{self, Reading, StaleReason};
use crate::verify::Proof;

/// How far the clocks of issuer and receiver of a token may differ.
const JWT_LEEWAY_S: i64 = 60;

impl Attempt<'_> {
    pub(super) fn token(&self, scene: &Scene<'_, '_>) -> Result<Proof, Rejection> {
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
