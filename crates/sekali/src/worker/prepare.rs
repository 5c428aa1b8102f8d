//! What can be done for an event away from the database: its payload is checked and its effects are planned.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::effect::{Failure, Plan};
use crate::headers;
use crate::reason::Reason;
use crate::source::{Source, Sources};
use crate::store::Claimed;

/// An event with its source and the plans of the effects that match it.
pub(super) struct Prepared {
    pub(super) event: Claimed,
    pub(super) source: Arc<Source>,
    /// The index of each effect in the source, and its plan or why there is none.
    pub(super) plans: Vec<(usize, Result<Plan, Failure>)>,
}

/// Prepares a claimed event; the error carries the event back with the reason why it is given up.
pub(super) fn prepare(
    sources: &Sources,
    mut event: Claimed,
) -> Result<Prepared, Box<(Claimed, Failure)>> {
    let give_up = |event, reason: Reason| {
        let message = reason.sentence().to_owned();
        Err(Box::new((
            event,
            Failure {
                reason,
                message,
                is_permanent: true,
            },
        )))
    };
    let Some(source) = sources.get(&event.source) else {
        return give_up(event, Reason::SourceRetired);
    };
    let Some(body) = event.body.take() else {
        return give_up(event, Reason::PayloadMissing);
    };
    if Sha256::digest(&body)[..] != event.payload_hash[..] {
        return give_up(event, Reason::PayloadDamaged);
    }
    if event.was_taken_over && event.attempt > i64::from(source.retry.max_attempts) {
        return give_up(event, Reason::AttemptsExhausted);
    }
    let (kept, body) = (headers::read(&event.headers), Bytes::from(body));
    let plans = source.mapping.look(&kept, &body, |lookup| {
        let matching = source
            .effects
            .iter()
            .enumerate()
            .filter(|(_, effect)| effect.matches(&event.event_type));
        matching
            .map(|(index, effect)| (index, effect.plan(&event, &lookup)))
            .collect()
    });
    Ok(Prepared {
        source: source.clone(),
        plans,
        event,
    })
}
