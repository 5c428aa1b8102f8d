//! How a source's payload is read: the places of everything that is found in it.

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use sekali_verify::{Condition, Decode, EventIds, Json, Pattern, Place, Places, Request, View};

use super::Found;
use super::values::{Lookup, Times};
use crate::event::Provenance;
use crate::fingerprint::Fingerprinter;
use crate::limits::{MAX_KEY_BYTES, MAX_TEXT_BYTES, MAX_URL_BYTES};
use crate::source::SourceConfig;

/// How a source's payload is read.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub(super) event_id: EventIds,
    pub(super) event_id_same_as: Vec<Place>,
    scope: Vec<Place>,
    event_type: Vec<Place>,
    pub(super) entity_type: Vec<Place>,
    entity_id: Vec<Place>,
    version: Vec<Place>,
    occurred_at: Vec<Place>,
    delivered_at: Vec<Place>,
    producer: Vec<Place>,
    source_url: Vec<Place>,
    content_hash: Vec<Place>,
    times: Times,
    pub(super) decode: Decode,
    pub(super) batch: Vec<Pattern>,
    pub(super) batch_when: Vec<Condition>,
    rank: Vec<String>,
    pub(super) max_future_ms: i64,
    /// How the fingerprint is made.
    pub(crate) fingerprinter: Fingerprinter,
}

impl Mapping {
    pub(crate) fn build(config: &SourceConfig) -> Self {
        let map = config.map.clone();
        let places = |places: Option<Places>| places.unwrap_or_default().0;
        let max_future = config
            .max_future
            .map_or(std::time::Duration::from_secs(300), Into::into);
        let volatile = config.volatile.clone().unwrap_or_default();
        Self {
            decode: map.decode(),
            event_id: map.event_id.unwrap_or_default(),
            event_id_same_as: places(map.event_id_same_as),
            scope: places(map.scope),
            event_type: places(map.event_type),
            entity_type: places(map.entity_type),
            entity_id: places(map.entity_id),
            version: places(map.version),
            occurred_at: places(map.occurred_at),
            delivered_at: places(map.delivered_at),
            producer: places(map.producer),
            source_url: places(map.source_url),
            content_hash: places(map.content_hash),
            times: Times {
                unit: map.time_unit.unwrap_or_default(),
                offset: map.time_offset.map(|offset| offset.as_str().to_owned()),
                version_is: map.version_is.unwrap_or_default(),
            },
            batch: config.batch.clone().unwrap_or_default(),
            batch_when: config.batch_when.clone().unwrap_or_default(),
            rank: config.rank.clone().unwrap_or_default(),
            max_future_ms: i64::try_from(max_future.as_millis()).unwrap_or(i64::MAX),
            fingerprinter: Fingerprinter::new(config.fingerprint, volatile),
        }
    }

    /// Returns the places of the event id.
    pub(crate) fn id_places(&self) -> &[Place] {
        self.event_id.places()
    }

    /// Tells whether a delivery may carry several events.
    pub(crate) fn has_batches(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Iterates over the headers that are read.
    pub(crate) fn headers(&self) -> impl Iterator<Item = HeaderName> {
        let lists = [
            self.event_id.places(),
            &self.event_id_same_as,
            &self.scope,
            &self.event_type,
            &self.entity_type,
            &self.entity_id,
            &self.version,
            &self.occurred_at,
            &self.delivered_at,
            &self.producer,
        ];
        let places = Places(lists.concat());
        let names = places.all().filter_map(|place| match place {
            Place::Header(name) | Place::DecodedHeader(name) => Some(name.clone()),
            _ => None,
        });
        names.collect::<Vec<_>>().into_iter()
    }

    /// Looks at a stored event the way it was looked at when it arrived.
    pub(crate) fn look<T>(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
        read: impl FnOnce(Lookup<'_>) -> T,
    ) -> T {
        let opening = self.decode.open(&Request::post(headers, body));
        let json = opening.json().ok();
        let lineage: Vec<&Json<'_>> = json.iter().collect();
        let view = View::whole(headers, None, &opening, body);
        self.with_inner(view, &lineage, read)
    }

    pub(super) fn with_inner<'v, T>(
        &self,
        view: View<'v>,
        lineage: &'v [&'v Json<'v>],
        read: impl FnOnce(Lookup<'_>) -> T,
    ) -> T {
        let bytes = self.decode.inner_bytes(lineage.last().copied());
        let inner = bytes.as_deref().and_then(|bytes| Json::parse(bytes).ok());
        read(Lookup {
            view: view.with_json(lineage, inner.as_ref()),
            times: &self.times,
        })
    }

    pub(super) fn has_entity(&self) -> bool {
        !self.entity_id.is_empty()
    }

    pub(super) fn rank_of(&self, event_type: &str) -> i64 {
        let place = self.rank.iter().position(|ranked| ranked == event_type);
        place.map_or(0, |place| {
            i64::try_from(place).unwrap_or(i64::MAX).saturating_add(1)
        })
    }
}

impl Mapping {
    pub(super) fn reads_the_body(&self) -> bool {
        let lists = [
            &self.event_type,
            &self.entity_id,
            &self.version,
            &self.occurred_at,
        ];
        lists
            .into_iter()
            .flatten()
            .any(|place| matches!(place, Place::Body(_)))
    }

    pub(super) fn find<'a>(&self, lookup: Lookup<'a>) -> Found<'a> {
        let mut problem = None;
        let mut text = |refs: &[Place], max: usize| {
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
