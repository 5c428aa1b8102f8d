//! The gate: whether an event may be applied now, under the lock of its entity's row.

use crate::error::Result;
use crate::event::EntityKey;
use crate::order::{EqualVersion, Standing, is_regressed, stand};
use crate::reason::Reason;
use crate::source::gap_wait_ms;
use crate::store::{Conn, EntityState, conflicting_seq, missing_versions};

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

/// Compares an event with its entity.
pub(super) async fn gate(
    conn: &mut Conn<'_>,
    prepared: &Prepared,
    entity: Option<(&EntityKey, &EntityState)>,
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
    if verdict.standing == Standing::Newer
        && let Some(until) = waits_until(conn, prepared, (key, state)).await?
    {
        if now_ms < until {
            return Ok(Gate::WaitsUntil(until));
        }
        verdict.gap_timed_out = true;
    }
    verdict.has_version_conflict = conflicting_seq(conn, key, event).await?.is_some();
    Ok(Gate::Open(verdict))
}

/// Returns until when an event waits for the versions before it, where the source's versions follow each other.
async fn waits_until(
    conn: &mut Conn<'_>,
    prepared: &Prepared,
    (key, state): (&EntityKey, &EntityState),
) -> Result<Option<i64>> {
    let (event, ordering) = (&prepared.event, &prepared.source.ordering);
    let (Some(wait_ms), Some(version)) = (gap_wait_ms(ordering), event.position.version) else {
        return Ok(None);
    };
    let until = event.received_at.saturating_add(wait_ms);
    let stands_at = state
        .position
        .as_ref()
        .and_then(|position| position.version);
    let expected = match (stands_at, ordering.first_version) {
        (Some(version), _) => version.saturating_add(1),
        (None, Some(first)) => first,
        // Nobody knows what the entity starts with: whatever came before the wait was over is its base.
        (None, None) => return Ok(Some(until)),
    };
    if version <= expected || missing_versions(conn, key, expected, version).await? == 0 {
        return Ok(None);
    }
    Ok(Some(until))
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
