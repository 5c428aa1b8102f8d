//! What an operator does to events and entities. Each leaves an attempt row, so that the story of an event shows it.

use super::attempts::{Attempt, insert_attempts};
use super::{Conn, Transaction, Value};
use crate::error::{Error, Result, Step as _};
use crate::event::{Delivery, EntityKey};
use crate::reason::{Reason, Status};

/// Gives events another try: those in the dead letter and those that wait for a retry.
#[derive(Clone, Debug)]
pub struct Redrive {
    /// The events' numbers in the inbox.
    pub seqs: Vec<i64>,
    /// Whether finished events are applied again, too (a replay); order and guards count as always.
    pub force: bool,
}

const REARM: &str = "update webhook_inbox set processing_status = 'received', status_reason = ?, attempts = 0, \
    next_attempt_at = ?, lease_until = null, lease_token = null, error_message = null, processed_at = null \
    where seq = ? and processing_status = ? and exists (select 1 from webhook_payloads p where p.seq = webhook_inbox.seq)";

const STANDING: &str =
    "select processing_status, event_id, attempts, status_reason from webhook_inbox where seq = ?";

/// How an event stands when an operator turns to it.
struct Found {
    status: Option<Status>,
    event_id: String,
    attempts: i64,
    reason: Option<Reason>,
}

impl Transaction for Redrive {
    /// How many events were armed again; those that cannot be are passed over, unless there is no other.
    type Output = usize;
    const STEP: &'static str = "redrive events";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<usize> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let (mut armed, mut refused) = (0, None);
        for seq in &self.seqs {
            match self.arm(conn, *seq, now).await {
                Ok(()) => armed += 1,
                Err(error @ Error::Conflict { .. }) => refused = refused.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if armed == 0 => Err(error),
            _ => Ok(armed),
        }
    }
}

impl Redrive {
    async fn arm(&self, conn: &mut Conn<'_>, seq: i64, now: i64) -> Result<()> {
        let found = find(conn, seq).await?;
        let status = self.allows(&found)?;
        let reason = match self.force {
            true => Reason::Replayed,
            false => Reason::Redriven,
        };
        let values = [
            Value::Text(reason.code()),
            now.into(),
            seq.into(),
            Value::Text(status.code()),
        ];
        if conn.execute(REARM, &values).await.step(Self::STEP)? != 1 {
            let problem = format!("the payload of {} is gone", found.event_id);
            return Err(Error::Conflict { problem });
        }
        insert_attempts(conn, &[by_operator(seq, now, Status::Received, reason)]).await
    }

    /// Returns the status that the event leaves, or why it stays.
    fn allows(&self, found: &Found) -> Result<Status> {
        let (id, why) = (&found.event_id, found.reason.map_or("", Reason::sentence));
        let problem = match found.status {
            // It was given up when it was stored: there is nothing that another try could use.
            Some(Status::DeadLetter) if found.attempts == 0 => {
                format!("{id} can never be applied: {why}")
            }
            Some(status @ (Status::DeadLetter | Status::Failed)) => return Ok(status),
            Some(Status::Received | Status::Processing) => format!("{id} is already on its way"),
            Some(Status::Erased) => format!("the payload of {id} was erased"),
            Some(status) if self.force => return Ok(status),
            _ => format!("{id} is finished; applying it again needs a replay with --force"),
        };
        Err(Error::Conflict { problem })
    }
}

async fn find(conn: &mut Conn<'_>, seq: i64) -> Result<Found> {
    let values = [seq.into()];
    let found = conn.fetch_one(STANDING, &values, |row| {
        Ok(Found {
            status: Status::from_code(&row.text(0)?),
            event_id: row.text(1)?,
            attempts: row.int(2)?,
            reason: row.opt_text(3)?.as_deref().and_then(Reason::from_code),
        })
    });
    let found = found.await.step("read how an event stands")?;
    let name = || format!("number {seq}");
    found.ok_or_else(|| Error::NotFound {
        what: "event",
        name: name(),
    })
}

fn by_operator(seq: i64, now: i64, status: Status, reason: Reason) -> Attempt {
    let message = Some(reason.sentence().to_owned());
    let decisions = "[]".to_owned();
    Attempt {
        seq,
        attempt: 0,
        started_at: now,
        duration_us: 0,
        status,
        reason: Some(reason),
        message,
        decisions,
    }
}

/// Erases an event's content: body, answer and variants. Key and hashes stay, so that it never becomes new again.
#[derive(Clone, Debug)]
pub struct Erase {
    /// The event's number in the inbox.
    pub seq: i64,
}

const ERASE_EVENT: &str = "update webhook_inbox set processing_status = 'erased', status_reason = 'erased_by_operator', \
    response = null, error_message = null, next_attempt_at = null, lease_until = null, lease_token = null \
    where seq = ? and processing_status <> 'processing'";

impl Transaction for Erase {
    type Output = ();
    const STEP: &'static str = "erase an event";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let event_id = find(conn, self.seq).await?.event_id;
        if conn
            .execute(ERASE_EVENT, &[self.seq.into()])
            .await
            .step(Self::STEP)?
            != 1
        {
            return Err(Error::Conflict {
                problem: format!("{event_id} is being processed; try again in a moment"),
            });
        }
        for sql in [
            "delete from webhook_payloads where seq = ?",
            "update webhook_variants set body = null, headers = '{}' where inbox_seq = ?",
        ] {
            conn.execute(sql, &[self.seq.into()])
                .await
                .step(Self::STEP)?;
        }
        insert_attempts(
            conn,
            &[by_operator(
                self.seq,
                now,
                Status::Erased,
                Reason::ErasedByOperator,
            )],
        )
        .await
    }
}

/// Clears an entity's position, for a producer that was restored and counts from a lower version again.
#[derive(Clone, Debug)]
pub struct ResetEntity {
    /// The entity.
    pub entity: EntityKey,
}

const RESET: &str = "update webhook_entities set version = null, occurred_at = null, type_rank = 0, last_event_id = null, \
    deleted = 0, reset_at = ?, updated_at = ? where source = ? and scope = ? and entity_type = ? and entity_id = ?";

const LAST_EVENT: &str = "select max(seq) from webhook_positions where source = ? and scope = ? and entity_type = ? and entity_id = ?";

impl Transaction for ResetEntity {
    type Output = ();
    const STEP: &'static str = "reset an entity";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let [source, scope, entity_type, entity_id] = super::entities::columns(&self.entity);
        let values = [
            now.into(),
            now.into(),
            source,
            scope,
            entity_type,
            entity_id,
        ];
        if conn.execute(RESET, &values).await.step(Self::STEP)? != 1 {
            return Err(Error::NotFound {
                what: "entity",
                name: self.entity.entity_id.clone(),
            });
        }
        let last = conn
            .fetch_one(
                LAST_EVENT,
                &[source, scope, entity_type, entity_id],
                |row| row.opt_int(0),
            )
            .await;
        if let Some(seq) = last.step(Self::STEP)?.flatten() {
            let status = find(conn, seq).await?.status;
            let status = status.unwrap_or(Status::Processed);
            insert_attempts(conn, &[by_operator(seq, now, status, Reason::EntityReset)]).await?;
        }
        Ok(())
    }
}

/// Makes a variant an event of its own, `<id>#<first 16 hex digits of its hash>`, that bypasses the equal-version rule.
#[derive(Clone, Debug)]
pub struct AcceptVariant {
    /// The variant's number.
    pub id: i64,
    /// The variant as an event, identified anew from its stored body and headers.
    pub event: Box<crate::event::Delivery>,
}

const ACCEPT: &str = "update webhook_variants set decision = 'accepted' where id = ? and decision is null and body is not null";

const BYPASS: &str = "update webhook_inbox set bypass_equal = 1, replay_key = null where seq = ?";

impl Transaction for AcceptVariant {
    /// The new event's number.
    type Output = i64;
    const STEP: &'static str = "accept a variant";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<i64> {
        if conn
            .execute(ACCEPT, &[self.id.into()])
            .await
            .step(Self::STEP)?
            != 1
        {
            return Err(Error::Conflict {
                problem: "the variant was accepted before, or its content was erased".into(),
            });
        }
        let name = self.event.event.event_id.clone();
        let receipts = super::Admit {
            deliveries: [Delivery::clone(&self.event)].into(),
        }
        .run(conn)
        .await?;
        let seq = receipts
            .first()
            .and_then(|receipt| receipt.seq)
            .ok_or(Error::NotFound {
                what: "event",
                name,
            })?;
        conn.execute(BYPASS, &[seq.into()]).await.step(Self::STEP)?;
        let now = conn.now_ms().await.step(Self::STEP)?;
        insert_attempts(
            conn,
            &[by_operator(
                seq,
                now,
                Status::Received,
                Reason::VariantAccepted,
            )],
        )
        .await?;
        Ok(seq)
    }
}
