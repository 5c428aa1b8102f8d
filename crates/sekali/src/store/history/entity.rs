//! An entity with its latest events and its gaps.

use serde::Serialize;

use super::{EventRow, event_columns, event_row};
use crate::error::{Error, Result, Step as _};
use crate::event::EntityKey;
use crate::store::entities::columns;
use crate::store::{Conn, Transaction};

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
    " where seq in (select seq from (select seq from webhook_positions where source = ? and scope = ? and entity_type = ? \
     and entity_id = ? order by source_version desc, seq desc limit 50) as newest) order by source_version desc, occurred_at desc, seq desc"
);

const GAPS: &str = "select previous + 1, source_version - 1 from (select source_version, \
    lag(source_version) over (order by source_version) as previous from webhook_positions where source = ? and scope = ? \
    and entity_type = ? and entity_id = ? and source_version >= 0) as known where source_version > previous + 1 limit 50";

impl Transaction for ShowEntity {
    type Output = EntityHistory;
    const STEP: &'static str = "read an entity";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<EntityHistory> {
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
