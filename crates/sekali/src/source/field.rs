//! Where values come from: places in the body, headers, and what identification found.

use std::fmt;
use std::str::FromStr;

use http::HeaderName;
use sekali_verify::Pointer;
use serde::{Deserialize, Deserializer, de};

/// Where a value comes from: `/json/pointer`, `header:Name` or `event:field`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRef {
    /// A place in the JSON body.
    Body(Pointer),
    /// A header of the delivery.
    Header(HeaderName),
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
        if let Some(name) = text.strip_prefix("header:") {
            let name = name
                .parse()
                .map_err(|_| format!("{name} is no header name"))?;
            return Ok(Self::Header(name));
        }
        if let Some(name) = text.strip_prefix("event:") {
            return event_field(name).map(Self::Event);
        }
        if text.starts_with('/') {
            return Pointer::from_str(text)
                .map(Self::Body)
                .map_err(|problem| problem.to_string());
        }
        Err(format!(
            "{text} is neither a JSON pointer (/a/b) nor header:Name nor event:field"
        ))
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

/// A text or a list of texts.
struct OneOrMany(Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = OneOrMany;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> std::result::Result<OneOrMany, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMany(texts))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Where the event id comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventIds {
    /// Out of the delivery.
    From(FieldRefs),
    /// The sender has none: one is minted for every delivery, so that it is at least once.
    #[default]
    Minted,
}

impl<'de> Deserialize<'de> for EventIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let texts = OneOrMany::deserialize(deserializer)?.0;
        if texts == ["none"] {
            return Ok(Self::Minted);
        }
        if texts.is_empty() {
            return Err(de::Error::custom(
                "event_id names no place; write \"none\" if the sender has no ids",
            ));
        }
        let refs: std::result::Result<Vec<FieldRef>, String> =
            texts.iter().map(|text| text.parse()).collect();
        refs.map(|refs| Self::From(FieldRefs(refs)))
            .map_err(de::Error::custom)
    }
}
