//! Identification: what a verified delivery is about, read out of its headers and its JSON.
//!
//! Nothing here decides about duplicates or order; it finds the id, the entity and the position, and says with a
//! [`Reason`] why a delivery cannot be used. Numbers are taken as written and never pass through a float.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use sekali_verify::{
    Element, EventIds, Json, JsonError, Place, Request, Stale, Verified, View, all_hold, elements,
};
use sha2::{Digest as _, Sha256};

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::event::{Delivery, Hash, NewEvent, Provenance};
use crate::order::Position;
use crate::reason::Reason;
use crate::source::Source;
use crate::store::VariantRow;

mod mapping;
mod usable;
mod values;

pub use mapping::Mapping;
pub use sekali_verify::parse_time;
use usable::entry;
use values::Ids;
pub(crate) use values::Lookup;

/// Why a verified delivery is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The event's id, where it was found.
    pub event_id: Option<String>,
}

impl Refusal {
    fn of(reason: Reason) -> Self {
        Self {
            reason,
            event_id: None,
        }
    }
}

/// What the receiver knows beside the delivery itself.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The delivery's headers.
    pub headers: &'a HeaderMap,
    /// The request with its URL, where that is still known.
    pub url: Option<Request<'a>>,
    /// The present time in milliseconds UTC.
    pub now_ms: i64,
}

/// What was found before the rules about usable events are applied.
struct Found<'a> {
    entity_type: Option<String>,
    entity_id: Option<String>,
    event_type: Option<String>,
    scope: Option<String>,
    version: Option<i64>,
    occurred_at: Option<i64>,
    provenance: Provenance,
    lookup: Lookup<'a>,
    /// Whether the body holds `\u…`: only so can a text have half a character or a NUL.
    has_escapes: bool,
    /// The first thing that is wrong, in the order in which fields are read.
    problem: Option<Reason>,
}

/// Identifies the events that a verified delivery carries: one, or each element of a batch.
pub fn identify(
    source: &Source,
    verified: &Verified,
    arrival: Arrival<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    let replay_key = source.has_replay_guard().then(|| verified.signed_digest());
    read(source, verified.body(), replay_key, arrival)
}

/// Identifies the events of a delivery outside of the time window, only to look them up among the known ones.
pub fn identify_late(
    source: &Source,
    stale: &Stale,
    arrival: Arrival<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    read(source, stale.body(), None, arrival)
}

/// Restores a variant as a delivery of its own, `<id>#<first 16 hex digits of its hash>`.
///
/// It was verified when it arrived; an operator vouches for it now.
pub fn restore(source: &Arc<Source>, variant: &VariantRow, clock: &Clock) -> Result<Delivery> {
    let gone = || Error::Conflict {
        problem: "the content of the variant was erased".into(),
    };
    let body = Bytes::from(variant.body.clone().ok_or_else(gone)?);
    let headers = crate::headers::read(&variant.headers);
    let received_at = clock.now_ms();
    let arrival = Arrival {
        headers: &headers,
        url: None,
        now_ms: received_at,
    };
    // What was kept is one event, also where it was an element of a batch.
    let event = source.mapping.look(&headers, &body, |lookup| {
        let known = Known {
            body: &body,
            replay_key: None,
            problem: None,
        };
        one(source, lookup, arrival, known)
    });
    let mut event = event.map_err(|refusal| Error::Conflict {
        problem: refusal.reason.sentence().into(),
    })?;
    event.event_id = format!("{}#{}", variant.event_id, &variant.payload_hash[..16]);
    event.position.event_id.clone_from(&event.event_id);
    Ok(Delivery {
        source: source.clone(),
        event,
        received_at,
        started: Instant::now(),
        remote_address: None,
        only_if_known: None,
    })
}

/// What is known of an event before it is read.
struct Known<'a> {
    body: &'a Bytes,
    replay_key: Option<Hash>,
    /// Why the body as a whole cannot be read.
    problem: Option<Reason>,
}

fn read(
    source: &Source,
    body: &Bytes,
    replay_key: Option<Hash>,
    arrival: Arrival<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    let mapping = &source.mapping;
    let post = Request::post(arrival.headers, body);
    let request = arrival.url.as_ref().unwrap_or(&post);
    let opening = mapping.decode.open(request);
    let json = opening.json();
    let whole = View::whole(arrival.headers, arrival.url, &opening, body);
    let found = match &json {
        Ok(_) if mapping.has_batches() && all_hold(&mapping.batch_when, request) => {
            elements(opening.document(), &mapping.batch)
                .map_err(|_| Refusal::of(Reason::BatchTooLarge))?
        }
        _ => None,
    };
    let (Some(found), Ok(document)) = (found, &json) else {
        let lineage: Vec<&Json<'_>> = json.iter().collect();
        let is_json_wanted =
            !opening.is_no_json_by_right() && (mapping.reads_the_body() || !body.is_empty());
        let problem = json
            .as_ref()
            .err()
            .filter(|_| is_json_wanted)
            .map(json_reason);
        let known = Known {
            body,
            replay_key,
            problem,
        };
        let event = mapping.with_inner(whole, &lineage, |lookup| {
            one(source, lookup, arrival, known)
        });
        return Ok(vec![event?]);
    };
    let read = |element: &Element| {
        let range = element.bytes.clone();
        let bytes = match mapping.decode.document {
            None => body.slice(range),
            Some(_) => Bytes::copy_from_slice(&opening.document()[range]),
        };
        let lineage = element.lineage(document);
        let known = Known {
            body: &bytes,
            replay_key: None,
            problem: None,
        };
        let view = whole.of_element(element, &bytes);
        mapping.with_inner(view, &lineage, |lookup| one(source, lookup, arrival, known))
    };
    found.iter().map(read).collect()
}

fn one(
    source: &Source,
    lookup: Lookup<'_>,
    arrival: Arrival<'_>,
    known: Known<'_>,
) -> Result<NewEvent, Refusal> {
    let (mapping, body) = (&source.mapping, known.body);
    let event_id = event_id(mapping, &lookup, known.problem)?;
    let refusal = |reason| Refusal {
        reason,
        event_id: Some(event_id.clone()),
    };
    let mut found = mapping.find(lookup);
    found.problem = known.problem.or(found.problem);
    found.has_escapes = body.windows(2).any(|pair| pair == b"\\u");
    let entry = entry(source, &found, arrival.now_ms).map_err(refusal)?;
    let event_type = found
        .event_type
        .take()
        .unwrap_or_else(|| "unknown".to_owned());
    let payload_hash: Hash = Sha256::digest(body).into();
    let position = Position {
        version: found.version,
        occurred_at: found.occurred_at,
        rank: mapping.rank_of(&event_type),
        event_id: event_id.clone(),
    };
    Ok(NewEvent {
        scope: found.scope.take().unwrap_or_default(),
        event_id,
        event_type,
        entity_type: found.entity_type.take().unwrap_or_default(),
        entity_id: found.entity_id.take().unwrap_or_default(),
        position,
        provenance: std::mem::take(&mut found.provenance),
        payload_hash,
        fingerprint: mapping.fingerprinter.of(lookup.view.json(), payload_hash),
        replay_key: known.replay_key,
        signature_valid: source.is_signed().then_some(true),
        headers: source.kept_headers.write(arrival.headers),
        body: Bytes::clone(body),
        traceparent: values::traceparent(arrival.headers),
        entry,
    })
}

fn event_id(
    mapping: &Mapping,
    lookup: &Lookup<'_>,
    problem: Option<Reason>,
) -> Result<String, Refusal> {
    let EventIds::From(places) = &mapping.event_id else {
        return Ok(Ids::mint());
    };
    let reads_body = |place: &Place| matches!(place, Place::Body(_));
    let Some(id) = lookup.id(&places.0).map_err(Refusal::of)? else {
        // Without a body the id cannot be found: say so, instead of only "missing".
        let reason = problem.filter(|_| places.all().any(reads_body));
        return Err(Refusal::of(reason.unwrap_or(Reason::EventIdMissing)));
    };
    for place in &mapping.event_id_same_as {
        let other = lookup
            .scalar_at(place)
            .map_err(|_| Refusal::of(Reason::EventIdInvalid))?;
        if other.is_some_and(|other| other.as_text() != id) {
            return Err(Refusal::of(Reason::IdMismatch));
        }
    }
    Ok(id)
}

fn json_reason(error: &JsonError) -> Reason {
    match error {
        JsonError::TooDeep => Reason::BodyTooDeep,
        JsonError::TooManyValues => Reason::BodyTooManyValues,
        _ => Reason::BodyNotJson,
    }
}
