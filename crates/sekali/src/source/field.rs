//! Where the values of an effect come from: places in the payload, and what identification found.

use std::str::FromStr;

use sekali_verify::{OneOrMany, Place};
use serde::{Deserialize, Deserializer, de};

/// Where a value comes from: a place in the payload, or `event:field`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRef {
    /// A place in the stored body or its headers.
    Place(Place),
    /// What identification found: `event:id`, `event:type`, `event:entity_id`, `event:version`, `event:occurred_at`, …
    Event(EventField),
}

/// A field of an identified event that an effect can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventField {
    /// The event's id.
    Id,
    /// The event's type.
    Type,
    /// The tenant.
    Scope,
    /// The source's id.
    Source,
    /// The entity's type.
    EntityType,
    /// The entity's id.
    EntityId,
    /// The version.
    Version,
    /// When it happened, as RFC 3339 text in UTC.
    OccurredAt,
    /// When it was received, as RFC 3339 text in UTC.
    ReceivedAt,
}

impl FromStr for FieldRef {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Some(name) = text.strip_prefix("event:") {
            return event_field(name).map(Self::Event);
        }
        let place: Place = text.parse()?;
        match place {
            Place::Query(_) | Place::Tail(_) | Place::Above(..) | Place::Count(..) => Err(format!(
                "{text} is read at admission only; an effect has the stored body and headers, and event:…"
            )),
            place => Ok(Self::Place(place)),
        }
    }
}

fn event_field(name: &str) -> std::result::Result<EventField, String> {
    Ok(match name {
        "id" => EventField::Id,
        "type" => EventField::Type,
        "scope" => EventField::Scope,
        "source" => EventField::Source,
        "entity_type" => EventField::EntityType,
        "entity_id" => EventField::EntityId,
        "version" => EventField::Version,
        "occurred_at" => EventField::OccurredAt,
        "received_at" => EventField::ReceivedAt,
        _ => {
            return Err(format!(
                "event:{name} is unknown; there are id, type, scope, source, entity_type, entity_id, version, \
                 occurred_at and received_at"
            ));
        }
    })
}

/// A value's place with its fall-backs: the first that is there and not null counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRefs(pub Vec<FieldRef>);

impl<'de> Deserialize<'de> for FieldRefs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let texts = OneOrMany::deserialize(deserializer)?.0;
        texts
            .iter()
            .map(|text| text.parse())
            .collect::<std::result::Result<_, _>>()
            .map(Self)
            .map_err(de::Error::custom)
    }
}
