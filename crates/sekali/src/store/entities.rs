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

const CONFLICTING: &str = "select seq from webhook_inbox where source = ? and scope = ? and entity_type = ? and entity_id = ? \
    and source_version = ? and seq <> ? and case when content_hash is not null and ? is not null \
    then content_hash <> ? else fingerprint <> ? end limit 1";

/// Finds another event that claims the same version of an entity with other content.
pub(crate) async fn conflicting_seq(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    event: &super::Claimed,
) -> Result<Option<i64>> {
    let Some(version) = event.position.version else {
        return Ok(None);
    };
    let [source, scope, entity_type, entity_id] = columns(key);
    let content_hash: Value<'_> = event.content_hash.as_deref().into();
    let values = [
        source,
        scope,
        entity_type,
        entity_id,
        version.into(),
        event.seq.into(),
        content_hash,
        content_hash,
        Value::Bytes(&event.fingerprint),
    ];
    conn.fetch_one(CONFLICTING, &values, |row| row.int(0))
        .await
        .step("look for a conflicting version")
}

const PASSED: &str = "select count(distinct source_version) from webhook_inbox where source = ? \
    and scope = ? and entity_type = ? and entity_id = ? and source_version >= ? and source_version < ? \
    and processing_status not in ('received', 'processing', 'failed')";

/// Returns how many of the versions from `from` up to but without `below` have not been passed yet.
///
/// A version counts as passed once its event was processed, ignored or given up.
pub(crate) async fn missing_versions(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    from: i64,
    below: i64,
) -> Result<i64> {
    let [source, scope, entity_type, entity_id] = columns(key);
    let values = [
        source,
        scope,
        entity_type,
        entity_id,
        from.into(),
        below.into(),
    ];
    let passed = conn
        .fetch_one(PASSED, &values, |row| row.int(0))
        .await
        .step("count the versions before")?;
    Ok(below
        .saturating_sub(from)
        .saturating_sub(passed.unwrap_or(0)))
}

const WAITING_SINCE: &str = "select min(received_at) from webhook_inbox where source = ? \
    and scope = ? and entity_type = ? and entity_id = ? and source_version >= ? \
    and processing_status in ('received', 'processing')";

/// Finds when the first of the events that wait at or above a version was received.
pub(crate) async fn waiting_since(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    version: i64,
) -> Result<Option<i64>> {
    let [source, scope, entity_type, entity_id] = columns(key);
    let values = [source, scope, entity_type, entity_id, version.into()];
    let since = conn
        .fetch_one(WAITING_SINCE, &values, |row| row.opt_int(0))
        .await;
    since.step("find what waits").map(Option::flatten)
}

const IS_ANY_WAITING: &str = "select 1 from webhook_inbox where source = ? \
    and scope = ? and entity_type = ? and entity_id = ? and source_version >= ? and source_version < ? \
    and processing_status in ('received', 'processing') limit 1";

/// Tells whether an event waits whose version lies from `from` up to but without `below`.
pub(crate) async fn is_any_waiting(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    from: i64,
    below: i64,
) -> Result<bool> {
    let [source, scope, entity_type, entity_id] = columns(key);
    let values = [
        source,
        scope,
        entity_type,
        entity_id,
        from.into(),
        below.into(),
    ];
    let found = conn.fetch_one(IS_ANY_WAITING, &values, |_| Ok(())).await;
    found.step("find what waits").map(|found| found.is_some())
}

pub(super) fn columns(key: &EntityKey) -> [Value<'_>; 4] {
    [
        Value::Text(&key.source),
        Value::Text(&key.scope),
        Value::Text(&key.entity_type),
        Value::Text(&key.entity_id),
    ]
}
