//! Positions: which events are about an entity, in the order of their versions.
//!
//! An event is noted when a worker first looks at it, or at admission where no worker will. That is what conflicts, gaps
//! and the history of an entity are found by; what an event's position is stands in the inbox and is never changed.

use super::entities::columns;
use super::{Claimed, Conn, Value};
use crate::error::{Result, Step as _};
use crate::event::EntityKey;

/// Stands for an event without a version; versions start at 0.
const NO_VERSION: i64 = -1;

const NOTE: &str = "insert into webhook_positions (source, scope, entity_type, entity_id, source_version, seq) \
    values (?, ?, ?, ?, ?, ?) on conflict do nothing";

/// Notes that an event is about an entity.
pub(crate) async fn note_position(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    version: Option<i64>,
    seq: i64,
) -> Result<()> {
    let [source, scope, entity_type, entity_id] = columns(key);
    let version = version.unwrap_or(NO_VERSION).into();
    let values = [source, scope, entity_type, entity_id, version, seq.into()];
    let noted = conn.execute(NOTE, &values).await;
    noted.step("note a position").map(drop)
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

const CONFLICTING: &str = of_entity!(
    "i.seq",
    "and p.source_version = ? and p.seq <> ? and case when i.content_hash is not null and ? is not null \
     then i.content_hash <> ? else i.fingerprint <> ? end limit 1"
);

/// Finds another event that claims the same version of an entity with other content.
pub(crate) async fn conflicting_seq(
    conn: &mut Conn<'_>,
    key: &EntityKey,
    event: &Claimed,
) -> Result<Option<i64>> {
    let Some(version) = event.position.version else {
        return Ok(None);
    };
    let content_hash: Value<'_> = event.content_hash.as_deref().into();
    let mut values = columns(key).to_vec();
    values.extend([version.into(), event.seq.into(), content_hash, content_hash]);
    values.push(Value::Bytes(&event.fingerprint));
    let found = conn.fetch_one(CONFLICTING, &values, |row| row.int(0)).await;
    found.step("look for a conflicting version")
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
