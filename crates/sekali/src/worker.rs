//! The worker: claims due events, applies them, and records what became of each attempt.
//!
//! A batch is applied in one transaction. If one of its events fails, nothing of the batch is kept: the events before it
//! are applied together again, the failing one alone, and then the rest, so that an event only ever fails itself. Events
//! that were taken over from a worker that died run alone from the start.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::clock::Clock;
use crate::effect::Failure;
use crate::error::{Error, Result, chain};
use crate::limits::Limits;
use crate::observer::{Observer, Settled};
use crate::reason::{Reason, Status};
use crate::source::Sources;
use crate::store::{Claim, Claimed, GiveBack, Renew, Store};
use crate::wake::Wake;

mod apply;
mod fail;
mod gate;
mod prepare;
mod writes;

use apply::{Apply, Done};
use fail::Failed;
use prepare::{Prepared, prepare};

/// How long a worker rests after the store failed.
const REST: Duration = Duration::from_secs(1);

/// What all workers of a process share.
pub(crate) struct Worker {
    pub(crate) store: Store,
    pub(crate) sources: Sources,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) wake: Wake,
    pub(crate) stop: watch::Receiver<bool>,
    /// Makes the tokens of this process's leases differ from those of every other.
    pub(crate) node: u64,
    pub(crate) claims: Arc<AtomicU64>,
}

/// Events under one claim.
struct Batch {
    events: Arc<[Prepared]>,
    claimed_at: Instant,
}

impl Worker {
    /// Works until it is told to stop; what it holds then is finished or given back.
    pub(crate) async fn run(self) {
        let mut stop = self.stop.clone();
        while !*stop.borrow() {
            match self.claim().await {
                Ok(claimed) if claimed.is_empty() => {
                    tokio::select! {
                        () = self.wake.told() => {}
                        () = tokio::time::sleep(self.limits.poll) => {}
                        _ = stop.changed() => {}
                    }
                }
                Ok(claimed) => self.work(claimed).await,
                Err(error) => {
                    self.store_failed("claim events", &error);
                    tokio::select! {
                        () = tokio::time::sleep(REST) => {}
                        _ = stop.changed() => {}
                    }
                }
            }
        }
    }

    async fn claim(&self) -> Result<Vec<Claimed>> {
        let number = self.claims.fetch_add(1, Ordering::Relaxed);
        let claim = Claim {
            max_len: self.limits.claim_len,
            max_bytes: self.limits.claim_bytes,
            lease_ms: self.lease_ms(),
            token: format!("{:016x}-{number}", self.node),
        };
        self.store.write(claim).await
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.limits.lease.as_millis()).unwrap_or(i64::MAX)
    }

    async fn work(&self, claimed: Vec<Claimed>) {
        let (mut alone, mut together, mut unusable) = (Vec::new(), Vec::new(), Vec::new());
        for event in claimed {
            match prepare(&self.sources, event) {
                Ok(prepared) if prepared.event.was_taken_over => alone.push(prepared),
                Ok(prepared) => together.push(prepared),
                Err(refused) => unusable.push(*refused),
            }
        }
        for (event, failure) in &unusable {
            self.fail(
                event,
                Failed {
                    prepared: None,
                    failure,
                    began: Instant::now(),
                },
            )
            .await;
        }
        let claimed_at = Instant::now();
        let mut batches = vec![together];
        batches.extend(alone.into_iter().map(|event| vec![event]));
        for events in batches.into_iter().filter(|events| !events.is_empty()) {
            let batch = Batch {
                events: events.into(),
                claimed_at,
            };
            let all = 0..batch.events.len();
            self.apply(&batch, all).await;
        }
    }

    /// Applies a range of a batch; what the budget of one transaction leaves is applied by the next.
    async fn apply(&self, batch: &Batch, range: Range<usize>) {
        let mut open = range;
        let mut step = self.step(&open);
        let mut is_careful = false;
        while !open.is_empty() {
            if *self.stop.borrow() || !self.still_holds(batch, &open).await {
                return self.give_back(batch, open).await;
            }
            let began = Instant::now();
            let transaction = Apply {
                is_careful,
                ..self.transaction(batch, step.clone())
            };
            match self.store.write(transaction).await {
                // The same again, to see whose failure it is.
                Err(Error::Together { .. }) if !is_careful => is_careful = true,
                Ok(done) => {
                    open.start += done.len();
                    is_careful &= open.start < step.end;
                    step = match open.start < step.end {
                        true => open.start..step.end,
                        false => self.step(&open),
                    };
                    self.report(batch, &done);
                }
                Err(Error::LostLease { .. }) if step.len() == 1 => {
                    log_lost(&batch.events[open.start].event);
                    open.start += 1;
                    step = self.step(&open);
                }
                Err(Error::Effect { failure, .. }) if step.len() == 1 => {
                    let prepared = &batch.events[open.start];
                    let failed = Failed {
                        prepared: Some(prepared),
                        failure: &failure,
                        began,
                    };
                    self.fail(&prepared.event, failed).await;
                    open.start += 1;
                    step = self.step(&open);
                }
                Err(Error::Effect { index, .. }) if index > 0 => {
                    step = open.start..open.start + index
                }
                Err(Error::Effect { .. } | Error::LostLease { .. }) => {
                    step = open.start..open.start + 1
                }
                Err(error) => return self.rest_after(batch, open, &error).await,
            }
        }
    }

    /// Returns what the next transaction takes of the events that are open.
    fn step(&self, open: &Range<usize>) -> Range<usize> {
        open.start..open.end.min(open.start + self.limits.apply_len)
    }

    fn transaction(&self, batch: &Batch, range: Range<usize>) -> Apply {
        let only = (range.len() == 1).then(|| &batch.events[range.start]);
        let is_last_try = only
            .is_some_and(|only| only.event.attempt >= i64::from(only.source.retry.max_attempts));
        Apply {
            events: batch.events.clone(),
            range,
            is_careful: false,
            budget: self.limits.apply_budget,
            effect_timeout: self.limits.effect_timeout,
            gives_way_after: match is_last_try {
                // Deliveries wait longer for it, once, or it could never be applied under steady load.
                true => self.limits.effect_timeout / 4,
                false => self.limits.apply_budget,
            },
        }
    }

    /// Renews the leases once half of their time is over; tells whether all of them still hold.
    async fn still_holds(&self, batch: &Batch, open: &Range<usize>) -> bool {
        if batch.claimed_at.elapsed() < self.limits.lease / 2 {
            return true;
        }
        let leases = leases(batch, open.clone());
        let len = leases.len();
        let renewed = self
            .store
            .write(Renew {
                leases,
                lease_ms: self.lease_ms(),
            })
            .await;
        renewed.is_ok_and(|held| held.len() == len)
    }

    async fn give_back(&self, batch: &Batch, open: Range<usize>) {
        if let Err(error) = self
            .store
            .write(GiveBack {
                leases: leases(batch, open),
            })
            .await
        {
            tracing::warn!(
                error = chain(&error),
                "leases could not be given back; they run out by themselves"
            );
        }
    }

    async fn rest_after(&self, batch: &Batch, open: Range<usize>, error: &Error) {
        self.store_failed("apply events", error);
        if open.len() == 1 && matches!(error, Error::Closed) {
            // The store lives and this transaction had no answer: the event made it panic.
            let prepared = &batch.events[open.start];
            let failure = Failure {
                reason: Reason::EffectFailed,
                message: "the apply transaction panicked".into(),
                is_permanent: false,
            };
            let failed = Failed {
                prepared: Some(prepared),
                failure: &failure,
                began: Instant::now(),
            };
            return self.fail(&prepared.event, failed).await;
        }
        self.give_back(batch, open).await;
        tokio::time::sleep(REST).await;
    }

    fn report(&self, batch: &Batch, done: &[Done]) {
        for done in done {
            let event = &batch.events[done.index].event;
            let since_occurred_ms = event
                .position
                .occurred_at
                .map(|at| self.clock.now_ms().saturating_sub(at / 1_000_000));
            self.observer.settled(Settled {
                status: done.settlement.status,
                reason: done.settlement.reason,
                message: done.settlement.message.as_deref(),
                since_occurred_seconds: since_occurred_ms.map(|ms| ms as f64 / 1000.0),
                has_version_conflict: done.has_version_conflict,
                is_version_regressed: done.is_version_regressed,
                ..settled(event)
            });
        }
    }

    fn store_failed(&self, step: &'static str, error: &Error) {
        self.observer.store_failed(step);
        tracing::error!(error = chain(error), "the worker could not {step}");
    }
}

fn leases(batch: &Batch, open: Range<usize>) -> Vec<(i64, String)> {
    batch.events[open]
        .iter()
        .map(|prepared| (prepared.event.seq, prepared.event.token.clone()))
        .collect()
}

fn log_lost(event: &Claimed) {
    tracing::warn!(
        source = event.source,
        event_id = event.position.event_id,
        entity_id = event.entity_id,
        event_type = event.event_type,
        "the event was taken over by another worker; nothing of this attempt is kept"
    );
}

fn settled(event: &Claimed) -> Settled<'_> {
    Settled {
        source: &event.source,
        event_id: &event.position.event_id,
        event_type: &event.event_type,
        entity_id: &event.entity_id,
        attempt: event.attempt,
        status: Status::Processing,
        reason: None,
        message: None,
        since_occurred_seconds: None,
        has_version_conflict: false,
        is_version_regressed: false,
    }
}
