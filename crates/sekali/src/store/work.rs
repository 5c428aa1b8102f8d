//! What a worker does to the inbox: claim, renew, settle, fail, give back.
//!
//! A claim is committed before anything is applied, with its attempt already counted: an event that kills the process
//! still uses up an attempt. Every later change asks for the token of the claim, so that a worker whose lease was taken
//! over changes nothing and its transaction rolls back.

use super::attempts::{Attempt, insert_attempts};
use super::positions::{note_position, wake_followers};
use super::{Conn, Transaction, Value};
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

const DUE: &str = "select i.seq, source, scope, event_id, event_type, entity_type, entity_id, source_version, occurred_at, \
    type_rank, content_hash, fingerprint, payload_hash, received_at, attempts, processing_status, status_reason, \
    bypass_equal, p.headers, p.body from webhook_inbox i left join webhook_payloads p on p.seq = i.seq \
    where processing_status in ('received', 'failed', 'processing') and next_attempt_at <= ? \
    order by next_attempt_at, i.seq limit ?";

const TAKE: &str = "update webhook_inbox set processing_status = 'processing', attempts = attempts + 1, lease_until = ?, \
    next_attempt_at = ?, lease_token = ? where seq = ?";

impl Transaction for Claim {
    type Output = Vec<Claimed>;
    const STEP: &'static str = "claim events";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Vec<Claimed>> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let limit = i64::try_from(self.max_len).unwrap_or(i64::MAX);
        let token = &self.token;
        let mut due = conn
            .fetch(DUE, &[now.into(), limit.into()], |row| claimed(row, token))
            .await
            .step(Self::STEP)?;
        let len = self.fitting(&due);
        due.truncate(len);
        let until = now.saturating_add(self.lease_ms);
        for event in &due {
            let values = [
                until.into(),
                until.into(),
                Value::Text(&self.token),
                event.seq.into(),
            ];
            conn.execute(TAKE, &values).await.step(Self::STEP)?;
        }
        Ok(due)
    }
}

impl Claim {
    /// Returns how many of the due events are taken: within the limit on bytes, and one whose worker died alone. It may
    /// be what killed that worker, and must not use up the attempts of others if it does so again.
    fn fitting(&self, due: &[Claimed]) -> usize {
        let mut bytes = 0;
        let fits = due.iter().take_while(|event| {
            bytes += event.body.as_ref().map_or(0, Vec::len);
            bytes <= self.max_bytes && !event.was_taken_over
        });
        fits.count().max(1).min(due.len())
    }
}

fn claimed(row: &super::Row<'_>, token: &str) -> Result<Claimed, super::DbError> {
    let position = Position {
        version: row.opt_int(7)?,
        occurred_at: row.opt_int(8)?,
        rank: row.int(9)?,
        event_id: row.text(3)?,
    };
    // Headers that somebody filled with another type: the payload cannot be read, and only this event fails.
    let headers = row.opt_text(18).ok().flatten();
    let body = row.opt_bytes(19)?.filter(|_| headers.is_some());
    Ok(Claimed {
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
        headers: headers.unwrap_or_default(),
        body,
    })
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

const SETTLE: &str = "update webhook_inbox set processing_status = ?, status_reason = ?, error_message = ?, \
    processed_at = ?, next_attempt_at = ?, attempts = attempts - ?, lease_until = null, lease_token = null \
    where seq = ? and lease_token = ? and processing_status = 'processing'";

/// Writes where an event goes; fails where its lease was taken over, so that the whole transaction rolls back.
pub(crate) async fn settle(
    conn: &mut Conn<'_>,
    settlement: &Settlement,
    now_ms: i64,
) -> Result<()> {
    let done_at = (!settlement.status.is_pending()).then_some(now_ms);
    let values: [Value<'_>; 8] = [
        Value::Text(settlement.status.code()),
        settlement.reason.map(Reason::code).into(),
        settlement.message.as_deref().into(),
        done_at.into(),
        settlement.next_attempt_at.into(),
        i64::from(settlement.gives_attempt_back).into(),
        settlement.seq.into(),
        Value::Text(&settlement.token),
    ];
    let changed = conn
        .execute(SETTLE, &values)
        .await
        .step("settle an event")?;
    if changed != 1 {
        return Err(Error::LostLease {
            seq: settlement.seq,
        });
    }
    Ok(())
}

/// Records that an attempt failed; nothing is changed where the lease was taken over.
pub(crate) struct Fail {
    pub(crate) settlement: Settlement,
    pub(crate) attempt: Attempt,
    pub(crate) entity: Option<EntityKey>,
    pub(crate) version: Option<i64>,
}

impl Transaction for Fail {
    type Output = ();
    const STEP: &'static str = "record a failed attempt";

    async fn run(self, conn: &mut Conn<'_>) -> Result<()> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        settle(conn, &self.settlement, now).await?;
        insert_attempts(conn, std::slice::from_ref(&self.attempt)).await?;
        let Some(entity) = &self.entity else {
            return Ok(());
        };
        // An event that is given up before it comes to the gate is noted here.
        note_position(conn, entity, self.version, self.settlement.seq).await?;
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

const GIVE_BACK: &str = "update webhook_inbox set processing_status = 'received', next_attempt_at = ?, \
    attempts = attempts - 1, lease_until = null, lease_token = null where seq = ? and lease_token = ?";

impl Transaction for GiveBack {
    type Output = ();
    const STEP: &'static str = "give leases back";

    async fn run(self, conn: &mut Conn<'_>) -> Result<()> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        for (seq, token) in &self.leases {
            let values = [now.into(), (*seq).into(), Value::Text(token)];
            conn.execute(GIVE_BACK, &values).await.step(Self::STEP)?;
        }
        Ok(())
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

    async fn run(self, conn: &mut Conn<'_>) -> Result<Vec<i64>> {
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
