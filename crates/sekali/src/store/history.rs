//! What can be asked about the past: lists, the whole story of an event, an entity and its gaps, and depths for metrics.

use serde::Serialize;

use super::entities::columns;
use super::{Conn, DbError, Row, Transaction, Value};
use crate::error::{Error, Result, Step as _};
use crate::event::EntityKey;
use crate::reason::Status;

/// An event as it stands in the inbox.
#[derive(Clone, Debug, Serialize)]
pub struct EventRow {
    /// Its number in the inbox.
    pub seq: i64,
    /// The source's stable id.
    pub source: String,
    /// The tenant.
    pub scope: String,
    /// The sender's id.
    pub event_id: String,
    /// Its type.
    pub event_type: String,
    /// The kind of entity.
    pub entity_type: String,
    /// The entity's id.
    pub entity_id: String,
    /// The version it claims.
    pub source_version: Option<i64>,
    /// When it happened, in nanoseconds UTC.
    pub occurred_at: Option<i64>,
    /// Where its content comes from.
    pub source_url: Option<String>,
    /// The sender's hash of the content.
    pub content_hash: Option<String>,
    /// Who produced it.
    pub producer: Option<String>,
    /// SHA-256 of its body, in hex.
    pub payload_hash: String,
    /// Whether its signature was checked; `None` on an unsigned source.
    pub signature_valid: Option<bool>,
    /// When it was received, in milliseconds UTC.
    pub received_at: i64,
    /// When it was finished, in milliseconds UTC.
    pub processed_at: Option<i64>,
    /// Where it stands.
    pub status: String,
    /// Why.
    pub reason: Option<String>,
    /// The last error.
    pub error_message: Option<String>,
    /// How many attempts were made.
    pub attempts: i64,
    /// When it is looked at again, in milliseconds UTC.
    pub next_attempt_at: Option<i64>,
}

macro_rules! event_columns {
    () => {
        "seq, source, scope, event_id, event_type, entity_type, entity_id, source_version, occurred_at, source_url, \
         content_hash, producer, payload_hash, signature_valid, received_at, processed_at, processing_status, \
         status_reason, error_message, attempts, next_attempt_at from webhook_inbox"
    };
}

fn event_row(row: &Row<'_>) -> Result<EventRow, DbError> {
    Ok(EventRow {
        seq: row.int(0)?,
        source: row.text(1)?,
        scope: row.text(2)?,
        event_id: row.text(3)?,
        event_type: row.text(4)?,
        entity_type: row.text(5)?,
        entity_id: row.text(6)?,
        source_version: row.opt_int(7)?,
        occurred_at: row.opt_int(8)?,
        source_url: row.opt_text(9)?,
        content_hash: row.opt_text(10)?,
        producer: row.opt_text(11)?,
        payload_hash: row.opt_bytes(12)?.map(hex::encode).unwrap_or_default(),
        signature_valid: row.opt_int(13)?.map(|valid| valid != 0),
        received_at: row.int(14)?,
        processed_at: row.opt_int(15)?,
        status: row.text(16)?,
        reason: row.opt_text(17)?,
        error_message: row.opt_text(18)?,
        attempts: row.int(19)?,
        next_attempt_at: row.opt_int(20)?,
    })
}

/// Which events are listed.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only those of a source.
    pub source: Option<String>,
    /// Only those that stand there.
    pub status: Option<Status>,
    /// Only those whose id starts so.
    pub id_prefix: Option<String>,
    /// Only those of an entity.
    pub entity_id: Option<String>,
    /// Only those of a type.
    pub event_type: Option<String>,
    /// Only those below this number: the next page.
    pub before_seq: Option<i64>,
    /// How many at most.
    pub limit: i64,
}

/// Lists events, newest first.
#[derive(Clone, Debug)]
pub struct ListEvents {
    /// Which.
    pub filter: EventFilter,
}

impl Transaction for ListEvents {
    type Output = Vec<EventRow>;
    const STEP: &'static str = "list events";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Vec<EventRow>> {
        let filter = &self.filter;
        let mut sql = concat!("select ", event_columns!(), " where seq < ?").to_owned();
        let mut values: Vec<Value<'_>> = vec![filter.before_seq.unwrap_or(i64::MAX).into()];
        let equals = [
            ("source", filter.source.as_deref()),
            ("entity_id", filter.entity_id.as_deref()),
            ("event_type", filter.event_type.as_deref()),
        ];
        for (column, value) in equals {
            if let Some(value) = value {
                sql.push_str(&format!(" and {column} = ?"));
                values.push(value.into());
            }
        }
        if let Some(status) = filter.status {
            // Written out, so that the partial indexes on the state apply; it is one of our own words.
            sql.push_str(&format!(" and processing_status = '{}'", status.code()));
        }
        let end = filter.id_prefix.as_deref().map(prefix_end);
        if let (Some(prefix), Some(end)) = (filter.id_prefix.as_deref(), end.as_deref()) {
            sql.push_str(" and event_id >= ? and event_id < ?");
            values.extend([Value::Text(prefix), Value::Text(end)]);
        }
        sql.push_str(" order by seq desc limit ?");
        values.push(filter.limit.into());
        conn.fetch(&sql, &values, event_row).await.step(Self::STEP)
    }
}

/// Returns a text that stands above every text with the prefix.
fn prefix_end(prefix: &str) -> String {
    format!("{prefix}{}", char::MAX)
}

/// A delivery row.
#[derive(Clone, Debug, Serialize)]
pub struct DeliveryRow {
    /// When it arrived, in milliseconds UTC.
    pub received_at: i64,
    /// What became of it.
    pub outcome: String,
    /// Why.
    pub reason: Option<String>,
    /// The answer's status code.
    pub http_status: i64,
    /// SHA-256 of its body, in hex.
    pub payload_hash: String,
    /// Whether its signature was right.
    pub signature_valid: Option<bool>,
    /// Where it came from.
    pub remote_address: Option<String>,
    /// How long it took, in microseconds.
    pub duration_us: i64,
}

/// A variant row.
#[derive(Clone, Debug, Serialize)]
pub struct VariantRow {
    /// Its number.
    pub id: i64,
    /// The event id it came under.
    pub event_id: String,
    /// SHA-256 of its body, in hex.
    pub payload_hash: String,
    /// How often it came.
    pub seen: i64,
    /// When it first came, in milliseconds UTC.
    pub first_at: i64,
    /// When it last came, in milliseconds UTC.
    pub last_at: i64,
    /// What an operator decided.
    pub decision: Option<String>,
    /// Its stored headers, as a JSON object.
    pub headers: String,
    /// Its body.
    #[serde(skip)]
    pub body: Option<Vec<u8>>,
}

/// An attempt row.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptRow {
    /// Which attempt, from 1; 0 for what an operator did.
    pub attempt: i64,
    /// When it started, in milliseconds UTC.
    pub started_at: i64,
    /// How long it took, in microseconds.
    pub duration_us: i64,
    /// Where the event stood afterwards.
    pub status: String,
    /// Why.
    pub reason: Option<String>,
    /// What happened.
    pub message: Option<String>,
    /// The decision of each effect.
    pub decisions: serde_json::Value,
}

/// The whole story of an event.
#[derive(Clone, Debug, Serialize)]
pub struct Story {
    /// The event.
    pub event: EventRow,
    /// Its stored headers, as a JSON object.
    pub headers: Option<String>,
    /// Its body, where it is still there.
    #[serde(skip)]
    pub body: Option<Vec<u8>>,
    /// Its deliveries, oldest first.
    pub deliveries: Vec<DeliveryRow>,
    /// Other content under its id.
    pub variants: Vec<VariantRow>,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptRow>,
    /// Its entity with the events around it.
    pub entity: Option<EntityHistory>,
}

/// Reads the whole story of an event.
#[derive(Clone, Debug)]
pub struct ShowEvent {
    /// The sender's id, or `#` and the number in the inbox.
    pub id: String,
    /// The source, where the id alone is not enough.
    pub source: Option<String>,
}

const BY_SEQ: &str = concat!("select ", event_columns!(), " where seq = ?");
const BY_ID: &str = concat!(
    "select ",
    event_columns!(),
    " where event_id = ? and (? is null or source = ?)"
);
const PAYLOAD: &str = "select headers, body from webhook_payloads where seq = ?";
const DELIVERIES: &str = "select received_at, outcome, reason, http_status, payload_hash, signature_valid, remote_address, \
    duration_us from webhook_deliveries where inbox_seq = ? order by id limit 200";
const VARIANTS: &str = "select id, event_id, payload_hash, seen, first_at, last_at, decision, headers, body \
    from webhook_variants where inbox_seq = ? order by id";
const ATTEMPTS: &str = "select attempt, started_at, duration_us, status, reason, message, decisions from webhook_attempts \
    where inbox_seq = ? order by id limit 200";

impl Transaction for ShowEvent {
    type Output = Story;
    const STEP: &'static str = "read an event's story";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Story> {
        let event = self.find(conn).await?;
        let seq = [event.seq.into()];
        let payload = conn.fetch_one(PAYLOAD, &seq, |row| {
            Ok((row.opt_text(0)?, row.opt_bytes(1)?))
        });
        let (headers, body) = payload.await.step(Self::STEP)?.unwrap_or_default();
        let deliveries = conn
            .fetch(DELIVERIES, &seq, delivery_row)
            .await
            .step(Self::STEP)?;
        let variants = conn
            .fetch(VARIANTS, &seq, variant_row)
            .await
            .step(Self::STEP)?;
        let attempts = conn
            .fetch(ATTEMPTS, &seq, attempt_row)
            .await
            .step(Self::STEP)?;
        let entity = match event.entity_id.is_empty() {
            true => None,
            false => Some(
                ShowEntity {
                    entity: entity_of(&event),
                }
                .run(conn)
                .await?,
            ),
        };
        Ok(Story {
            event,
            headers,
            body,
            deliveries,
            variants,
            attempts,
            entity,
        })
    }
}

impl ShowEvent {
    async fn find(&self, conn: &mut Conn<'_>) -> Result<EventRow> {
        let seq = self
            .id
            .strip_prefix('#')
            .and_then(|number| number.parse::<i64>().ok());
        let source: Value<'_> = self.source.as_deref().into();
        let found = match seq {
            Some(seq) => conn.fetch(BY_SEQ, &[seq.into()], event_row).await,
            None => {
                conn.fetch(BY_ID, &[Value::Text(&self.id), source, source], event_row)
                    .await
            }
        };
        let mut found = found.step(Self::STEP)?;
        if found.len() > 1 {
            let places: Vec<_> = found
                .iter()
                .map(|event| format!("#{} at {}", event.seq, event.source))
                .collect();
            let problem = format!(
                "{} is known {} times: {}",
                self.id,
                found.len(),
                places.join(", ")
            );
            return Err(Error::Conflict { problem });
        }
        found.pop().ok_or_else(|| Error::NotFound {
            what: "event",
            name: self.id.clone(),
        })
    }
}

fn entity_of(event: &EventRow) -> EntityKey {
    EntityKey {
        source: event.source.as_str().into(),
        scope: event.scope.clone(),
        entity_type: event.entity_type.clone(),
        entity_id: event.entity_id.clone(),
    }
}

fn delivery_row(row: &Row<'_>) -> Result<DeliveryRow, DbError> {
    Ok(DeliveryRow {
        received_at: row.int(0)?,
        outcome: row.text(1)?,
        reason: row.opt_text(2)?,
        http_status: row.int(3)?,
        payload_hash: row.opt_bytes(4)?.map(hex::encode).unwrap_or_default(),
        signature_valid: row.opt_int(5)?.map(|valid| valid != 0),
        remote_address: row.opt_text(6)?,
        duration_us: row.int(7)?,
    })
}

fn variant_row(row: &Row<'_>) -> Result<VariantRow, DbError> {
    Ok(VariantRow {
        id: row.int(0)?,
        event_id: row.text(1)?,
        payload_hash: row.opt_bytes(2)?.map(hex::encode).unwrap_or_default(),
        seen: row.int(3)?,
        first_at: row.int(4)?,
        last_at: row.int(5)?,
        decision: row.opt_text(6)?,
        headers: row.text(7)?,
        body: row.opt_bytes(8)?,
    })
}

fn attempt_row(row: &Row<'_>) -> Result<AttemptRow, DbError> {
    Ok(AttemptRow {
        attempt: row.int(0)?,
        started_at: row.int(1)?,
        duration_us: row.int(2)?,
        status: row.text(3)?,
        reason: row.opt_text(4)?,
        message: row.opt_text(5)?,
        decisions: serde_json::from_str(&row.text(6)?).unwrap_or_default(),
    })
}

/// An entity with its latest events and its gaps.
#[derive(Clone, Debug, Serialize)]
pub struct EntityHistory {
    /// The source's stable id.
    pub source: String,
    /// The tenant.
    pub scope: String,
    /// The kind of entity.
    pub entity_type: String,
    /// Its id.
    pub entity_id: String,
    /// The version it stands at.
    pub version: Option<i64>,
    /// The time it stands at, in nanoseconds UTC.
    pub occurred_at: Option<i64>,
    /// The event that put it there.
    pub last_event_id: Option<String>,
    /// Whether its last effect was a delete.
    pub deleted: bool,
    /// Its events by position, highest first; at most 50.
    pub events: Vec<EventRow>,
    /// Versions between known ones that never arrived; at most 50.
    pub gaps: Vec<GapRow>,
}

/// Versions that never arrived.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct GapRow {
    /// The first version that is missing.
    pub from: i64,
    /// The last version that is missing.
    pub to: i64,
}

/// Reads an entity with its latest events and its gaps.
#[derive(Clone, Debug)]
pub struct ShowEntity {
    /// The entity.
    pub entity: EntityKey,
}

const ENTITY: &str = "select version, occurred_at, last_event_id, deleted from webhook_entities \
    where source = ? and scope = ? and entity_type = ? and entity_id = ?";

const EVENTS: &str = concat!(
    "select ",
    event_columns!(),
    " where source = ? and scope = ? and entity_type = ? and entity_id = ? order by source_version desc, occurred_at desc, \
     seq desc limit 50"
);

const GAPS: &str = "select before + 1, source_version - 1 from (select source_version, \
    lag(source_version) over (order by source_version) as before from webhook_inbox where source = ? and scope = ? \
    and entity_type = ? and entity_id = ? and source_version is not null) where source_version > before + 1 limit 50";

impl Transaction for ShowEntity {
    type Output = EntityHistory;
    const STEP: &'static str = "read an entity";

    async fn run(self, conn: &mut Conn<'_>) -> Result<EntityHistory> {
        let key = &self.entity;
        let values = columns(key);
        let entity = conn.fetch_one(ENTITY, &values, |row| {
            Ok((
                row.opt_int(0)?,
                row.opt_int(1)?,
                row.opt_text(2)?,
                row.int(3)? != 0,
            ))
        });
        let entity = entity.await.step(Self::STEP)?;
        let events = conn
            .fetch(EVENTS, &values, event_row)
            .await
            .step(Self::STEP)?;
        if entity.is_none() && events.is_empty() {
            return Err(Error::NotFound {
                what: "entity",
                name: key.entity_id.clone(),
            });
        }
        let gaps = conn.fetch(GAPS, &values, |row| {
            Ok(GapRow {
                from: row.int(0)?,
                to: row.int(1)?,
            })
        });
        let gaps = gaps.await.step(Self::STEP)?;
        let (version, occurred_at, last_event_id, deleted) = entity.unwrap_or_default();
        Ok(EntityHistory {
            source: key.source.to_string(),
            scope: key.scope.clone(),
            entity_type: key.entity_type.clone(),
            entity_id: key.entity_id.clone(),
            version,
            occurred_at,
            last_event_id,
            deleted,
            events,
            gaps,
        })
    }
}

/// How much is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// Events that a worker still has to look at.
    pub pending: i64,
    /// When the oldest of them was received, in milliseconds UTC.
    pub oldest_received_at: Option<i64>,
    /// Events in the dead letter.
    pub dead_letters: i64,
}

/// Reads how much is pending; both parts stand in partial indexes, so that a big inbox costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct ReadDepth;

const PENDING: &str = "select count(*), min(received_at) from webhook_inbox \
    where processing_status in ('received', 'failed', 'processing')";

const DEAD: &str = "select count(*) from webhook_inbox where processing_status = 'dead_letter'";

impl Transaction for ReadDepth {
    type Output = Depth;
    const STEP: &'static str = "read the inbox's depth";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Depth> {
        let pending = conn
            .fetch_one(PENDING, &[], |row| Ok((row.int(0)?, row.opt_int(1)?)))
            .await
            .step(Self::STEP)?;
        let dead = conn
            .fetch_one(DEAD, &[], |row| row.int(0))
            .await
            .step(Self::STEP)?;
        let (pending, oldest_received_at) = pending.unwrap_or_default();
        Ok(Depth {
            pending,
            oldest_received_at,
            dead_letters: dead.unwrap_or_default(),
        })
    }
}

/// Lists the sources that still have pending events.
#[derive(Clone, Copy, Debug)]
pub struct PendingSources;

const PENDING_SOURCES: &str = "select distinct source from webhook_inbox where processing_status in ('received', 'failed', 'processing')";

impl Transaction for PendingSources {
    type Output = Vec<String>;
    const STEP: &'static str = "list the sources with pending events";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Vec<String>> {
        conn.fetch(PENDING_SOURCES, &[], |row| row.text(0))
            .await
            .step(Self::STEP)
    }
}
