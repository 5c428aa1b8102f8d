//! Refusals: what a delivery is refused as, its answer now, and its row behind.

use bytes::Bytes;
use sekali::event::Rejected;
use sekali::identify::{Refusal, identify_late};
use sekali::observer::{self, Observer as _};
use sekali::{Outcome, Reason};
use sekali_verify::{Rejection, SignatureProblem, StaleReason, TimestampProblem};
use sha2::{Digest as _, Sha256};

use super::Hook;
use crate::http::answer::{Answer, OwnBody};

/// After how many seconds a sender comes again when nothing better is known.
const RETRY_AFTER: u64 = 5;

/// What is known of a delivery that is refused.
#[derive(Default)]
pub(super) struct Known {
    pub(super) event_id: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) entity_id: Option<String>,
    pub(super) payload_hash: Option<[u8; 32]>,
    pub(super) signature_valid: Option<bool>,
    pub(super) drift_ms: Option<i64>,
    pub(super) retry_after: Option<u64>,
    pub(super) status: Option<u16>,
    pub(super) closes: bool,
}

impl Hook<'_> {
    /// Answers a request whose sender is not proven, or not in time.
    pub(super) async fn rejected(
        &self,
        rejection: Rejection,
        request: &sekali_verify::Request<'_>,
    ) -> Answer {
        let known = |drift_ms| self.known(request.body, drift_ms);
        match rejection {
            Rejection::Stale(stale) => {
                let reason = match stale.reason() {
                    StaleReason::Expired => Reason::TimestampTooOld,
                    StaleReason::InFuture => Reason::TimestampInFuture,
                };
                // Only a known event can be recognized; what cannot be identified is just too old.
                match identify_late(self.source, &stale, self.arrival(request)) {
                    Ok(events) if !self.source.strict_expiry && !events.is_empty() => {
                        self.admit(events, Some(reason), Some(stale.drift_ms()))
                            .await
                    }
                    _ => self.refuse(Outcome::Timestamp, reason, known(Some(stale.drift_ms()))),
                }
            }
            Rejection::Timestamp(problem) => {
                self.refuse(Outcome::Timestamp, timestamp_reason(&problem), known(None))
            }
            Rejection::KeyNeeded(_) => {
                let known = Known {
                    signature_valid: None,
                    ..known(None)
                };
                self.refuse(Outcome::Unavailable, Reason::KeyUnavailable, known)
            }
            Rejection::Signature(problem) => self.unverified(signature_reason(&problem), request),
        }
    }

    fn unverified(&self, reason: Reason, request: &sekali_verify::Request<'_>) -> Answer {
        let known = Known {
            signature_valid: Some(false),
            ..self.known(request.body, None)
        };
        match self.remote.map_or(Ok(()), |address| {
            self.app.throttle.unverified(address, self.received_at)
        }) {
            Ok(()) => {
                self.keep(reason, request);
                self.refuse(Outcome::Signature, reason, known)
            }
            Err(seconds) => {
                let known = Known {
                    retry_after: Some(seconds),
                    ..known
                };
                self.refuse(Outcome::Throttled, Reason::RateLimited, known)
            }
        }
    }

    pub(super) fn unusable(&self, refusal: Refusal, known: Known) -> Answer {
        self.refuse(
            Outcome::Malformed,
            refusal.reason,
            Known {
                event_id: refusal.event_id,
                ..known
            },
        )
    }

    pub(super) fn known(&self, body: &Bytes, drift_ms: Option<i64>) -> Known {
        Known {
            payload_hash: Some(Sha256::digest(body).into()),
            signature_valid: self.source.is_signed().then_some(true),
            drift_ms,
            ..Known::default()
        }
    }

    /// Refuses a delivery: the answer now, its row behind.
    pub(super) fn refuse(&self, outcome: Outcome, reason: Reason, known: Known) -> Answer {
        let status = known
            .status
            .unwrap_or_else(|| self.source.http_status(outcome));
        self.app.metrics.received(observer::Received {
            event_id: known.event_id.as_deref(),
            event_type: known.event_type.as_deref(),
            entity_id: known.entity_id.as_deref(),
            ..self.observed(outcome, Some(reason), known.drift_ms)
        });
        self.app.admission.reject(Rejected {
            source: self.source.id.clone(),
            received_at: self.received_at,
            outcome,
            reason,
            http_status: status,
            payload_hash: known.payload_hash,
            signature_valid: known.signature_valid,
            remote_address: self.remote.map(|remote| remote.to_string()),
            duration_us: i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX),
        });
        let retries = matches!(outcome, Outcome::Unavailable | Outcome::Throttled);
        Answer {
            status,
            outcome,
            reason: Some(reason),
            event_id: known.event_id,
            request_id: self.request_id.clone(),
            retry_after: known.retry_after.or(retries.then_some(RETRY_AFTER)),
            closes: known.closes,
            body: match outcome {
                Outcome::Signature => OwnBody::of_refusal(&self.source.answers),
                _ => None,
            },
        }
    }
}

fn signature_reason(problem: &SignatureProblem) -> Reason {
    match problem {
        SignatureProblem::Missing => Reason::SignatureMissing,
        SignatureProblem::Malformed => Reason::SignatureMalformed,
        SignatureProblem::TooMany => Reason::SignatureTooMany,
        SignatureProblem::UntrustedKey => Reason::SignatureUntrustedKey,
        _ => Reason::SignatureWrong,
    }
}

fn timestamp_reason(problem: &TimestampProblem) -> Reason {
    match problem {
        TimestampProblem::NotATime => Reason::TimestampNotATime,
        TimestampProblem::Unit => Reason::TimestampUnit,
        TimestampProblem::OutOfRange => Reason::TimestampOutOfRange,
        TimestampProblem::Repeated => Reason::TimestampRepeated,
        _ => Reason::TimestampUnreadable,
    }
}
