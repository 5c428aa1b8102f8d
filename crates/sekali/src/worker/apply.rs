//! The apply transaction: effects, entity positions, attempt rows and inbox marks of a batch commit together.
//!
//! The entities' rows are locked first, in the order of their keys. Each event is then held against its entity as the
//! events before it in the batch left it. Where a statement is a round trip, the writes of events that have nothing to do
//! with each other go to the database together; if one of them fails, the transaction is rolled back and run again with
//! each event's writes alone. An effect that fails alone takes the whole transaction with it, and the worker runs the
//! events again so that only the failing one fails.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::gate::{Gate, Verdict, gate};
use super::prepare::Prepared;
use super::writes::Writes;
use crate::effect::{EffectKind, Failure, Plan};
use crate::error::{Result, Step as _};
use crate::event::EntityKey;
use crate::order::{EffectOrder, Standing};
use crate::reason::{Reason, Status};
use crate::store::{
    Attempt, Claimed, Conn, EntityState, Settlement, Transaction, conflicting, insert_attempts,
    lock_entities, note_positions, save_entities, settle, wake_followers,
};

/// How long all that is not an effect may take in one transaction, waiting for locks included.
const OWN_STATEMENTS_WITHIN: Duration = Duration::from_secs(20);

/// Applies a range of prepared events.
pub(super) struct Apply {
    pub(super) events: Arc<[Prepared]>,
    pub(super) range: Range<usize>,
    /// Whether the writes of each event go alone, so that a failure is its own.
    pub(super) is_careful: bool,
    /// After how long the transaction takes no further event, where it holds everybody else up.
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

    fn within(&self) -> Duration {
        let events = u32::try_from(self.range.len()).unwrap_or(u32::MAX);
        self.effect_timeout.saturating_mul(events) + OWN_STATEMENTS_WITHIN
    }

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Vec<Done>> {
        let started = Instant::now();
        let now = conn.now_ms().await.step(Self::STEP)?;
        let events = &self.events[self.range.clone()];
        let keys: Vec<Option<EntityKey>> = events
            .iter()
            .map(|prepared| prepared.event.entity())
            .collect();
        let mut states = lock_entities(conn, keys.iter().flatten().cloned(), now).await?;
        let mut batch = Batch::begin(self, conn, (events, &keys), now).await?;
        for (index, prepared) in events.iter().enumerate() {
            if conn.is_local() && index > 0 && started.elapsed() >= self.budget {
                break;
            }
            let entity = keys[index].as_ref();
            let entity = entity.and_then(|key| Some((key, states.get_mut(key)?)));
            batch.take(conn, (index, prepared), entity).await?;
        }
        batch.settle(conn).await?;
        save_entities(conn, &states, now).await?;
        insert_attempts(conn, &batch.attempts).await?;
        let done = batch.done.into_iter();
        Ok(done
            .map(|done| Done {
                index: self.range.start + done.index,
                ..done
            })
            .collect())
    }
}

/// The events of one transaction, as far as it came.
struct Batch<'e> {
    now: i64,
    /// Whether each event's writes go alone.
    is_careful: bool,
    /// The events that are about an entity, in their order.
    about: Vec<(&'e EntityKey, &'e Claimed)>,
    /// The events whose versions others claim that came in earlier transactions.
    conflicts: HashSet<i64>,
    writes: Writes<'e>,
    done: Vec<Done>,
    /// How many of those that are done are settled.
    settled: usize,
    attempts: Vec<Attempt>,
}

impl<'e> Batch<'e> {
    async fn begin(
        apply: &Apply,
        conn: &mut Conn<'_>,
        (events, keys): (&'e [Prepared], &'e [Option<EntityKey>]),
        now: i64,
    ) -> Result<Self> {
        let about: Vec<(&EntityKey, &Claimed)> = keys
            .iter()
            .zip(events)
            .filter_map(|(key, prepared)| Some((key.as_ref()?, &prepared.event)))
            .collect();
        let conflicts = conflicting(conn, &about).await?;
        let positions = about.iter();
        let positions = positions.map(|(key, event)| (*key, event.position.version, event.seq));
        note_positions(conn, positions).await?;
        Ok(Self {
            now,
            is_careful: apply.is_careful || conn.is_local(),
            about,
            conflicts,
            writes: Writes::new(apply.effect_timeout, apply.gives_way_after),
            done: Vec::with_capacity(events.len()),
            settled: 0,
            attempts: Vec::with_capacity(events.len()),
        })
    }

    /// Applies the next event.
    async fn take(
        &mut self,
        conn: &mut Conn<'_>,
        (index, prepared): (usize, &'e Prepared),
        entity: Option<(&'e EntityKey, &mut EntityState)>,
    ) -> Result<()> {
        let began = Instant::now();
        let key = entity.as_ref().map(|(key, _)| *key);
        let is_contiguous = prepared.source.ordering.contiguous;
        if is_contiguous {
            // Whether its turn has come is asked of the database, which has to know of the events before.
            self.settle(conn).await?;
        }
        let (settlement, verdict, decisions) = self.apply(conn, (index, prepared), entity).await?;
        if self.is_careful {
            self.writes.flush(conn).await?;
        }
        let rows = attempt_rows(prepared, &settlement, decisions, (self.now, began));
        self.attempts.extend(rows);
        let is_passed = !settlement.status.is_pending();
        self.done.push(Done {
            index,
            has_version_conflict: verdict.is_some_and(|verdict| verdict.has_version_conflict),
            is_version_regressed: verdict.is_some_and(|verdict| verdict.is_version_regressed),
            settlement,
        });
        if let (Some(key), true) = (key, is_contiguous && is_passed) {
            self.settle(conn).await?;
            wake_followers(conn, key, prepared.event.position.version, self.now).await?;
        }
        Ok(())
    }

    /// Has everything done that waits, and settles the events that are done.
    async fn settle(&mut self, conn: &mut Conn<'_>) -> Result<()> {
        self.writes.flush(conn).await?;
        let open = self.done[self.settled..].iter();
        settle(conn, open.map(|done| &done.settlement), self.now).await?;
        self.settled = self.done.len();
        Ok(())
    }

    async fn apply(
        &mut self,
        conn: &mut Conn<'_>,
        (index, prepared): (usize, &'e Prepared),
        mut entity: Option<(&'e EntityKey, &mut EntityState)>,
    ) -> Result<(Settlement, Option<Verdict>, String)> {
        let known = entity.as_ref().map(|(key, state)| (*key, &**state));
        let has_conflict = self.has_conflict(&prepared.event);
        let verdict = match gate(conn, prepared, known, has_conflict, self.now).await? {
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
        let key = entity.as_ref().map(|(key, _)| *key);
        self.writes.begin(conn, key).await?;
        for ((decision, _), (effect, plan)) in decisions.iter().zip(&prepared.plans) {
            if let ("applied", Ok(plan)) = (decision.decision, plan) {
                let effect = &prepared.source.effects[*effect];
                let write = (index, effect, plan);
                self.writes.add(conn, write, is_guarded).await?;
            }
        }
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

    /// Tells whether another event, noted before or earlier in the batch, claims the same version with other content.
    fn has_conflict(&self, event: &Claimed) -> bool {
        if self.conflicts.contains(&event.seq) {
            return true;
        }
        let place = self
            .about
            .iter()
            .position(|(_, other)| other.seq == event.seq);
        let (Some(place), Some(version)) = (place, event.position.version) else {
            return false;
        };
        let (key, mut earlier) = (self.about[place].0, self.about[..place].iter());
        earlier.any(|(other_key, other)| {
            other.position.version == Some(version)
                && *other_key == key
                && !is_same_content(event, other)
        })
    }
}

/// Compares the content of two events as the store does.
fn is_same_content(one: &Claimed, other: &Claimed) -> bool {
    match (&one.content_hash, &other.content_hash) {
        (Some(one), Some(other)) => one == other,
        _ => one.fingerprint == other.fingerprint,
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
