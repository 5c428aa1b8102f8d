//! What a worker does to the inbox: claim, renew, settle, fail, give back.
//!
//! A claim is committed before anything is applied, with its attempt already counted: an event that kills the process
//! still uses up an attempt. Every later change asks for the token of the claim, so that a worker whose lease was taken
//! over changes nothing and its transaction rolls back.

use std::time::Duration;

use super::attempts::{Attempt, insert_attempts};
use super::positions::{note_positions, wake_followers};
use super::rows::{Rows, Select, Update};
use super::{Conn, Kind, Transaction, Value};
use crate::error::{Error, Result, Step as _};
use crate::event::EntityKey;
use crate::order::Position;
use crate::reason::{Reason, Status};

/// An event under a lease.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) seq: i64,
    pub(crate) source: String,
    pub(crate) scope: String,
    pub(crate) event_type: String,
    pub(crate) entity_type: String,
    pub(crate) entity_id: String,
    pub(crate) position: Position,
    pub(crate) content_hash: Option<String>,
    pub(crate) fingerprint: Vec<u8>,
    pub(crate) payload_hash: Vec<u8>,
    pub(crate) received_at: i64,
    /// Which attempt this is, from 1.
    pub(crate) attempt: i64,
    /// Set where the lease of another worker had run out.
    pub(crate) was_taken_over: bool,
    /// What it waited for before, if it did.
    pub(crate) waited_for: Option<Reason>,
    pub(crate) bypasses_equal_version: bool,
    pub(crate) token: String,
    pub(crate) headers: String,
    /// `None` where the payload is gone or unreadable.
    pub(crate) body: Option<Vec<u8>>,
}

impl Claimed {
    /// Returns the event's entity, where it has one.
    pub(crate) fn entity(&self) -> Option<EntityKey> {
        (!self.entity_id.is_empty()).then(|| EntityKey {
            source: self.source.as_str().into(),
            scope: self.scope.clone(),
            entity_type: self.entity_type.clone(),
            entity_id: self.entity_id.clone(),
        })
    }
}

/// Takes due events under a lease.
pub(crate) struct Claim {
    pub(crate) max_len: usize,
    pub(crate) max_bytes: usize,
    pub(crate) lease_ms: i64,
    pub(crate) token: String,
}

const DUE: &str = "select seq, source, scope, event_id, event_type, entity_type, entity_id, source_version, occurred_at, \
    type_rank, content_hash, fingerprint, payload_hash, received_at, attempts, processing_status, status_reason, \
    bypass_equal, (select length(p.body) from webhook_payloads p where p.seq = webhook_inbox.seq) from webhook_inbox \
    where processing_status in ('received', 'failed', 'processing') and next_attempt_at <= ? \
    order by next_attempt_at, seq limit ?";

static PAYLOADS: Select = Select::new(
    "headers, body",
    "webhook_payloads",
    "seq = {0}",
    &[Kind::Int],
);

static TAKE: Update = Update::new(
    "webhook_inbox",
    "processing_status = 'processing', attempts = attempts + 1, lease_until = {1}, next_attempt_at = {1}, \
     lease_token = {2}",
    "seq = {0}",
    &[Kind::Int, Kind::Int, Kind::Key],
);

impl Transaction for Claim {
    type Output = Vec<Claimed>;
    const STEP: &'static str = "claim events";

    fn within(&self) -> Duration {
        Duration::from_secs(20)
    }

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Vec<Claimed>> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let limit = i64::try_from(self.max_len).unwrap_or(i64::MAX);
        let token = &self.token;
        // What another worker is claiming right now is passed over instead of waited for.
        let due = match conn.is_local() {
            true => DUE.to_owned(),
            false => format!("{DUE} for update skip locked"),
        };
        let due = conn
            .fetch(&due, &[now.into(), limit.into()], |row| claimed(row, token))
            .await
            .step(Self::STEP)?;
        let len = self.fitting(&due);
        let mut due: Vec<Claimed> = due.into_iter().take(len).map(|(event, _)| event).collect();
        let numbers: Rows<'_> = due.iter().map(|event| event.seq).collect();
        let payloads = conn.select_all(&PAYLOADS, &numbers, |index, row| {
            // Headers that somebody filled with another type: the payload cannot be read, and only this event fails.
            let headers = row.opt_text(0).ok().flatten();
            let body = row.opt_bytes(1)?.filter(|_| headers.is_some());
            Ok((index, headers.unwrap_or_default(), body))
        });
        for (index, headers, body) in payloads.await.step(Self::STEP)? {
            (due[index].headers, due[index].body) = (headers, body);
        }
        let until = now.saturating_add(self.lease_ms);
        let mut rows = Rows::with_capacity(3, due.len());
        for event in &due {
            rows.push([event.seq.into(), until.into(), Value::Text(&self.token)]);
        }
        conn.update_all(&TAKE, &rows).await.step(Self::STEP)?;
        Ok(due)
    }
}

impl Claim {
    /// Returns how many of the due events are taken: within the limit on bytes, and one whose worker died alone. It may
    /// be what killed that worker, and must not use up the attempts of others if it does so again.
    fn fitting(&self, due: &[(Claimed, usize)]) -> usize {
        let mut bytes = 0;
        let fits = due.iter().take_while(|(event, len)| {
            bytes += len;
            bytes <= self.max_bytes && !event.was_taken_over
        });
        fits.count().max(1).min(due.len())
    }
}

/// Reads a due event, and how many bytes its body has.
fn claimed(row: &super::Row<'_>, token: &str) -> Result<(Claimed, usize), super::DbError> {
    let position = Position {
        version: row.opt_int(7)?,
        occurred_at: row.opt_int(8)?,
        rank: row.int(9)?,
        event_id: row.text(3)?,
    };
    let len = row.opt_int(18)?.unwrap_or(0);
    let event = Claimed {
        seq: row.int(0)?,
        source: row.text(1)?,
        scope: row.text(2)?,
        event_type: row.text(4)?,
        entity_type: row.text(5)?,
        entity_id: row.text(6)?,
        position,
        content_hash: row.opt_text(10)?,
        fingerprint: row.opt_bytes(11)?.unwrap_or_default(),
        payload_hash: row.opt_bytes(12)?.unwrap_or_default(),
        received_at: row.int(13)?,
        attempt: row.int(14)? + 1,
        was_taken_over: row.text(15)? == Status::Processing.code(),
        waited_for: row.opt_text(16)?.as_deref().and_then(Reason::from_code),
        bypasses_equal_version: row.int(17)? != 0,
        token: token.to_owned(),
        headers: String::new(),
        body: None,
    };
    Ok((event, usize::try_from(len).unwrap_or(0)))
}

/// Where an event goes at the end of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Settlement {
    pub(crate) seq: i64,
    pub(crate) token: String,
    pub(crate) status: Status,
    pub(crate) reason: Option<Reason>,
    pub(crate) message: Option<String>,
    /// When it is looked at again; for a status that is pending.
    pub(crate) next_attempt_at: Option<i64>,
    /// Set where the attempt does not count: the event only waited.
    pub(crate) gives_attempt_back: bool,
}

static SETTLE: Update = Update::new(
    "webhook_inbox",
    "processing_status = {2}, status_reason = {3}, error_message = {4}, processed_at = {5}, next_attempt_at = {6}, \
     attempts = attempts - {7}, lease_until = null, lease_token = null",
    "seq = {0} and lease_token = {1} and processing_status = 'processing'",
    &[
        Kind::Int,
        Kind::Key,
        Kind::Key,
        Kind::Key,
        Kind::Text,
        Kind::Int,
        Kind::Int,
        Kind::Int,
    ],
);

/// Writes where events go; fails where a lease was taken over, so that the whole transaction rolls back.
pub(crate) async fn settle<'s>(
    conn: &mut Conn<'_>,
    settlements: impl Iterator<Item = &'s Settlement>,
    now_ms: i64,
) -> Result<()> {
    let mut rows = Rows::with_capacity(8, settlements.size_hint().0);
    let mut first = None;
    for settlement in settlements {
        first = first.or(Some(settlement.seq));
        let done_at = (!settlement.status.is_pending()).then_some(now_ms);
        rows.push([
            settlement.seq.into(),
            Value::Text(&settlement.token),
            Value::Text(settlement.status.code()),
            settlement.reason.map(Reason::code).into(),
            settlement.message.as_deref().into(),
            done_at.into(),
            settlement.next_attempt_at.into(),
            i64::from(settlement.gives_attempt_back).into(),
        ]);
    }
    let settled = conn.update_all(&SETTLE, &rows).await;
    let settled = settled.step("settle events")?;
    match first {
        Some(seq) if u64::try_from(rows.len()).ok() != Some(settled) => {
            Err(Error::LostLease { seq })
        }
        _ => Ok(()),
    }
}

/// Records that an attempt failed; nothing is changed where the lease was taken over.
pub(crate) struct Fail {
    pub(crate) settlement: Settlement,
    /// After how long it is tried again, by the database's clock.
    pub(crate) next_attempt_in_ms: Option<i64>,
    pub(crate) attempt: Attempt,
    pub(crate) entity: Option<EntityKey>,
    pub(crate) version: Option<i64>,
}

impl Transaction for Fail {
    type Output = ();
    const STEP: &'static str = "record a failed attempt";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let settlement = Settlement {
            next_attempt_at: self
                .next_attempt_in_ms
                .map(|delay| now.saturating_add(delay)),
            ..self.settlement.clone()
        };
        settle(conn, std::iter::once(&settlement), now).await?;
        insert_attempts(conn, std::slice::from_ref(&self.attempt)).await?;
        let Some(entity) = &self.entity else {
            return Ok(());
        };
        // An event that is given up before it comes to the gate is noted here.
        let position = (entity, self.version, self.settlement.seq);
        note_positions(conn, std::iter::once(position)).await?;
        match self.settlement.status.is_pending() {
            true => Ok(()),
            false => wake_followers(conn, entity, self.version, now).await,
        }
    }
}

/// Gives leases back that were not worked on.
pub(crate) struct GiveBack {
    pub(crate) leases: Vec<(i64, String)>,
}

static GIVE_BACK: Update = Update::new(
    "webhook_inbox",
    "processing_status = 'received', next_attempt_at = {2}, attempts = attempts - 1, lease_until = null, \
     lease_token = null",
    "seq = {0} and lease_token = {1} and processing_status = 'processing'",
    &[Kind::Int, Kind::Key, Kind::Int],
);

impl Transaction for GiveBack {
    type Output = ();
    const STEP: &'static str = "give leases back";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let mut rows = Rows::with_capacity(3, self.leases.len());
        for (seq, token) in &self.leases {
            rows.push([(*seq).into(), Value::Text(token), now.into()]);
        }
        let given = conn.update_all(&GIVE_BACK, &rows).await;
        given.step(Self::STEP).map(drop)
    }
}

/// Renews leases that are still worked on, and returns those that still hold.
pub(crate) struct Renew {
    pub(crate) leases: Vec<(i64, String)>,
    pub(crate) lease_ms: i64,
}

const RENEW: &str = "update webhook_inbox set lease_until = ?, next_attempt_at = ? \
    where seq = ? and lease_token = ? and processing_status = 'processing'";

impl Transaction for Renew {
    type Output = Vec<i64>;
    const STEP: &'static str = "renew leases";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Vec<i64>> {
        let until = conn
            .now_ms()
            .await
            .step(Self::STEP)?
            .saturating_add(self.lease_ms);
        let mut held = Vec::new();
        for (seq, token) in &self.leases {
            let values = [
                until.into(),
                until.into(),
                (*seq).into(),
                Value::Text(token),
            ];
            if conn.execute(RENEW, &values).await.step(Self::STEP)? == 1 {
                held.push(*seq);
            }
        }
        Ok(held)
    }
}

// Only a row in processing has a lease; asked for by its state alone, the partial index would not be used.
const TAKE_OVER_ALL: &str = "update webhook_inbox set next_attempt_at = ? \
    where processing_status in ('received', 'failed', 'processing') and lease_until is not null";

/// Lets all leases run out: the process that starts on SQLite knows that no other one holds any.
pub(crate) async fn take_over_all(conn: &mut Conn<'_>) -> Result<u64> {
    let now = conn.now_ms().await.step("take leases over")?;
    conn.execute(TAKE_OVER_ALL, &[now.into()])
        .await
        .step("take leases over")
}
