//! The apply transaction: effects, entity positions, attempt rows and inbox marks of a batch commit together.
//!
//! The entities' rows are locked first, in the order of their keys. Each event is then held against its entity as the
//! events before it in the batch left it. An effect that fails takes the whole transaction with it; the worker runs the
//! events again so that only the failing one fails.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::gate::{Gate, Verdict, gate};
use super::prepare::Prepared;
use crate::effect::{Effect, EffectKind, Failure, Plan};
use crate::error::{Error, Result, Step as _};
use crate::event::EntityKey;
use crate::order::{EffectOrder, Standing};
use crate::reason::{Reason, Status};
use crate::store::{
    Attempt, Conn, DbErrorKind, EntityState, Interruption, Settlement, Transaction,
    insert_attempts, lock_entities, save_entity, settle, wake_followers,
};

/// Applies a range of prepared events.
pub(super) struct Apply {
    pub(super) events: Arc<[Prepared]>,
    pub(super) range: Range<usize>,
    /// After how long the transaction takes no further event.
    pub(super) budget: Duration,
    /// After how long the statements of one event are interrupted.
    pub(super) effect_timeout: Duration,
    /// After how long they are interrupted while deliveries wait.
    pub(super) gives_way_after: Duration,
}

/// What became of one event.
pub(super) struct Done {
    /// Its place in the batch.
    pub(super) index: usize,
    pub(super) settlement: Settlement,
    pub(super) has_version_conflict: bool,
    pub(super) is_version_regressed: bool,
}

/// What was decided about one effect.
#[derive(Serialize)]
struct Decision<'a> {
    effect: &'a str,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
}

impl Transaction for Apply {
    /// In order; fewer than asked for where the budget was used up.
    type Output = Vec<Done>;
    const STEP: &'static str = "apply events";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Vec<Done>> {
        let started = Instant::now();
        let now = conn.now_ms().await.step(Self::STEP)?;
        let events = &self.events[self.range.clone()];
        let keys = events.iter().filter_map(|prepared| prepared.event.entity());
        let mut states = lock_entities(conn, keys, now).await?;
        let (mut done, mut attempts) = (
            Vec::with_capacity(events.len()),
            Vec::with_capacity(events.len()),
        );
        for (index, prepared) in events.iter().enumerate() {
            if index > 0 && started.elapsed() >= self.budget {
                break;
            }
            let began = Instant::now();
            let key = prepared.event.entity();
            let state = key.as_ref().and_then(|key| states.get_mut(key));
            let one = self.apply(conn, prepared, key.as_ref().zip(state), now);
            let (settlement, verdict, decisions) = one.await.map_err(|error| at(index, error))?;
            settle(conn, &settlement, now).await?;
            attempts.extend(attempt_rows(prepared, &settlement, decisions, (now, began)));
            if let (Some(key), true) = (
                &key,
                prepared.source.ordering.contiguous && !settlement.status.is_pending(),
            ) {
                wake_followers(conn, key, prepared.event.position.version, now).await?;
            }
            done.push(Done {
                index: self.range.start + index,
                has_version_conflict: verdict.is_some_and(|verdict| verdict.has_version_conflict),
                is_version_regressed: verdict.is_some_and(|verdict| verdict.is_version_regressed),
                settlement,
            });
        }
        for (key, state) in states.iter().filter(|(_, state)| state.has_moved) {
            save_entity(conn, key, state, now).await?;
        }
        insert_attempts(conn, &attempts).await?;
        Ok(done)
    }
}

fn at(place: usize, error: Error) -> Error {
    match error {
        Error::Effect { failure, .. } => Error::Effect {
            index: place,
            failure,
        },
        other => other,
    }
}

impl Apply {
    async fn apply(
        &self,
        conn: &mut Conn<'_>,
        prepared: &Prepared,
        mut entity: Option<(&EntityKey, &mut EntityState)>,
        now: i64,
    ) -> Result<(Settlement, Option<Verdict>, String)> {
        let known = entity.as_ref().map(|(key, state)| (*key, &**state));
        let verdict = match gate(conn, prepared, known, now).await? {
            Gate::Open(verdict) => verdict,
            Gate::WaitsUntil(until) => return Ok((waiting(prepared, until), None, "[]".into())),
        };
        let decisions = decide(prepared, verdict.standing);
        let runs = |(decision, _): &(Decision<'_>, _)| decision.decision == "applied";
        let failed = decisions
            .iter()
            .filter(|found| runs(found))
            .find_map(|(_, plan)| plan.as_ref().err());
        if let Some(failure) = failed {
            return Ok((given_up(prepared, failure), Some(verdict), "[]".into()));
        }
        let is_guarded = !entity.as_ref().is_some_and(|(_, state)| state.was_reset);
        conn.guard(self.effect_timeout, self.gives_way_after);
        for ((decision, plan), (index, _)) in decisions.iter().zip(&prepared.plans) {
            if let ("applied", Ok(plan)) = (decision.decision, plan) {
                run_effect(conn, &prepared.source.effects[*index], plan, is_guarded).await?;
            }
        }
        conn.unguard();
        let settlement = settlement(prepared, &decisions, verdict);
        if let (Some((_, state)), Status::Processed, Standing::Newer) =
            (&mut entity, settlement.status, verdict.standing)
        {
            state.position = Some(prepared.event.position.clone());
            state.is_deleted = deletes(prepared);
            state.was_reset = false;
            state.has_moved = true;
        }
        let decisions: Vec<_> = decisions
            .into_iter()
            .map(|(decision, _)| decision)
            .collect();
        Ok((
            settlement,
            Some(verdict),
            serde_json::to_string(&decisions).unwrap_or_default(),
        ))
    }
}

/// Decides for each effect that matches whether it runs.
fn decide(prepared: &Prepared, standing: Standing) -> Vec<(Decision<'_>, &Result<Plan, Failure>)> {
    let decide = |(index, _): &(usize, Result<Plan, Failure>)| {
        let effect = &prepared.source.effects[*index];
        match standing {
            Standing::Stale(reason) if effect.order() == EffectOrder::LatestWins => Decision {
                effect: effect.name(),
                decision: "skipped",
                reason: Some(reason),
                stale: true,
            },
            Standing::Stale(reason) => Decision {
                effect: effect.name(),
                decision: "applied",
                reason: Some(reason),
                stale: true,
            },
            Standing::Newer => Decision {
                effect: effect.name(),
                decision: "applied",
                reason: None,
                stale: false,
            },
        }
    };
    prepared
        .plans
        .iter()
        .map(|planned| (decide(planned), &planned.1))
        .collect()
}

fn deletes(prepared: &Prepared) -> bool {
    prepared
        .plans
        .iter()
        .any(|(index, _)| prepared.source.effects[*index].kind() == EffectKind::Delete)
}

async fn run_effect(
    conn: &mut Conn<'_>,
    effect: &Effect,
    plan: &Plan,
    is_guarded: bool,
) -> Result<()> {
    let ran = effect.write().run(conn, &plan.values(), is_guarded).await;
    let failure = match ran {
        Ok(true) => return Ok(()),
        Ok(false) => Failure {
            reason: Reason::WriteGuard,
            message: format!("{}: {}", effect.name(), Reason::WriteGuard.sentence()),
            is_permanent: true,
        },
        Err(error) => {
            let (reason, is_permanent) = match (error.kind(), conn.unguard()) {
                (DbErrorKind::Constraint, _) => (Reason::Constraint, true),
                (DbErrorKind::Interrupted, Some(Interruption::GaveWay)) => {
                    (Reason::Preempted, false)
                }
                (DbErrorKind::Interrupted, _) => (Reason::EffectTimeout, false),
                (DbErrorKind::Other, _) => (Reason::EffectFailed, false),
            };
            Failure {
                reason,
                message: format!("{}: {error}", effect.name()),
                is_permanent,
            }
        }
    };
    Err(Error::Effect { index: 0, failure })
}

fn settlement(
    prepared: &Prepared,
    decisions: &[(Decision<'_>, &Result<Plan, Failure>)],
    verdict: Verdict,
) -> Settlement {
    let ran = decisions
        .iter()
        .any(|(decision, _)| decision.decision == "applied");
    let (status, reason) = match (ran, decisions.is_empty()) {
        (true, _) => (Status::Processed, verdict.reason()),
        (false, true) => (Status::IgnoredUnmatched, Some(Reason::NoEffect)),
        (false, false) => (Status::IgnoredOutOfOrder, verdict.reason()),
    };
    Settlement {
        status,
        reason,
        message: None,
        ..settle_as(prepared)
    }
}

fn waiting(prepared: &Prepared, until: i64) -> Settlement {
    Settlement {
        status: Status::Received,
        reason: Some(Reason::WaitingForVersion),
        next_attempt_at: Some(until),
        gives_attempt_back: true,
        ..settle_as(prepared)
    }
}

fn given_up(prepared: &Prepared, failure: &Failure) -> Settlement {
    Settlement {
        status: Status::DeadLetter,
        reason: Some(failure.reason),
        message: Some(failure.message.clone()),
        ..settle_as(prepared)
    }
}

fn settle_as(prepared: &Prepared) -> Settlement {
    Settlement {
        seq: prepared.event.seq,
        token: prepared.event.token.clone(),
        status: Status::Processed,
        reason: None,
        message: None,
        next_attempt_at: None,
        gives_attempt_back: false,
    }
}

/// Makes the rows of an attempt, and of the one before it where its worker never came back. Waiting is no attempt, and
/// has one row the first time.
fn attempt_rows(
    prepared: &Prepared,
    settlement: &Settlement,
    decisions: String,
    (now, began): (i64, Instant),
) -> Vec<Attempt> {
    let event = &prepared.event;
    let row = Attempt {
        seq: event.seq,
        attempt: event.attempt,
        started_at: now,
        duration_us: i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX),
        status: settlement.status,
        reason: settlement.reason,
        message: settlement.message.clone(),
        decisions,
    };
    let mut rows = Vec::with_capacity(1);
    if event.was_taken_over {
        let message = Some(Reason::LeaseExpired.sentence().to_owned());
        let (attempt, decisions) = (event.attempt - 1, "[]".to_owned());
        let reason = Some(Reason::LeaseExpired);
        rows.push(Attempt {
            attempt,
            decisions,
            message,
            reason,
            status: Status::Failed,
            ..row.clone()
        });
    }
    let waits_again = settlement.gives_attempt_back && event.waited_for == settlement.reason;
    if !waits_again {
        rows.push(row);
    }
    rows
}
