//! What a failed attempt leads to: another try later, or the dead letter.

use std::time::{Duration, Instant};

use super::prepare::Prepared;
use super::{Worker, log_lost, settled};
use crate::effect::Failure;
use crate::error::Error;
use crate::limits::MAX_MESSAGE_BYTES;
use crate::observer::Settled;
use crate::reason::{Reason, Status};
use crate::retry::Retry;
use crate::store::{Attempt, Claimed, Fail, Settlement};

/// For how long after its receipt an event may give way to deliveries without using up attempts.
const GIVES_WAY_FREELY: Duration = Duration::from_secs(60);

/// A failed attempt.
pub(super) struct Failed<'a> {
    /// The event's plans; `None` where it did not come so far.
    pub(super) prepared: Option<&'a Prepared>,
    pub(super) failure: &'a Failure,
    pub(super) began: Instant,
}

/// Where the event goes.
struct Consequence {
    status: Status,
    next_attempt_in: Option<Duration>,
    gives_attempt_back: bool,
}

impl Worker {
    /// Records a failed attempt: tried again later, or given up.
    pub(super) async fn fail(&self, event: &Claimed, failed: Failed<'_>) {
        let (failure, now_ms) = (failed.failure, self.clock.now_ms());
        let retry = failed
            .prepared
            .map(|prepared| prepared.source.retry)
            .unwrap_or_default();
        let Consequence {
            status,
            next_attempt_in,
            gives_attempt_back,
        } = consequence(event, failure, retry, now_ms);
        let mut message = failure.message.clone();
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        let (reason, ms) = (Some(failure.reason), |span: Duration| {
            i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
        });
        let duration = failed.began.elapsed();
        let fail = Fail {
            settlement: Settlement {
                seq: event.seq,
                token: event.token.clone(),
                status,
                reason,
                message: Some(message.clone()),
                next_attempt_at: None,
                gives_attempt_back,
            },
            next_attempt_in_ms: next_attempt_in.map(ms),
            attempt: Attempt {
                seq: event.seq,
                attempt: event.attempt,
                started_at: now_ms.saturating_sub(ms(duration)),
                duration_us: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
                status,
                reason,
                message: Some(message.clone()),
                decisions: "[]".into(),
            },
            entity: event.entity(),
            version: event.position.version,
        };
        match self.store.write(fail).await {
            Ok(()) => {
                let message = Some(message.as_str());
                self.observer.settled(Settled {
                    status,
                    reason,
                    message,
                    ..settled(event)
                });
            }
            Err(Error::LostLease { .. }) => log_lost(event),
            Err(error) => self.store_failed("record a failed attempt", &error),
        }
    }
}

fn consequence(event: &Claimed, failure: &Failure, retry: Retry, now_ms: i64) -> Consequence {
    let age_ms = u64::try_from(now_ms.saturating_sub(event.received_at)).unwrap_or(0);
    // It did nothing wrong: deliveries were waiting. Only one that never finds a quiet moment uses up its attempts.
    if failure.reason == Reason::Preempted && Duration::from_millis(age_ms) < GIVES_WAY_FREELY {
        return Consequence {
            status: Status::Received,
            next_attempt_in: Some(retry.delay(1, fastrand::f64())),
            gives_attempt_back: true,
        };
    }
    let attempt = u32::try_from(event.attempt).unwrap_or(u32::MAX);
    let next_attempt_in = match failure.is_permanent {
        true => None,
        false => retry.after(attempt, fastrand::f64()),
    };
    let status = match next_attempt_in {
        Some(_) => Status::Failed,
        None => Status::DeadLetter,
    };
    Consequence {
        status,
        next_attempt_in,
        gives_attempt_back: false,
    }
}
