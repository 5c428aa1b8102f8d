//! Holds a request against the schemes of its source: the signature first, then the time.
//!
//! Only this module makes a [`Verified`], so whoever has one has proof. It works on the bytes
//! that were received and never on a re-printed form, and it does not store the body. A scheme that is
//! no data can be written in Rust as a [`Prove`].

use std::fmt;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::outside::KeyDocuments;
use crate::rejection::Rejection;
use crate::request::Request;
use crate::scheme::Coverage;
use crate::timestamp::{Reading, StaleReason};

/// Proves who sent a request; [`crate::Prover`] does it for schemes that are data.
pub trait Prove: Send + Sync + fmt::Debug {
    /// Holds a request against everything that its sender must know, at a time in milliseconds since 1970.
    fn prove(
        &self,
        request: &Request<'_>,
        now_ms: i64,
        documents: &dyn KeyDocuments,
    ) -> Result<Proof, Rejection>;

    /// Tells what the proof covers.
    fn coverage(&self) -> Coverage;

    /// Tells whether a time is part of what is proven.
    fn signs_time(&self) -> bool;

    /// Verifies a request.
    fn verify(
        &self,
        request: &Request<'_>,
        now_ms: i64,
        documents: &dyn KeyDocuments,
    ) -> Result<Verified, Rejection> {
        let proof = self.prove(request, now_ms, documents)?;
        match proof
            .reading
            .and_then(|reading| Some((reading, reading.stale?)))
        {
            Some((reading, reason)) => Err(Stale {
                body: request.body.clone(),
                reading,
                reason,
            }
            .into()),
            None => Ok(Verified {
                body: request.body.clone(),
                proof: Some(proof),
            }),
        }
    }
}

/// What was proven about a request.
#[derive(Clone)]
pub struct Proof {
    pub(crate) signed: Vec<Bytes>,
    pub(crate) coverage: Coverage,
    pub(crate) reading: Option<Reading>,
}

impl Proof {
    /// States that these bytes are what the sender signed.
    pub fn new(signed: Vec<Bytes>, coverage: Coverage) -> Self {
        Self {
            signed,
            coverage,
            reading: None,
        }
    }

    /// States when it was signed, inside of the tolerated window.
    pub fn signed_at(self, signed_at_ms: i64, now_ms: i64) -> Self {
        let reading = Reading {
            signed_at_ms,
            drift_ms: now_ms.saturating_sub(signed_at_ms),
            stale: None,
        };
        Self {
            reading: Some(reading),
            ..self
        }
    }
}

/// A body whose sender is proven, or whose source is declared to prove nothing.
pub struct Verified {
    body: Bytes,
    proof: Option<Proof>,
}

impl Verified {
    /// Wraps the body of a source that is configured to have no signature.
    pub fn unsigned(body: Bytes) -> Self {
        Self { body, proof: None }
    }

    /// Gives the body as it was received.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Turns into the body as it was received.
    pub fn into_body(self) -> Bytes {
        self.body
    }

    /// Gives the signed time in milliseconds since 1970, where the scheme signs one.
    pub fn signed_at_ms(&self) -> Option<i64> {
        Some(self.reading()?.signed_at_ms)
    }

    /// Gives how long before now it was signed, where the scheme signs a time.
    pub fn drift_ms(&self) -> Option<i64> {
        Some(self.reading()?.drift_ms)
    }

    /// Computes the SHA-256 of exactly the signed bytes; of the body where nothing is signed.
    pub fn signed_digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        match &self.proof {
            Some(proof) => proof.signed.iter().for_each(|piece| digest.update(piece)),
            None => digest.update(&self.body),
        }
        digest.finalize().into()
    }

    /// Tells whether a signature covers every byte of the body.
    pub fn covers_whole_body(&self) -> bool {
        let proof = self.proof.as_ref();
        proof.is_some_and(|proof| proof.coverage == Coverage::Body)
    }

    /// Tells whether there was a signature at all.
    pub fn is_signed(&self) -> bool {
        self.proof.is_some()
    }

    fn reading(&self) -> Option<Reading> {
        self.proof.as_ref()?.reading
    }
}

// Bodies hold other people's data and do not belong into a log.
impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("body_bytes", &self.body.len())
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
    use crate::outside::NoDocuments;
    use crate::prover::Prover;
    use crate::scheme::Scheme;
    use crate::secret::Secret;
    use crate::settings::Settings;
    use crate::timestamp::Window;

    const NOW: i64 = 1_767_225_600_000;
    const WINDOW: Window = Window {
        past_ms: 300_000,
        future_ms: 300_000,
    };

    fn delivered_at(now_ms: i64) -> Result<Verified, Rejection> {
        let secrets = [Secret::new("a-long-secret").unwrap()];
        let body = Bytes::from_static(b"{\"private\":1}");
        let prover =
            Prover::new(&[Scheme::standard()], &secrets, Settings::default(), WINDOW).unwrap();
        let headers = prover.sign(&body, NOW).unwrap();
        prover.verify(&Request::post(&headers, &body), now_ms, &NoDocuments)
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
