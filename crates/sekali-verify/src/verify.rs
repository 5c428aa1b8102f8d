//! Holds a request against its scheme: the signature first, then the time.
//!
//! Only this module makes a [`Verified`], so whoever has one has proof. It works on the bytes
//! that were received and never on a re-printed form, and it neither parses nor stores the body.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use hmac::Mac;
use http::{HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::rejection::{Rejection, SignatureProblem, TimestampProblem};
use crate::scheme::{Part, Scheme};
use crate::secret::Secret;
use crate::signature::Candidates;
use crate::signed::SignedText;
use crate::timestamp::{self, Reading, StaleReason, Window};

/// Everything that a request is held against.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// The sender's scheme.
    pub scheme: &'a Scheme,
    /// The active secrets; one that fits is enough, and none at all verifies nothing.
    pub secrets: &'a [Secret],
    /// The tolerated distance of a signed time.
    pub window: Window,
    /// The receiver's time, in milliseconds since 1970.
    pub now_ms: i64,
}

impl Check<'_> {
    /// Proves that the holder of a secret signed this body, and did so inside of the window.
    pub fn verify(&self, headers: &HeaderMap, body: Bytes) -> Result<Verified, Rejection> {
        let candidates = Candidates::find(&self.scheme.signature, headers)?;
        let signed = SignedText {
            timestamp: self.timestamp(headers)?,
            parts: self.parts(),
            body,
        };
        if !self.is_genuine(&candidates, &signed) {
            return Err(SignatureProblem::WrongSignature.into());
        }
        let reading = self.read_time(headers, &signed)?;
        match reading.and_then(|reading| Some((reading, reading.stale?))) {
            Some((reading, reason)) => Err(Stale {
                body: signed.body,
                reading,
                reason,
            }
            .into()),
            None => Ok(Verified { signed, reading }),
        }
    }

    fn parts(&self) -> Option<Arc<[Part]>> {
        Some(Arc::clone(&self.scheme.signed))
    }

    /// A missing timestamp is a missing signature: there is no text that could have been signed.
    fn timestamp(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, SignatureProblem> {
        let Some(time) = &self.scheme.time else {
            return Ok(None);
        };
        let value = headers.get(&time.header).ok_or(SignatureProblem::Missing)?;
        Ok(Some(value.clone()))
    }

    fn is_genuine(&self, candidates: &Candidates, signed: &SignedText) -> bool {
        self.secrets.iter().any(|secret| {
            let mut mac = secret.start(self.scheme);
            signed.feed(|bytes| mac.update(bytes));
            candidates.contain(&mac.finalize())
        })
    }

    /// Judged after the signature, so that only its sender learns what is wrong with a time.
    fn read_time(
        &self,
        headers: &HeaderMap,
        signed: &SignedText,
    ) -> Result<Option<Reading>, TimestampProblem> {
        let (Some(time), Some(text)) = (&self.scheme.time, &signed.timestamp) else {
            return Ok(None);
        };
        if headers.get_all(&time.header).iter().nth(1).is_some() {
            return Err(TimestampProblem::Repeated);
        }
        timestamp::read(text.as_bytes(), time.unit, self.window, self.now_ms).map(Some)
    }
}

/// A body whose sender is proven, or whose source is declared to prove nothing.
pub struct Verified {
    signed: SignedText,
    reading: Option<Reading>,
}

impl Verified {
    /// Wraps the body of a source that is configured to have no signature.
    pub fn unsigned(body: Bytes) -> Self {
        Self {
            signed: SignedText {
                parts: None,
                timestamp: None,
                body,
            },
            reading: None,
        }
    }

    /// Gives the body as it was received.
    pub fn body(&self) -> &Bytes {
        &self.signed.body
    }

    /// Turns into the body as it was received.
    pub fn into_body(self) -> Bytes {
        self.signed.body
    }

    /// Gives the signed time in milliseconds since 1970, where the scheme signs one.
    pub fn signed_at_ms(&self) -> Option<i64> {
        self.reading.map(|reading| reading.signed_at_ms)
    }

    /// Gives how long before now it was signed, where the scheme signs a time.
    pub fn drift_ms(&self) -> Option<i64> {
        self.reading.map(|reading| reading.drift_ms)
    }

    /// Computes the SHA-256 of exactly the signed bytes; of the body where nothing is signed.
    pub fn signed_digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        self.signed.feed(|bytes| digest.update(bytes));
        digest.finalize().into()
    }

    /// Tells whether a signature covers every byte of the body.
    pub fn covers_whole_body(&self) -> bool {
        self.signed
            .parts
            .as_ref()
            .is_some_and(|parts| parts.contains(&Part::Body))
    }

    /// Tells whether there was a signature at all.
    pub fn is_signed(&self) -> bool {
        self.signed.parts.is_some()
    }
}

// Bodies hold other people's data and do not belong into a log.
impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("body_bytes", &self.signed.body.len())
            .field("is_signed", &self.is_signed())
            .field("signed_at_ms", &self.signed_at_ms())
            .field("drift_ms", &self.drift_ms())
            .finish()
    }
}

/// A genuinely signed body outside of the window, good only for recognising a known event.
#[derive(Error)]
#[error("{reason}")]
pub struct Stale {
    body: Bytes,
    reading: Reading,
    reason: StaleReason,
}

impl Stale {
    /// Gives the body as it was received.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Gives the signed time in milliseconds since 1970.
    pub fn signed_at_ms(&self) -> i64 {
        self.reading.signed_at_ms
    }

    /// Gives how long before now it was signed; negative for the future.
    pub fn drift_ms(&self) -> i64 {
        self.reading.drift_ms
    }

    /// Tells on which side of the window it lies.
    pub fn reason(&self) -> StaleReason {
        self.reason
    }
}

impl fmt::Debug for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stale")
            .field("body_bytes", &self.body.len())
            .field("reading", &self.reading)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_767_225_600_000;
    const WINDOW: Window = Window {
        past_ms: 300_000,
        future_ms: 300_000,
    };

    fn delivered_at(now_ms: i64) -> Result<Verified, Rejection> {
        let (scheme, secrets) = (Scheme::standard(), [Secret::new("a-long-secret").unwrap()]);
        let body = Bytes::from_static(b"{\"private\":1}");
        let headers = scheme.sign(&secrets[0], &body, NOW).into_iter().collect();
        Check {
            scheme: &scheme,
            secrets: &secrets,
            window: WINDOW,
            now_ms,
        }
        .verify(&headers, body)
    }

    #[test]
    fn the_digest_is_over_the_signed_bytes() {
        let verified = delivered_at(NOW + 5).unwrap();
        let joined: [u8; 32] = Sha256::digest(b"1767225600.{\"private\":1}").into();
        assert_eq!(verified.signed_digest(), joined);
        assert!(verified.is_signed() && verified.covers_whole_body());
        assert_eq!(
            (verified.signed_at_ms(), verified.drift_ms()),
            (Some(NOW), Some(5))
        );
    }

    #[test]
    fn unsigned_bodies_are_known_as_such() {
        let verified = Verified::unsigned(Bytes::from_static(b"x"));
        assert!(!verified.is_signed() && !verified.covers_whole_body());
        assert_eq!((verified.signed_at_ms(), verified.drift_ms()), (None, None));
        assert_eq!(
            verified.signed_digest(),
            <[u8; 32]>::from(Sha256::digest(b"x"))
        );
        assert_eq!(verified.into_body(), "x");
    }

    #[test]
    fn a_stale_body_keeps_what_recognises_it() {
        let Err(Rejection::Stale(stale)) = delivered_at(NOW + 300_001) else {
            panic!("not stale");
        };
        assert_eq!(
            (stale.drift_ms(), stale.reason()),
            (300_001, StaleReason::Expired)
        );
        assert_eq!(stale.body(), "{\"private\":1}");
        let Err(early) = delivered_at(NOW - 300_001) else {
            panic!("not stale")
        };
        assert_eq!(early.code(), "timestamp_in_future");
    }

    #[test]
    fn bodies_are_not_printed() {
        let verified = format!("{:?}", delivered_at(NOW));
        let stale = format!("{:?}", delivered_at(0));
        assert!(!verified.contains("private") && !stale.contains("private"));
    }
}
