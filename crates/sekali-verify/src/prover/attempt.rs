//! One scheme, tried on one request: the text that was signed, the signature, the key, and then the time.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use super::Lane;
use crate::batch::elements;
use crate::key::Key;
use crate::outside::{self, KeyDocuments};
use crate::rejection::{Rejection, SignatureProblem, TimestampProblem};
use crate::scene::{Known, Scene, with_and_without_port};
use crate::scheme::{Algorithm, KeyForm, Spot, Time};
use crate::signature;
use crate::timestamp::{self, Window};
use crate::verify::Proof;

/// One scheme, tried on one request.
pub(super) struct Attempt<'l> {
    pub(super) lane: &'l Lane,
    pub(super) window: Window,
    pub(super) now_ms: i64,
    pub(super) documents: &'l dyn KeyDocuments,
}

impl Attempt<'_> {
    pub(super) fn run(&self, scene: &Scene<'_, '_>) -> Result<Proof, Rejection> {
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
                if scheme.algorithm.is_extensible() && !is_text(&signed) {
                    return Err(SignatureProblem::Malformed.into());
                }
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
}

/// Tells whether pieces are UTF-8.
///
/// Whoever knows a plain hash of a key and a text can compute the one of that text with more behind it, but between the
/// two stands the padding of the hash, which begins with the byte 0x80: no character of UTF-8 does.
fn is_text(pieces: &[Bytes]) -> bool {
    std::str::from_utf8(&pieces.concat()).is_ok()
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
