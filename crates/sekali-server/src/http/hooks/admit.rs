//! Admission: all events of a request are stored, or none, and one answer is given for all of them.

use std::time::Duration;

use sekali::event::{Delivery, NewEvent, Receipt};
use sekali::observer::{self, Observer as _};
use sekali::store::DbErrorKind;
use sekali::{Error, Outcome, Reason};

use super::Hook;
use super::refuse::Known;
use crate::http::answer::{Answer, OwnBody};

/// What names an event in a line of the log.
struct Labels {
    event_id: String,
    event_type: String,
    entity_id: String,
    payload_hash: [u8; 32],
}

impl Labels {
    fn of(event: &NewEvent) -> Self {
        Self {
            event_id: event.event_id.clone(),
            event_type: event.event_type.clone(),
            entity_id: event.entity_id.clone(),
            payload_hash: event.payload_hash,
        }
    }
}

impl From<Labels> for Known {
    fn from(labels: Labels) -> Self {
        Self {
            event_id: Some(labels.event_id),
            event_type: Some(labels.event_type),
            entity_id: Some(labels.entity_id),
            payload_hash: Some(labels.payload_hash),
            ..Self::default()
        }
    }
}

impl Hook<'_> {
    /// Stores all events of a request, or none.
    pub(super) async fn admit(
        &self,
        events: Vec<NewEvent>,
        only_if_known: Option<Reason>,
        drift_ms: Option<i64>,
    ) -> Answer {
        let labels: Vec<Labels> = events.iter().map(Labels::of).collect();
        let delivery = |event| Delivery {
            source: self.source.clone(),
            event,
            received_at: self.received_at,
            started: self.started,
            remote_address: self.remote.map(|remote| remote.to_string()),
            only_if_known,
        };
        let deliveries = events.into_iter().map(delivery).collect();
        let admitted = self.app.admission.admit_all(deliveries);
        match tokio::time::timeout(Duration::from(self.app.config.answer_within), admitted).await {
            Ok(Ok(receipts)) => {
                self.app.trouble.is_over();
                self.admitted(&receipts, labels, drift_ms)
            }
            failed => {
                if failed.as_ref().map_or(true, is_of_store) {
                    self.app.trouble.note();
                }
                let reason = match failed {
                    Ok(Err(Error::Busy { .. })) => Reason::QueueFull,
                    Ok(Err(Error::Closed)) => Reason::ShuttingDown,
                    _ => Reason::StoreUnavailable,
                };
                let first = labels.into_iter().next();
                let known = Known {
                    signature_valid: self.source.is_signed().then_some(true),
                    drift_ms,
                    ..first.map(Known::from).unwrap_or_default()
                };
                self.refuse(Outcome::Unavailable, reason, known)
            }
        }
    }

    /// Answers for all events of a request: with what is told of one, else with the most that has to be told.
    fn admitted(&self, receipts: &[Receipt], labels: Vec<Labels>, drift_ms: Option<i64>) -> Answer {
        for (receipt, labels) in receipts.iter().zip(&labels) {
            self.app.metrics.received(observer::Received {
                event_type: Some(&labels.event_type),
                event_id: Some(&labels.event_id),
                entity_id: Some(&labels.entity_id),
                ..self.observed(receipt.outcome, receipt.reason, drift_ms)
            });
        }
        let telling = receipts
            .iter()
            .max_by_key(|receipt| weight(receipt.outcome));
        let outcome = telling.map_or(Outcome::Accepted, |receipt| receipt.outcome);
        let reason = telling.and_then(|receipt| receipt.reason);
        let is_success = !matches!(outcome, Outcome::Timestamp);
        Answer {
            status: self.source.http_status(outcome),
            outcome,
            reason: reason.filter(|_| outcome != Outcome::Duplicate),
            event_id: match <[Labels; 1]>::try_from(labels) {
                Ok([labels]) => Some(labels.event_id),
                Err(_) => None,
            },
            request_id: self.request_id.clone(),
            retry_after: None,
            closes: false,
            body: is_success
                .then(|| OwnBody::of_success(&self.source.answers))
                .flatten(),
        }
    }

    pub(super) fn observed(
        &self,
        outcome: Outcome,
        reason: Option<Reason>,
        drift_ms: Option<i64>,
    ) -> observer::Received<'_> {
        observer::Received {
            source: &self.source.id,
            event_type: None,
            event_id: None,
            entity_id: None,
            outcome,
            reason,
            seconds: self.started.elapsed().as_secs_f64(),
            drift_seconds: drift_ms.map(|drift_ms| drift_ms as f64 / 1000.0),
        }
    }
}

/// Tells whether a delivery failed because of the store, and not because of itself.
fn is_of_store(failed: &Result<Vec<Receipt>, Error>) -> bool {
    match failed {
        Err(Error::Store { source, .. }) => source.kind() == DbErrorKind::Unavailable,
        _ => false,
    }
}

/// Orders outcomes by how much a sender has to hear of them.
fn weight(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Duplicate => 0,
        Outcome::Replay => 1,
        Outcome::Accepted => 2,
        Outcome::InconsistentDuplicate => 3,
        _ => 4,
    }
}
