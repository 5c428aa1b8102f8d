//! Finds out why a captured request does not verify: a fixed list of what usually goes wrong, each tried.
//!
//! A hypothesis changes one thing, the body, the URL, the secret or the scheme, and asks whether the signature that came
//! would fit then. The right signature is never computed for somebody to see, and never part of an answer.

use std::fmt;

use bytes::Bytes;
use http::HeaderName;

use crate::outside::KeyDocuments;
use crate::preset::Preset;
use crate::prover::Prover;
use crate::rejection::{Rejection, SignatureProblem};
use crate::request::Request;
use crate::scheme::{Scheme, Spot};
use crate::secret::Secret;
use crate::settings::Settings;
use crate::timestamp::Window;
use crate::verify::Prove as _;

mod bodies;
mod secrets;
mod signatures;
mod urls;

/// What a request is held against.
#[derive(Clone, Debug)]
pub struct Suspect<'a> {
    /// The schemes of the source.
    pub schemes: &'a [Scheme],
    /// Its secrets, also those that no longer count.
    pub secrets: &'a [Secret],
    /// The secrets of other sources, by their ids.
    pub others: &'a [(String, Secret)],
    /// Its settings.
    pub settings: &'a Settings,
    /// Its window.
    pub window: Window,
}

/// What was found out about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// `verified`, or the stable code of the reason why not.
    pub code: &'static str,
    /// The same as a sentence.
    pub sentence: String,
    /// What would have made it fit, or what is missing.
    pub findings: Vec<Finding>,
}

/// Something that explains why a request does not verify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable code.
    pub code: &'static str,
    /// What it means and what to do, as a sentence.
    pub sentence: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.sentence)
    }
}

fn finding(code: &'static str, sentence: impl Into<String>) -> Finding {
    Finding {
        code,
        sentence: sentence.into(),
    }
}

/// Holds a captured request against its source, and tries what usually goes wrong.
pub fn diagnose(
    suspect: &Suspect<'_>,
    request: &Request<'_>,
    now_ms: i64,
    documents: &dyn KeyDocuments,
) -> Diagnosis {
    let case = Case {
        suspect,
        request: *request,
        now_ms,
        documents,
    };
    let outcome = case.try_with(suspect.schemes, suspect.secrets, request, now_ms);
    let Some(rejection) = outcome else {
        return Diagnosis {
            code: "verified",
            sentence: "the signature fits".to_owned(),
            findings: Vec::new(),
        };
    };
    let findings = match &rejection {
        Rejection::Stale(stale) => {
            let seconds = stale.drift_ms() / 1000;
            vec![finding(
                "clock",
                format!(
                    "the signature fits, but it was made {seconds} s before the time of receipt: look at the clocks, or widen the tolerance"
                ),
            )]
        }
        Rejection::Timestamp(_) | Rejection::KeyNeeded(_) => Vec::new(),
        Rejection::Signature(_) => case.findings(),
    };
    Diagnosis {
        code: rejection.code(),
        sentence: rejection.to_string(),
        findings,
    }
}

struct Case<'a> {
    suspect: &'a Suspect<'a>,
    request: Request<'a>,
    now_ms: i64,
    documents: &'a dyn KeyDocuments,
}

impl Case<'_> {
    fn findings(&self) -> Vec<Finding> {
        let mut all = self.missing_headers();
        all.extend(self.bodies());
        all.extend(self.urls());
        all.extend(self.older_secrets());
        all.extend(self.secret_forms());
        all.extend(self.signature_forms());
        all.extend(self.timestamps());
        all.extend(self.other_sources());
        all.extend(self.other_presets());
        all
    }

    /// Returns why a changed request or source does not verify; none where it does.
    fn try_with(
        &self,
        schemes: &[Scheme],
        secrets: &[Secret],
        request: &Request<'_>,
        now_ms: i64,
    ) -> Option<Rejection> {
        let settings = self.suspect.settings.clone();
        match Prover::new(schemes, secrets, settings, self.suspect.window) {
            Ok(prover) => prover.verify(request, now_ms, self.documents).err(),
            Err(_) => Some(SignatureProblem::WrongSignature.into()),
        }
    }

    /// Tells whether the signature fits, whatever the time in it.
    fn fits(&self, schemes: &[Scheme], secrets: &[Secret], request: &Request<'_>) -> bool {
        let outcome = self.try_with(schemes, secrets, request, self.now_ms);
        !matches!(
            outcome,
            Some(Rejection::Signature(_) | Rejection::KeyNeeded(_))
        )
    }

    fn fits_body(&self, body: &Bytes) -> bool {
        let request = Request {
            body,
            ..self.request
        };
        self.fits(self.suspect.schemes, self.suspect.secrets, &request)
    }

    fn missing_headers(&self) -> Vec<Finding> {
        let headers = self.request.headers;
        let mut missing: Vec<&HeaderName> = Vec::new();
        for scheme in self.suspect.schemes {
            let time = scheme.time.as_ref().map(|time| &time.spot);
            let spots = std::iter::once(&scheme.signature.spot).chain(time);
            missing.extend(spots.filter_map(|spot| match spot {
                Spot::Header(name) if !headers.contains_key(name) => Some(name),
                _ => None,
            }));
        }
        missing.dedup();
        let is_all = missing.len() >= self.suspect.schemes.len();
        let near = headers.keys().filter(|name| {
            ["signature", "hmac", "token"]
                .iter()
                .any(|word| name.as_str().contains(word))
        });
        let near: Vec<&str> = near.map(HeaderName::as_str).collect();
        let hint = match near.is_empty() {
            true => "there is none that looks like a signature: is the secret set at the provider, or does a proxy drop it?".to_owned(),
            false => format!("there is {}: is this the right preset?", near.join(", ")),
        };
        let name = |name: &&HeaderName| format!("the header {name} is missing; {hint}");
        match missing.first() {
            Some(first) if is_all => vec![finding("header_missing", name(first))],
            _ => Vec::new(),
        }
    }

    fn bodies(&self) -> Vec<Finding> {
        let changed = bodies::variants(self.request.body);
        let fitting = changed
            .into_iter()
            .find(|(_, _, body)| self.fits_body(body));
        let found = fitting.map(|(code, sentence, _)| finding(code, sentence));
        found.into_iter().collect()
    }

    fn urls(&self) -> Vec<Finding> {
        let changed = urls::variants(&self.request);
        let fits = |url: &String| {
            let request = Request {
                url,
                ..self.request
            };
            self.fits(self.suspect.schemes, self.suspect.secrets, &request)
        };
        let fitting = changed.into_iter().find(|(_, _, url)| fits(url));
        let found = fitting
            .map(|(code, hint, url)| finding(code, format!("it was signed for {url}: {hint}")));
        found.into_iter().collect()
    }

    fn other_sources(&self) -> Vec<Finding> {
        let fits = |secret: &Secret| {
            self.fits(
                self.suspect.schemes,
                std::slice::from_ref(secret),
                &self.request,
            )
        };
        let found = self.suspect.others.iter().find(|(_, secret)| fits(secret));
        let found = found.map(|(id, _)| {
            finding("other_source", format!("it was signed with a secret of the source {id}: was it sent to the wrong address?"))
        });
        found.into_iter().collect()
    }

    fn other_presets(&self) -> Vec<Finding> {
        let is_same = |preset: &Preset| {
            let is_known = |scheme: &Scheme| self.suspect.schemes.iter().any(|own| own == scheme);
            preset.schemes.iter().any(is_known)
        };
        let fits = |preset: &&Preset| {
            let is_proof = preset
                .schemes
                .iter()
                .all(|scheme| scheme.algorithm.signs_text());
            is_proof
                && !is_same(preset)
                && self.fits(&preset.schemes, self.suspect.secrets, &self.request)
        };
        let names: Vec<&str> = Preset::all()
            .filter(fits)
            .map(|preset| preset.name)
            .collect();
        match names.is_empty() {
            true => Vec::new(),
            false => vec![finding(
                "other_preset",
                format!("it verifies with the preset {}", names.join(", ")),
            )],
        }
    }
}

#[cfg(test)]
mod tests;
