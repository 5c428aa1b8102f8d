//! The data of the engine: what an event is, before and after it is stored. No I/O.

use std::sync::Arc;

use bytes::Bytes;

use crate::order::Position;
use crate::reason::{Outcome, Reason, Status};

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// The thing that events are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityKey {
    /// The source's stable id.
    pub source: Arc<str>,
    /// The tenant inside the source, `""` by default.
    pub scope: String,
    /// The kind of thing.
    pub entity_type: String,
    /// Its id.
    pub entity_id: String,
}

/// What an event says about where its content comes from; kept for the audit trail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The address of the content.
    pub source_url: Option<String>,
    /// The sender's hash of the content.
    pub content_hash: Option<String>,
    /// Who produced the event.
    pub producer: Option<String>,
    /// When the sender says it delivered the event, as written.
    pub delivered_at: Option<String>,
}

/// Tells whether two deliveries of one event id carry the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Which list of volatile paths it was made with.
    pub revision: [u8; 4],
    /// The digest of the canonical content.
    pub digest: Hash,
}

impl Fingerprint {
    /// Returns the form in which it is stored: revision, then digest.
    pub fn to_bytes(self) -> [u8; 36] {
        let mut bytes = [0; 36];
        bytes[..4].copy_from_slice(&self.revision);
        bytes[4..].copy_from_slice(&self.digest);
        bytes
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (revision, digest) = bytes.split_at_checked(4)?;
        Some(Self {
            revision: revision.try_into().ok()?,
            digest: digest.try_into().ok()?,
        })
    }
}

/// Where an event goes when it is first stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A worker may take it at once.
    Due,
    /// A worker may take it from this time on, in milliseconds UTC.
    HeldUntil(i64),
    /// It is stored, and nothing is done with it: it cannot be used.
    Settled(Status, Reason),
}

/// A verified event that is not stored yet.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The tenant inside the source.
    pub scope: String,
    /// The sender's id of the event.
    pub event_id: String,
    /// What kind of event it is.
    pub event_type: String,
    /// The kind of entity, `""` where the source maps none.
    pub entity_type: String,
    /// The entity's id, `""` where the source maps none.
    pub entity_id: String,
    /// Where it stands in its entity's order.
    pub position: Position,
    /// Where its content comes from.
    pub provenance: Provenance,
    /// SHA-256 of the raw body.
    pub payload_hash: Hash,
    /// The fingerprint of its content.
    pub fingerprint: Fingerprint,
    /// SHA-256 over the signed bytes, where the replay guard is on.
    pub replay_key: Option<Hash>,
    /// Whether a signature was checked; `None` on an unsigned source.
    pub signature_valid: Option<bool>,
    /// Allowed headers as a JSON object.
    pub headers: String,
    /// The raw body.
    pub body: Bytes,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
    /// What happens to it first.
    pub entry: Entry,
}

/// One verified delivery on its way into the inbox.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The source it arrived at.
    pub source: Arc<crate::source::Source>,
    /// The event it carries.
    pub event: NewEvent,
    /// When it arrived, in milliseconds UTC.
    pub received_at: i64,
    /// When it arrived, for its duration.
    pub started: std::time::Instant,
    /// Where it came from.
    pub remote_address: Option<String>,
    /// Set where the signed time is outside of the window: then only a known event with equal content is let through.
    pub only_if_known: Option<Reason>,
}

impl Delivery {
    /// Returns the entity that its event is about, where it has one.
    pub(crate) fn entity(&self) -> Option<EntityKey> {
        let event = &self.event;
        (!event.entity_id.is_empty()).then(|| EntityKey {
            source: self.source.id.clone(),
            scope: event.scope.clone(),
            entity_type: event.entity_type.clone(),
            entity_id: event.entity_id.clone(),
        })
    }
}

/// What the inbox did with one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// What became of the delivery.
    pub outcome: Outcome,
    /// Why, where the outcome does not say it all.
    pub reason: Option<Reason>,
    /// The event's number in the inbox.
    pub seq: Option<i64>,
}

/// A delivery that was refused, for its audit row.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The source it was meant for.
    pub source: Arc<str>,
    /// When it arrived, in milliseconds UTC.
    pub received_at: i64,
    /// What it was refused as.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// The answer's status code.
    pub http_status: u16,
    /// SHA-256 of its body, where it was read to the end.
    pub payload_hash: Option<Hash>,
    /// Whether its signature was right; `None` where that was not found out.
    pub signature_valid: Option<bool>,
    /// Where it came from.
    pub remote_address: Option<String>,
    /// How long it took, in microseconds.
    pub duration_us: i64,
}
