//! Signs a request the way its sender does, for tests, demos and the command line.
//!
//! The counterpart of [`crate::Prover`], and judged by it where there are several schemes. It sends nothing itself. Where a provider signs inside of the body, the body is printed again with the signature in it.

use bytes::Bytes;
use http::{HeaderMap, Method};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::batch::elements;
use crate::json::Json;
use crate::outside::NoDocuments;
use crate::prover::{Lane, Prover};
use crate::request::{Opened, Request};
use crate::scene::{Known, Scene};
use crate::scheme::{Scheme, TimeUnit};
use crate::signature::encode;
use crate::verify::Prove as _;

mod draft;

use draft::Draft;

/// A request that is about to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The absolute URL.
    pub url: String,
    /// The path behind the part that names the source.
    pub tail: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Outgoing {
    /// Describes a POST.
    pub fn post(url: impl Into<String>, headers: HeaderMap, body: Bytes) -> Self {
        Self {
            method: Method::POST,
            url: url.into(),
            tail: String::new(),
            headers,
            body,
        }
    }

    /// Looks at it as its receiver will.
    pub fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            url: &self.url,
            tail: &self.tail,
            headers: &self.headers,
            body: &self.body,
        }
    }
}

/// The reason why nothing can be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CannotSign {
    /// Says that only the provider has the key.
    #[error("only the provider can sign with this scheme: the receiver has its public key")]
    NotOurKey,
    /// Says that the body has no room for what the scheme signs.
    #[error("the body lacks what this scheme signs")]
    Body,
}

impl Prover {
    /// Makes the headers that prove a body; times before 1970 count as its start.
    pub fn sign(&self, body: &Bytes, at_ms: i64) -> Result<HeaderMap, CannotSign> {
        let request = Outgoing::post("", HeaderMap::new(), body.clone());
        self.sign_request(request, at_ms)
            .map(|signed| signed.headers)
    }

    /// Signs a request with the first scheme that it can be proven by.
    pub fn sign_request(&self, request: Outgoing, at_ms: i64) -> Result<Outgoing, CannotSign> {
        let at_ms = at_ms.max(0);
        let able = |lane: &&Lane| lane.scheme.algorithm.is_symmetric() && !lane.keys.is_empty();
        let mut lanes = self.lanes.iter().filter(able).peekable();
        if lanes.peek().is_none() {
            return Err(CannotSign::NotOurKey);
        }
        for lane in lanes {
            let Some(signed) = self.try_lane(lane, request.clone(), at_ms) else {
                continue;
            };
            // A scheme without conditions applies to every request: it need not be asked.
            if lane.scheme.when.is_empty() || self.takes(&signed, at_ms) {
                return Ok(signed);
            }
        }
        Err(CannotSign::Body)
    }

    fn takes(&self, signed: &Outgoing, at_ms: i64) -> bool {
        self.prove(&signed.request(), at_ms, &NoDocuments).is_ok()
    }

    fn try_lane(&self, lane: &Lane, request: Outgoing, at_ms: i64) -> Option<Outgoing> {
        let scheme = &lane.scheme;
        let id = format!("id_{}", hex::encode(&Sha256::digest(&request.body)[..12]));
        let time = scheme.time.as_ref().map(|time| written(time.unit, at_ms));
        let mut draft = Draft {
            request,
            scheme,
            settings: &self.settings,
        };
        draft.complete(&id, time.as_deref())?;
        let texts = match &scheme.each {
            Some(pattern) => {
                let json = Json::parse(&draft.request.body).ok()?;
                let found = elements(&draft.request.body, std::slice::from_ref(pattern)).ok()??;
                let lineages = found.iter().map(|element| element.lineage(&json));
                let signed = lineages.map(|lineage| {
                    self.signature(
                        lane,
                        &draft.request,
                        lineage.last().copied(),
                        time.as_deref(),
                    )
                });
                signed.collect::<Option<Vec<_>>>()?
            }
            None => vec![self.signature(lane, &draft.request, None, time.as_deref())?],
        };
        draft.place(&lane.label, &texts, time.as_deref())?;
        Some(draft.request)
    }

    fn signature(
        &self,
        lane: &Lane,
        request: &Outgoing,
        element: Option<&Json<'_>>,
        time: Option<&str>,
    ) -> Option<String> {
        let (_, key) = lane.keys.last()?;
        let opened = Opened::new(request.request());
        let scene = Scene {
            opened: &opened,
            element,
            settings: &self.settings,
        };
        let known = Known {
            timestamp: time.unwrap_or_default().as_bytes(),
            url: &request.url,
            key: key.plain(),
        };
        let text = scene.pieces(&lane.scheme.signed, known).ok()?;
        let bytes = key.sign(lane.scheme.algorithm, &text)?;
        String::from_utf8(encode(lane.scheme.signature.encoding, &bytes)).ok()
    }
}

fn written(unit: TimeUnit, at_ms: i64) -> String {
    match unit {
        TimeUnit::UnixSeconds => (at_ms / 1000).to_string(),
        TimeUnit::UnixMillis => at_ms.to_string(),
        TimeUnit::Rfc3339 => jiff::Timestamp::from_millisecond(at_ms)
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
            .to_string(),
    }
}

/// Tells whether a receiver's secret is enough to sign with one of the schemes.
pub(crate) fn can_sign(schemes: &[Scheme]) -> bool {
    let is_able = |scheme: &Scheme| scheme.algorithm.is_symmetric();
    schemes.iter().any(is_able)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use crate::settings::Settings;
    use crate::timestamp::Window;
    use http::{HeaderName, HeaderValue};

    fn names_and_values(scheme: Scheme, at_ms: i64) -> Vec<(String, String)> {
        let window = Window {
            past_ms: 1,
            future_ms: 1,
        };
        let secrets = [Secret::new("a-long-secret").unwrap()];
        let prover = Prover::new(&[scheme], &secrets, Settings::default(), window).unwrap();
        let headers = prover.sign(&Bytes::from_static(b"{}"), at_ms).unwrap();
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        headers.iter().map(pair).collect()
    }

    #[test]
    fn a_timed_scheme_sends_both_headers() {
        let headers = names_and_values(Scheme::standard(), 1_767_225_600_999);
        assert_eq!(
            headers[0],
            ("x-webhook-timestamp".to_owned(), "1767225600".to_owned())
        );
        assert_eq!(headers[1].0, "x-webhook-signature");
        assert!(headers[1].1.starts_with("v1=") && headers[1].1.len() == 67);
    }

    #[test]
    fn a_scheme_without_time_sends_one_header() {
        let headers = names_and_values(Scheme::body_only(), i64::MIN);
        assert_eq!(headers.len(), 1);
        assert_eq!(
            (headers[0].0.as_str(), headers[0].1.len()),
            ("x-signature", 64)
        );
    }

    #[test]
    fn times_before_1970_are_its_start() {
        assert_eq!(names_and_values(Scheme::standard(), -1)[0].1, "0");
    }
}
