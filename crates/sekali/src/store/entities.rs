//! Entities: the position that the gate compares with, locked before it is read.

use std::collections::{BTreeMap, HashMap};

use super::rows::{Insert, Known, Rows, Select, Update};
use super::{Conn, Kind, Value};
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

const KEY: &[Kind] = &[Kind::Key, Kind::Key, Kind::Key, Kind::Key];

static MISSING: Insert = Insert::new(
    "webhook_entities",
    &[
        ("source", Kind::Key),
        ("scope", Kind::Key),
        ("entity_type", Kind::Key),
        ("entity_id", Kind::Key),
        ("updated_at", Kind::Int),
    ],
    Known::Stays,
);

static LOCK: Select = Select::new(
    "version, occurred_at, type_rank, last_event_id, deleted, reset_at",
    "webhook_entities",
    "source = {0} and scope = {1} and entity_type = {2} and entity_id = {3}",
    KEY,
)
.locking();

/// Locks the rows of entities in the order of their keys and reads them; an entity without a row gets one first.
///
/// A row that is missing cannot be locked, and two workers on the first events of a new entity would not see each other.
pub(crate) async fn lock_entities(
    conn: &mut Conn<'_>,
    keys: impl Iterator<Item = EntityKey>,
    now_ms: i64,
) -> Result<BTreeMap<EntityKey, EntityState>> {
    let mut keys: Vec<EntityKey> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    let mut found = lock(conn, &keys).await?;
    let is_missing = |index: &usize| !found.contains_key(index);
    let missing: Vec<usize> = (0..keys.len()).filter(is_missing).collect();
    if !missing.is_empty() {
        let mut rows = Rows::with_capacity(5, missing.len());
        for index in missing {
            let [source, scope, entity_type, entity_id] = columns(&keys[index]);
            rows.push([source, scope, entity_type, entity_id, now_ms.into()]);
        }
        let inserted = conn.insert_all(&MISSING, &rows).await;
        inserted.step("create entities")?;
        // All of them again: those that another worker made in the meantime are locked and read as it left them.
        found = lock(conn, &keys).await?;
    }
    let mut state = |(index, key)| (key, found.remove(&index).unwrap_or_default());
    Ok(keys.into_iter().enumerate().map(&mut state).collect())
}

async fn lock(conn: &mut Conn<'_>, keys: &[EntityKey]) -> Result<HashMap<usize, EntityState>> {
    let mut rows = Rows::with_capacity(4, keys.len());
    keys.iter().for_each(|key| rows.push(columns(key)));
    let states = conn.select_all(&LOCK, &rows, |index, row| {
        let position = match row.opt_text(3)? {
            Some(event_id) => Some(Position {
                version: row.opt_int(0)?,
                occurred_at: row.opt_int(1)?,
                rank: row.int(2)?,
                event_id,
            }),
            None => None,
        };
        let state = EntityState {
            position,
            is_deleted: row.int(4)? != 0,
            was_reset: row.opt_int(5)?.is_some(),
            has_moved: false,
        };
        Ok((index, state))
    });
    Ok(states.await.step("lock entities")?.into_iter().collect())
}

static SAVE: Update = Update::new(
    "webhook_entities",
    "version = {4}, occurred_at = {5}, type_rank = {6}, last_event_id = {7}, deleted = {8}, reset_at = null, \
     updated_at = {9}",
    "source = {0} and scope = {1} and entity_type = {2} and entity_id = {3}",
    &[
        Kind::Key,
        Kind::Key,
        Kind::Key,
        Kind::Key,
        Kind::Int,
        Kind::Int,
        Kind::Int,
        Kind::Key,
        Kind::Int,
        Kind::Int,
    ],
);

/// Moves the entities that have moved to their new positions.
pub(crate) async fn save_entities(
    conn: &mut Conn<'_>,
    states: &BTreeMap<EntityKey, EntityState>,
    now_ms: i64,
) -> Result<()> {
    let mut rows = Rows::with_capacity(10, states.len());
    for (key, state) in states {
        let (Some(position), true) = (&state.position, state.has_moved) else {
            continue;
        };
        let [source, scope, entity_type, entity_id] = columns(key);
        rows.push([
            source,
            scope,
            entity_type,
            entity_id,
            position.version.into(),
            position.occurred_at.into(),
            position.rank.into(),
            Value::Text(&position.event_id),
            i64::from(state.is_deleted).into(),
            now_ms.into(),
        ]);
    }
    conn.update_all(&SAVE, &rows)
        .await
        .step("move entities")
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
