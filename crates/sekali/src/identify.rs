//! Identification: what a verified delivery is about, read out of its headers and its JSON.
//!
//! Nothing here decides about duplicates or order; it finds the id, the entity and the position, and says with a
//! [`Reason`] why a delivery cannot be used. Numbers are taken as written and never pass through a float.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use sekali_verify::{Json, JsonError, Stale, Verified};
use sha2::{Digest as _, Sha256};

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::event::{Delivery, Hash, NewEvent, Provenance};
use crate::fingerprint::Fingerprinter;
use crate::limits::{MAX_KEY_BYTES, MAX_TEXT_BYTES, MAX_URL_BYTES};
use crate::order::Position;
use crate::reason::Reason;
use crate::source::{EventIds, FieldRef, FieldRefs, Source, SourceConfig};
use crate::store::VariantRow;

mod usable;
mod values;

use usable::entry;
use values::Ids;
pub(crate) use values::Lookup;
pub use values::parse_time;

/// How a source's payload is read.
#[derive(Clone, Debug)]
pub struct Mapping {
    event_id: EventIds,
    event_id_same_as: FieldRefs,
    scope: FieldRefs,
    event_type: FieldRefs,
    entity_type: FieldRefs,
    entity_id: FieldRefs,
    version: FieldRefs,
    occurred_at: FieldRefs,
    delivered_at: FieldRefs,
    producer: FieldRefs,
    source_url: FieldRefs,
    content_hash: FieldRefs,
    rank: Vec<String>,
    max_future_ms: i64,
    /// How the fingerprint is made.
    pub(crate) fingerprinter: Fingerprinter,
}

/// Why a verified delivery is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The event's id, where it was found.
    pub event_id: Option<String>,
}

/// What the receiver knows beside the delivery itself.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The delivery's headers.
    pub headers: &'a HeaderMap,
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

impl Mapping {
    pub(crate) fn build(config: &SourceConfig) -> Result<Self> {
        let map = config.map.clone();
        let max_future = config
            .max_future
            .map_or(std::time::Duration::from_secs(300), Into::into);
        Ok(Self {
            event_id: map.event_id,
            event_id_same_as: map.event_id_same_as,
            scope: map.scope,
            event_type: map.event_type,
            entity_type: map.entity_type,
            entity_id: map.entity_id,
            version: map.version,
            occurred_at: map.occurred_at,
            delivered_at: map.delivered_at,
            producer: map.producer,
            source_url: map.source_url,
            content_hash: map.content_hash,
            rank: config.rank.clone(),
            max_future_ms: i64::try_from(max_future.as_millis()).unwrap_or(i64::MAX),
            fingerprinter: Fingerprinter::new(config.fingerprint, config.volatile.clone()),
        })
    }

    /// Tells whether the id comes from a header only, so that the signature of the body does not cover it.
    pub(crate) fn id_stands_outside_the_body(&self) -> bool {
        match &self.event_id {
            EventIds::From(refs) => refs
                .0
                .iter()
                .any(|place| matches!(place, FieldRef::Header(_))),
            EventIds::Minted => false,
        }
    }

    /// Iterates over the headers that are read.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        let id = match &self.event_id {
            EventIds::From(refs) => refs.0.as_slice(),
            EventIds::Minted => &[],
        };
        let lists = [
            &self.event_id_same_as,
            &self.scope,
            &self.event_type,
            &self.entity_type,
            &self.entity_id,
        ];
        let more = [
            &self.version,
            &self.occurred_at,
            &self.delivered_at,
            &self.producer,
        ];
        let refs = lists.into_iter().chain(more).flat_map(|list| list.0.iter());
        id.iter().chain(refs).filter_map(|place| match place {
            FieldRef::Header(name) => Some(name),
            _ => None,
        })
    }

    fn has_entity(&self) -> bool {
        !self.entity_id.0.is_empty()
    }

    fn rank_of(&self, event_type: &str) -> i64 {
        let place = self.rank.iter().position(|ranked| ranked == event_type);
        place.map_or(0, |place| {
            i64::try_from(place).unwrap_or(i64::MAX).saturating_add(1)
        })
    }
}

/// Identifies the event that a verified delivery carries.
pub fn identify(
    source: &Source,
    verified: &Verified,
    arrival: Arrival<'_>,
) -> Result<NewEvent, Refusal> {
    let replay_key = source.has_replay_guard().then(|| verified.signed_digest());
    read(source, verified.body(), replay_key, arrival)
}

/// Identifies the event of a delivery outside of the time window, only to look it up among the known ones.
pub fn identify_late(
    source: &Source,
    stale: &Stale,
    arrival: Arrival<'_>,
) -> Result<NewEvent, Refusal> {
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
    let event = read(
        source,
        &body,
        None,
        Arrival {
            headers: &headers,
            now_ms: received_at,
        },
    );
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

fn read(
    source: &Source,
    body: &Bytes,
    replay_key: Option<Hash>,
    arrival: Arrival<'_>,
) -> Result<NewEvent, Refusal> {
    let json = Json::parse(body);
    let lookup = Lookup {
        json: json.as_ref().ok(),
        headers: arrival.headers,
    };
    let event_id = event_id(&source.mapping, &lookup, &json)?;
    let refusal = |reason| Refusal {
        reason,
        event_id: Some(event_id.clone()),
    };
    let mut found = source.mapping.find(lookup);
    if let (Err(error), true) = (&json, source.mapping.reads_the_body() || !body.is_empty()) {
        found.problem = Some(json_reason(error));
    }
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
        rank: source.mapping.rank_of(&event_type),
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
        fingerprint: source
            .mapping
            .fingerprinter
            .of(found.lookup.json, payload_hash),
        replay_key,
        signature_valid: source.is_signed().then_some(true),
        headers: source.kept_headers.write(arrival.headers),
        body: Bytes::clone(body),
        traceparent: values::traceparent(arrival.headers),
        entry,
    })
}

impl Mapping {
    fn reads_the_body(&self) -> bool {
        let lists = [
            &self.event_type,
            &self.entity_id,
            &self.version,
            &self.occurred_at,
        ];
        lists
            .into_iter()
            .flat_map(|list| &list.0)
            .any(|place| matches!(place, FieldRef::Body(_)))
    }

    fn find<'a>(&self, lookup: Lookup<'a>) -> Found<'a> {
        let mut problem = None;
        let mut text = |refs: &FieldRefs, max: usize| {
            lookup.text(refs, max).unwrap_or_else(|reason| {
                problem.get_or_insert(reason);
                None
            })
        };
        let (scope, event_type) = (
            text(&self.scope, MAX_KEY_BYTES),
            text(&self.event_type, MAX_KEY_BYTES),
        );
        let (entity_type, entity_id) = (
            text(&self.entity_type, MAX_KEY_BYTES),
            text(&self.entity_id, MAX_KEY_BYTES),
        );
        let provenance = Provenance {
            source_url: text(&self.source_url, MAX_URL_BYTES),
            content_hash: text(&self.content_hash, MAX_TEXT_BYTES),
            producer: text(&self.producer, MAX_TEXT_BYTES),
            delivered_at: text(&self.delivered_at, MAX_TEXT_BYTES),
        };
        let version = lookup.version(&self.version).unwrap_or_else(|reason| {
            problem.get_or_insert(reason);
            None
        });
        let occurred_at = lookup.time(&self.occurred_at).unwrap_or_else(|reason| {
            problem.get_or_insert(reason);
            None
        });
        Found {
            entity_type,
            entity_id,
            event_type,
            scope,
            version,
            occurred_at,
            provenance,
            lookup,
            has_escapes: false,
            problem,
        }
    }
}

fn event_id(
    mapping: &Mapping,
    lookup: &Lookup<'_>,
    json: &Result<Json<'_>, JsonError>,
) -> Result<String, Refusal> {
    let refuse = |reason| Refusal {
        reason,
        event_id: None,
    };
    let EventIds::From(refs) = &mapping.event_id else {
        return Ok(Ids::mint());
    };
    let id = match lookup
        .scalar(refs)
        .map_err(|_| refuse(Reason::EventIdInvalid))?
    {
        Some(scalar) => scalar.into_id().map_err(refuse)?,
        // Without a body the id cannot be found: say so, instead of only "missing".
        None => match json {
            Err(error)
                if refs
                    .0
                    .iter()
                    .any(|place| matches!(place, FieldRef::Body(_))) =>
            {
                return Err(refuse(json_reason(error)));
            }
            _ => return Err(refuse(Reason::EventIdMissing)),
        },
    };
    for place in &mapping.event_id_same_as.0 {
        let other = lookup
            .scalar_at(place)
            .map_err(|_| refuse(Reason::EventIdInvalid))?;
        if other.is_some_and(|other| other.as_text() != id) {
            return Err(refuse(Reason::IdMismatch));
        }
    }
    Ok(id)
}

fn json_reason(error: &JsonError) -> Reason {
    match error {
        JsonError::TooDeep => Reason::BodyTooDeep,
        _ => Reason::BodyNotJson,
    }
}
