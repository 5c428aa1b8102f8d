//! Single values out of a delivery: text, versions, times and the headers that are kept.

use http::HeaderMap;
use sekali_verify::{NumberUnit, Piece, Place, Scalar, Unreadable, VersionIs, View, parse_any};
use sha2::{Digest as _, Sha256};

use crate::limits::MAX_KEY_BYTES;
use crate::reason::Reason;

/// One event of a delivery, and how its times are written.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    /// The event.
    pub(crate) view: View<'a>,
    /// How its times are written.
    pub(crate) times: &'a Times,
}

/// How a source's times are written, and what its versions are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    pub(crate) unit: NumberUnit,
    pub(crate) offset: Option<String>,
    pub(crate) version_is: VersionIs,
}

impl Times {
    fn read(&self, scalar: &Scalar<'_>) -> Option<i64> {
        parse_any(scalar.as_text(), self.unit, self.offset.as_deref())
    }
}

impl<'a> Lookup<'a> {
    /// Returns the first value that is there and not null.
    pub(crate) fn scalar(&self, places: &[Place]) -> Result<Option<Scalar<'a>>, Reason> {
        for place in places {
            if let Some(scalar) = self.scalar_at(place)? {
                return Ok(Some(scalar));
            }
        }
        Ok(None)
    }

    /// Returns the value at one place; anything but a text or a number is no usable value.
    pub(crate) fn scalar_at(&self, place: &Place) -> Result<Option<Scalar<'a>>, Reason> {
        self.view.scalar(place).map_err(|problem| match problem {
            Unreadable::Repeated => Reason::DuplicateKey,
            Unreadable::NoScalar => Reason::FieldInvalid,
        })
    }

    /// Returns the event id: text or an integer, 1 to 255 bytes, without control characters.
    pub(crate) fn id(&self, places: &[Place]) -> Result<Option<String>, Reason> {
        for place in places {
            if let Some(scalar) = self.scalar_at(place).map_err(|_| Reason::EventIdInvalid)? {
                return match (usable_id(&scalar), place) {
                    (Err(Reason::EventIdTooLong), Place::Join(pieces)) => {
                        self.joined_id(pieces).map(Some)
                    }
                    (id, _) => id.map(Some),
                };
            }
        }
        Ok(None)
    }

    /// Makes an id of fixed length out of joined parts that are too long, without mixing up where one ends.
    fn joined_id(&self, pieces: &[Piece]) -> Result<String, Reason> {
        let parts = self.view.join(pieces).ok().flatten();
        let mut digest = Sha256::new();
        for part in parts.ok_or(Reason::EventIdInvalid)? {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Ok(format!("sha256:{}", hex::encode(digest.finalize())))
    }

    /// Returns a text or number for a column of at most `max` bytes; blank counts as missing.
    pub(crate) fn text(&self, places: &[Place], max: usize) -> Result<Option<String>, Reason> {
        let Some(scalar) = self.scalar(places)? else {
            return Ok(None);
        };
        let text = scalar.as_text();
        if text.trim().is_empty() {
            return Ok(None);
        }
        if text.contains(char::is_control) {
            return Err(Reason::FieldInvalid);
        }
        if text.len() > max {
            return Err(Reason::FieldTooLong);
        }
        Ok(Some(text.to_owned()))
    }

    /// Returns a version: an integer from 0 to 2^63 − 1, as a number or as decimal text, or a time.
    pub(crate) fn version(&self, places: &[Place]) -> Result<Option<i64>, Reason> {
        let scalar = self.scalar(places).map_err(|reason| match reason {
            Reason::FieldInvalid => Reason::VersionInvalid,
            other => other,
        })?;
        let Some(scalar) = scalar else {
            return Ok(None);
        };
        let text = scalar.as_text();
        let version = match self.times.version_is {
            VersionIs::Time => self.times.read(&scalar).filter(|at| *at >= 0),
            VersionIs::Integer => {
                let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|_| is_decimal)
            }
        };
        version.map(Some).ok_or(Reason::VersionInvalid)
    }

    /// Returns a time in nanoseconds UTC.
    pub(crate) fn time(&self, places: &[Place]) -> Result<Option<i64>, Reason> {
        let scalar = self.scalar(places).map_err(|reason| match reason {
            Reason::FieldInvalid => Reason::OccurredAtInvalid,
            other => other,
        })?;
        match scalar {
            None => Ok(None),
            Some(scalar) => {
                let at = self.times.read(&scalar);
                at.map(Some).ok_or(Reason::OccurredAtInvalid)
            }
        }
    }
}

fn usable_id(scalar: &Scalar<'_>) -> Result<String, Reason> {
    let text = scalar.as_text();
    let is_integer = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    if matches!(scalar, Scalar::Number(_)) && !is_integer {
        return Err(Reason::EventIdInvalid);
    }
    if text.trim().is_empty() {
        return Err(Reason::EventIdMissing);
    }
    if text.len() > MAX_KEY_BYTES {
        return Err(Reason::EventIdTooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(Reason::EventIdInvalid);
    }
    Ok(text.to_owned())
}

/// Makes ids for senders that have none.
pub(crate) struct Ids;

impl Ids {
    /// Mints an id that no other delivery has.
    pub(crate) fn mint() -> String {
        format!(
            "minted_{:016x}{:016x}",
            fastrand::u64(..),
            fastrand::u64(..)
        )
    }
}

/// Returns the W3C trace context, where it has the shape of version 00.
pub(super) fn traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let has_shape = text.len() == 55
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    has_shape.then(|| text.to_owned())
}
