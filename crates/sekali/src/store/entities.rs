//! Entities: the position that the gate compares with, locked before it is read.

use std::collections::BTreeMap;

use super::{Conn, Value};
use crate::error::{Result, Step as _};
use crate::event::EntityKey;
use crate::order::Position;

/// What is known about an entity under its row lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntityState {
    /// Where it stands; `None` before its first event and after a reset.
    pub(crate) position: Option<Position>,
    /// Whether its last effect was a delete.
    pub(crate) is_deleted: bool,
    /// Whether an operator cleared its position and no event came since.
    pub(crate) was_reset: bool,
    /// Whether this transaction moved it.
    pub(crate) has_moved: bool,
}

const INSERT_MISSING: &str = "insert into webhook_entities (source, scope, entity_type, entity_id, updated_at) \
    values (?, ?, ?, ?, ?) on conflict do nothing";

const READ: &str = "select version, occurred_at, type_rank, last_event_id, deleted, reset_at from webhook_entities \
    where source = ? and scope = ? and entity_type = ? and entity_id = ?";

/// Locks the rows of entities in the order of their keys and reads them; an entity without a row gets one first.
///
/// A row that is missing cannot be locked, and two workers on the first events of a new entity would not see each other.
pub(crate) async fn lock_entities(
    conn: &mut Conn<'_>,
    keys: impl Iterator<Item = EntityKey>,
    now_ms: i64,
) -> Result<BTreeMap<EntityKey, EntityState>> {
    let mut states: BTreeMap<EntityKey, EntityState> =
        keys.map(|key| (key, EntityState::default())).collect();
    for (key, state) in &mut states {
        let [source, scope, entity_type, entity_id] = columns(key);
        if let Some(known) = read_entity(conn, key).await? {
            *state = known;
            continue;
        }
        let values = [source, scope, entity_type, entity_id, now_ms.into()];
        let inserted = conn.execute(INSERT_MISSING, &values).await;
        inserted.step("create an entity")?;
        *state = read_entity(conn, key).await?.unwrap_or_default();
    }
    Ok(states)
}

async fn read_entity(conn: &mut Conn<'_>, key: &EntityKey) -> Result<Option<EntityState>> {
    let columns = columns(key);
    let state = conn.fetch_one(READ, &columns, |row| {
        let position = match row.opt_text(3)? {
            Some(event_id) => Some(Position {
                version: row.opt_int(0)?,
                occurred_at: row.opt_int(1)?,
                rank: row.int(2)?,
                event_id,
            }),
            None => None,
        };
        Ok(EntityState {
            position,
            is_deleted: row.int(4)? != 0,
            was_reset: row.opt_int(5)?.is_some(),
            has_moved: false,
        })
    });
    state.await.step("lock an entity")
}

const SAVE: &str = "update webhook_entities set version = ?, occurred_at = ?, type_rank = ?, last_event_id = ?, \
    deleted = ?, reset_at = null, updated_at = ? where source = ? and scope = ? and entity_type = ? and entity_id = ?";

/// Moves an entity to its new position.
pub(crate) async fn save_entity(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    state: &EntityState,
    now_ms: i64,
) -> Result<()> {
    let Some(position) = &state.position else {
        return Ok(());
    };
    let [source, scope, entity_type, entity_id] = columns(key);
    let values: [Value<'_>; 10] = [
        position.version.into(),
        position.occurred_at.into(),
        position.rank.into(),
        Value::Text(&position.event_id),
        i64::from(state.is_deleted).into(),
        now_ms.into(),
        source,
        scope,
        entity_type,
        entity_id,
    ];
    conn.execute(SAVE, &values)
        .await
        .step("move an entity")
        .map(drop)
}

pub(super) fn columns(key: &EntityKey) -> [Value<'_>; 4] {
    [
        Value::Text(&key.source),
        Value::Text(&key.scope),
        Value::Text(&key.entity_type),
        Value::Text(&key.entity_id),
    ]
}
