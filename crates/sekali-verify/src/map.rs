//! How a payload is read: the places of everything that identifies an event, as configured.

use serde::{Deserialize, Deserializer, de};

use crate::place::{OneOrMany, Place, Places};
use crate::times::NumberUnit;
use crate::view::{Decode, DocumentField, InnerPlace};

/// How a source's payload is read. What is not set is taken from the preset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Map {
    /// Where the event id is, or `"none"`.
    pub event_id: Option<EventIds>,
    /// Places that must hold the same id where they hold one.
    pub event_id_same_as: Option<Places>,
    /// Where the tenant is.
    pub scope: Option<Places>,
    /// Where the event type is.
    pub event_type: Option<Places>,
    /// Where the entity's type is.
    pub entity_type: Option<Places>,
    /// Where the entity's id is.
    pub entity_id: Option<Places>,
    /// Where the version is.
    pub version: Option<Places>,
    /// Where the time of the event is.
    pub occurred_at: Option<Places>,
    /// Where the time of the delivery is.
    pub delivered_at: Option<Places>,
    /// Where the producer is.
    pub producer: Option<Places>,
    /// Where the address of the content is.
    pub source_url: Option<Places>,
    /// Where the hash of the content is.
    pub content_hash: Option<Places>,
    /// What a version is.
    pub version_is: Option<VersionIs>,
    /// What a number counts that stands for a time.
    pub time_unit: Option<NumberUnit>,
    /// The offset of times that are written without one: `Z`, `+07:00`.
    pub time_offset: Option<TimeOffset>,
    /// The form field that holds the document.
    pub document: Option<DocumentField>,
    /// Where an inner document stands.
    pub inner: Option<InnerPlace>,
}

impl Map {
    /// Takes from another map whatever this one does not set.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let other = other.clone();
        Self {
            event_id: self.event_id.or(other.event_id),
            event_id_same_as: self.event_id_same_as.or(other.event_id_same_as),
            scope: self.scope.or(other.scope),
            event_type: self.event_type.or(other.event_type),
            entity_type: self.entity_type.or(other.entity_type),
            entity_id: self.entity_id.or(other.entity_id),
            version: self.version.or(other.version),
            occurred_at: self.occurred_at.or(other.occurred_at),
            delivered_at: self.delivered_at.or(other.delivered_at),
            producer: self.producer.or(other.producer),
            source_url: self.source_url.or(other.source_url),
            content_hash: self.content_hash.or(other.content_hash),
            version_is: self.version_is.or(other.version_is),
            time_unit: self.time_unit.or(other.time_unit),
            time_offset: self.time_offset.or(other.time_offset),
            document: self.document.or(other.document),
            inner: self.inner.or(other.inner),
        }
    }

    /// Says how documents are found in the body.
    pub fn decode(&self) -> Decode {
        Decode {
            document: self.document.clone(),
            inner: self.inner.clone(),
        }
    }
}

/// Where the event id comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventIds {
    /// Out of the delivery.
    From(Places),
    /// The sender has none: one is minted for every delivery, so that it is at least once.
    #[default]
    Minted,
}

impl EventIds {
    /// Gives the places that are asked.
    pub fn places(&self) -> &[Place] {
        match self {
            Self::From(places) => &places.0,
            Self::Minted => &[],
        }
    }
}

impl<'de> Deserialize<'de> for EventIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = OneOrMany::deserialize(deserializer)?.0;
        if texts == ["none"] {
            return Ok(Self::Minted);
        }
        if texts.is_empty() {
            return Err(de::Error::custom(
                "event_id names no place; write \"none\" if the sender has no ids",
            ));
        }
        let places: Result<Vec<Place>, String> = texts.iter().map(|text| text.parse()).collect();
        places
            .map(|places| Self::From(Places(places)))
            .map_err(de::Error::custom)
    }
}

/// What a version is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionIs {
    /// Is an integer that counts up.
    #[default]
    Integer,
    /// Is a time, which counts nanoseconds.
    Time,
}

/// The offset of times that are written without one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TimeOffset(String);

impl TimeOffset {
    /// Gives the offset as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TimeOffset {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let fits = match text.as_bytes() {
            [b'Z'] => true,
            [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].into_iter().all(is_digit),
            _ => false,
        };
        match fits {
            true => Ok(Self(text)),
            false => Err(format!("`{text}` is no offset; write Z or +07:00")),
        }
    }
}
