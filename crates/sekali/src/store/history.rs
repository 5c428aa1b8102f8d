//! What can be asked about the past: lists, the whole story of an event, an entity and its gaps.

use serde::Serialize;

use super::{Conn, DbError, Row, Transaction, Value};
use crate::error::{Result, Step as _};
use crate::reason::Status;

mod entity;
mod story;

pub use entity::{EntityHistory, GapRow, ShowEntity};
pub use story::{AttemptRow, DeliveryRow, ShowEvent, Story, VariantRow};

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
use event_columns;

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

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Vec<EventRow>> {
        let filter = &self.filter;
        let mut sql = concat!("select ", event_columns!(), " where seq < ?").to_owned();
        let mut values: Vec<Value<'_>> = vec![filter.before_seq.unwrap_or(i64::MAX).into()];
        let equals = [
            ("source", filter.source.as_deref()),
            ("event_type", filter.event_type.as_deref()),
        ];
        for (column, value) in equals {
            if let Some(value) = value {
                sql.push_str(&format!(" and {column} = ?"));
                values.push(value.into());
            }
        }
        if let Some(entity_id) = filter.entity_id.as_deref() {
            sql.push_str(" and seq in (select seq from webhook_positions where entity_id = ?)");
            values.push(entity_id.into());
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
