//! Whether an identified event can be used, and where it goes first.

use super::Found;
use crate::event::Entry;
use crate::limits::MAX_HOLD_MS;
use crate::order::EffectOrder;
use crate::reason::{Reason, Status};
use crate::source::Source;
use sekali_verify::Unusable;

/// Decides where the event goes first, or that it is refused.
pub(super) fn entry(source: &Source, found: &Found<'_>, now_ms: i64) -> Result<Entry, Reason> {
    let event_type = found.event_type.as_deref().unwrap_or("unknown");
    let needs_order = source
        .effects_for(event_type)
        .any(|effect| effect.order() == EffectOrder::LatestWins);
    let problem = found
        .problem
        .or_else(|| missing(source, found, needs_order))
        .or_else(|| unwritable(source, found, event_type));
    // Where nothing is to be done with it, nothing is missing: the worker will say `no_effect`.
    let is_unmatched = source.effects_for(event_type).next().is_none();
    if let Some(reason) = problem {
        return match source.unusable {
            Unusable::Store if is_unmatched => Ok(Entry::Due),
            Unusable::Refuse => Err(reason),
            Unusable::Store => Ok(Entry::Settled(Status::DeadLetter, reason)),
        };
    }
    if source.require_version && found.version.is_none() {
        return Ok(Entry::Settled(Status::DeadLetter, Reason::VersionMissing));
    }
    let ahead_ms = found
        .occurred_at
        .map_or(0, |at| (at / 1_000_000).saturating_sub(now_ms));
    let time_decides = found.version.is_none() && needs_order;
    if !time_decides || ahead_ms <= source.mapping.max_future_ms {
        return Ok(Entry::Due);
    }
    match source.unusable {
        Unusable::Refuse => Err(Reason::OccurredAtInFuture),
        Unusable::Store => Ok(Entry::HeldUntil(
            now_ms.saturating_add(ahead_ms.min(MAX_HOLD_MS)),
        )),
    }
}

/// Finds text that no column can hold, so that the sender hears of it and not only the worker.
fn unwritable(source: &Source, found: &Found<'_>, event_type: &str) -> Option<Reason> {
    let is_unwritable = found.has_escapes
        && source
            .effects_for(event_type)
            .any(|effect| effect.meets_unwritable_text(&found.lookup));
    is_unwritable.then_some(Reason::FieldInvalid)
}

fn missing(source: &Source, found: &Found<'_>, needs_order: bool) -> Option<Reason> {
    let mapping = &source.mapping;
    let lacks_type = !mapping.entity_type.is_empty() && found.entity_type.is_none();
    if mapping.has_entity() && (found.entity_id.is_none() || lacks_type) {
        return Some(Reason::EntityMissing);
    }
    let lacks_position = found.version.is_none() && found.occurred_at.is_none();
    (needs_order && lacks_position && !source.require_version).then_some(Reason::PositionMissing)
}
