//! Positions: which events are about an entity, in the order of their versions.
//!
//! An event is noted when a worker first looks at it, or at admission where no worker will. That is what conflicts, gaps
//! and the history of an entity are found by; what an event's position is stands in the inbox and is never changed.

use std::collections::HashSet;

use super::entities::columns;
use super::rows::{Insert, Known, Rows, Select};
use super::{Claimed, Conn, Kind, Value};
use crate::error::{Result, Step as _};
use crate::event::EntityKey;

/// Stands for an event without a version; versions start at 0.
const NO_VERSION: i64 = -1;

static NOTE: Insert = Insert::new(
    "webhook_positions",
    &[
        ("source", Kind::Key),
        ("scope", Kind::Key),
        ("entity_type", Kind::Key),
        ("entity_id", Kind::Key),
        ("source_version", Kind::Int),
        ("seq", Kind::Int),
    ],
    Known::Stays,
);

/// Notes which entities events are about: entity, version and number of each.
pub(crate) async fn note_positions<'k>(
    conn: &mut Conn<'_>,
    events: impl Iterator<Item = (&'k EntityKey, Option<i64>, i64)>,
) -> Result<()> {
    let mut rows = Rows::with_capacity(6, events.size_hint().0);
    for (key, version, seq) in events {
        let [source, scope, entity_type, entity_id] = columns(key);
        let version = version.unwrap_or(NO_VERSION).into();
        rows.push([source, scope, entity_type, entity_id, version, seq.into()]);
    }
    let noted = conn.insert_all(&NOTE, &rows).await;
    noted.step("note positions").map(drop)
}

/// Starts a query over the events of an entity, `i`, by their positions, `p`.
macro_rules! of_entity {
    ($columns:literal, $condition:literal) => {
        concat!(
            "select ",
            $columns,
            " from webhook_positions p join webhook_inbox i on i.seq = p.seq where p.source = ? and p.scope = ? \
             and p.entity_type = ? and p.entity_id = ? ",
            $condition
        )
    };
}

static CONFLICTING: Select = Select::new(
    "i.seq",
    "webhook_positions p join webhook_inbox i on i.seq = p.seq",
    "p.source = {0} and p.scope = {1} and p.entity_type = {2} and p.entity_id = {3} and p.source_version = {4} \
     and p.seq <> {5} and case when i.content_hash is not null and {6} is not null then i.content_hash <> {6} \
     else i.fingerprint <> {7} end",
    &[
        Kind::Key,
        Kind::Key,
        Kind::Key,
        Kind::Key,
        Kind::Int,
        Kind::Int,
        Kind::Key,
        Kind::Bytes,
    ],
)
.first();

/// Finds which of these events claim a version of their entity that a noted event claims with other content.
pub(crate) async fn conflicting(
    conn: &mut Conn<'_>,
    events: &[(&EntityKey, &Claimed)],
) -> Result<HashSet<i64>> {
    let versioned: Vec<_> = events
        .iter()
        .filter_map(|(key, event)| Some((*key, *event, event.position.version?)))
        .collect();
    let mut rows = Rows::with_capacity(8, versioned.len());
    for (key, event, version) in &versioned {
        let [source, scope, entity_type, entity_id] = columns(key);
        rows.push([
            source,
            scope,
            entity_type,
            entity_id,
            (*version).into(),
            event.seq.into(),
            event.content_hash.as_deref().into(),
            Value::Bytes(&event.fingerprint),
        ]);
    }
    let seqs = conn.select_all(&CONFLICTING, &rows, |index, _| Ok(versioned[index].1.seq));
    let seqs = seqs.await.step("look for conflicting versions")?;
    Ok(seqs.into_iter().collect())
}

const PASSED: &str = of_entity!(
    "count(distinct p.source_version)",
    "and p.source_version >= ? and p.source_version < ? \
     and i.processing_status not in ('received', 'processing', 'failed')"
);

/// Returns how many of the versions from `from` up to but without `below` have not been passed yet.
///
/// A version counts as passed once its event was processed, ignored or given up.
pub(crate) async fn missing_versions(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    from: i64,
    below: i64,
) -> Result<i64> {
    let mut values = columns(key).to_vec();
    values.extend([Value::Int(from), Value::Int(below)]);
    let passed = conn.fetch_one(PASSED, &values, |row| row.int(0)).await;
    let passed = passed.step("count the versions before")?.unwrap_or(0);
    Ok(below.saturating_sub(from).saturating_sub(passed))
}

const WAITING_SINCE: &str = of_entity!(
    "min(i.received_at)",
    "and p.source_version >= ? and i.processing_status in ('received', 'processing')"
);

/// Finds when the first of the events that wait at or above a version was received.
pub(crate) async fn waiting_since(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    version: i64,
) -> Result<Option<i64>> {
    let mut values = columns(key).to_vec();
    values.push(version.into());
    let since = conn.fetch_one(WAITING_SINCE, &values, |row| row.opt_int(0));
    since.await.step("find what waits").map(Option::flatten)
}

const IS_ANY_WAITING: &str = of_entity!(
    "1",
    "and p.source_version >= ? and p.source_version < ? \
     and i.processing_status in ('received', 'processing') limit 1"
);

/// Tells whether an event waits whose version lies from `from` up to but without `below`.
pub(crate) async fn is_any_waiting(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    from: i64,
    below: i64,
) -> Result<bool> {
    let mut values = columns(key).to_vec();
    values.extend([Value::Int(from), Value::Int(below)]);
    let found = conn.fetch_one(IS_ANY_WAITING, &values, |_| Ok(())).await;
    found.step("find what waits").map(|found| found.is_some())
}

const WAKE_FOLLOWERS: &str = "update webhook_inbox set next_attempt_at = ? where seq in \
    (select seq from webhook_positions where source = ? and scope = ? and entity_type = ? and entity_id = ? \
    and source_version > ?) and processing_status = 'received' and status_reason = 'waiting_for_version' \
    and next_attempt_at > ?";

/// Makes the events that wait for this or an earlier version of an entity due now.
pub(crate) async fn wake_followers(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    version: Option<i64>,
    now_ms: i64,
) -> Result<()> {
    let mut values = vec![now_ms.into()];
    values.extend(columns(key));
    values.extend([version.unwrap_or(NO_VERSION).into(), Value::Int(now_ms)]);
    let woken = conn.execute(WAKE_FOLLOWERS, &values).await;
    woken.step("wake the followers").map(drop)
}
