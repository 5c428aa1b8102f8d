//! The gate: whether an event may be applied now, under the lock of its entity's row.

use crate::error::Result;
use crate::event::EntityKey;
use crate::order::{EqualVersion, Standing, is_regressed, stand};
use crate::reason::Reason;
use crate::source::gap_wait_ms;
use crate::store::{Conn, EntityState, is_any_waiting, missing_versions, waiting_since};

use super::prepare::Prepared;

/// What the gate says about an event.
pub(super) enum Gate {
    /// It may be applied, standing so to its entity.
    Open(Verdict),
    /// It waits until then for the versions before it.
    WaitsUntil(i64),
}

/// How an event stands, and what is remarkable about it.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub(super) standing: Standing,
    pub(super) has_version_conflict: bool,
    pub(super) is_version_regressed: bool,
    pub(super) gap_timed_out: bool,
}

/// Compares an event with its entity; whether another one claims its version was looked up before.
pub(super) async fn gate(
    conn: &mut Conn<'_>,
    prepared: &Prepared,
    entity: Option<(&EntityKey, &EntityState)>,
    has_version_conflict: bool,
    now_ms: i64,
) -> Result<Gate> {
    let mut verdict = Verdict {
        standing: Standing::Newer,
        has_version_conflict: false,
        is_version_regressed: false,
        gap_timed_out: false,
    };
    let Some((key, state)) = entity else {
        return Ok(Gate::Open(verdict));
    };
    let event = &prepared.event;
    let equal = match event.bypasses_equal_version {
        true => EqualVersion::TieBreak,
        false => prepared.source.equal_version,
    };
    verdict.standing = stand(
        prepared.source.rules,
        &event.position,
        state.position.as_ref(),
        equal,
    );
    verdict.is_version_regressed = state
        .position
        .as_ref()
        .is_some_and(|position| is_regressed(&event.position, position));
    if verdict.standing == Standing::Newer {
        match gap(conn, prepared, (key, state), now_ms).await? {
            Gap::Closed => {}
            Gap::WaitsUntil(until) => return Ok(Gate::WaitsUntil(until)),
            Gap::TimedOut => verdict.gap_timed_out = true,
        }
    }
    verdict.has_version_conflict = has_version_conflict;
    Ok(Gate::Open(verdict))
}

/// What an event's turn depends on, where the source's versions follow each other.
enum Gap {
    /// Every version before it was passed.
    Closed,
    /// It waits until then for the versions before it.
    WaitsUntil(i64),
    /// The versions before it never arrived in time.
    TimedOut,
}

/// After how long an event whose wait is over asks again whether those before it are done.
const GIVES_WAY_MS: i64 = 1000;

async fn gap(
    conn: &mut Conn<'_>,
    prepared: &Prepared,
    (key, state): (&EntityKey, &EntityState),
    now_ms: i64,
) -> Result<Gap> {
    let (event, ordering) = (&prepared.event, &prepared.source.ordering);
    let (Some(wait_ms), Some(version)) = (gap_wait_ms(ordering), event.position.version) else {
        return Ok(Gap::Closed);
    };
    let stands_at = state
        .position
        .as_ref()
        .and_then(|position| position.version);
    let expected = match (stands_at, ordering.first_version) {
        (Some(version), _) => Some(version.saturating_add(1)),
        (None, first) => first,
    };
    // Without a base nobody knows what the entity starts with: the lowest that came before the wait was over is it.
    if let Some(expected) = expected
        && (version <= expected || missing_versions(conn, key, expected, version).await? == 0)
    {
        return Ok(Gap::Closed);
    }
    // The gap is known since the first version behind it came, so that the wait ends for all of them together.
    let since = waiting_since(conn, key, version).await?;
    let until = since.unwrap_or(event.received_at).saturating_add(wait_ms);
    if now_ms < until {
        return Ok(Gap::WaitsUntil(until));
    }
    // Those behind a gap go in their order, too: the lower one wakes this one.
    if is_any_waiting(conn, key, expected.unwrap_or(0), version).await? {
        return Ok(Gap::WaitsUntil(now_ms.saturating_add(GIVES_WAY_MS)));
    }
    Ok(Gap::TimedOut)
}

impl Verdict {
    /// Returns the code that stands beside the event's status: what is remarkable, or why it is stale.
    pub(super) fn reason(&self) -> Option<Reason> {
        match self.standing {
            _ if self.has_version_conflict => Some(Reason::VersionConflict),
            _ if self.is_version_regressed => Some(Reason::VersionRegressed),
            _ if self.gap_timed_out => Some(Reason::GapTimedOut),
            Standing::Stale(reason) => Some(reason),
            Standing::Newer => None,
        }
    }
}
