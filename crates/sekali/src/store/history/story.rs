//! The whole story of an event: deliveries, variants, attempts, and the entity around it.

use serde::Serialize;

use super::{EntityHistory, EventRow, ShowEntity, event_columns, event_row};
use crate::error::{Error, Result, Step as _};
use crate::event::EntityKey;
use crate::store::{Conn, DbError, Row, Transaction, Value};

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

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Story> {
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
        let entity = match (ShowEntity {
            entity: entity_of(&event),
        })
        .run(conn)
        .await
        {
            Ok(entity) => Some(entity),
            // It has none, or no worker has looked at it yet.
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
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
