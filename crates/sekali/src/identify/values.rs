//! Single values out of a delivery: text, versions, times and the headers that are kept.

use std::fmt::Write as _;

use http::HeaderMap;
use sekali_verify::Json;

use crate::limits::MAX_KEY_BYTES;
use crate::reason::Reason;
use crate::source::{FieldRef, FieldRefs};

/// Where values are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    /// The body, where it is JSON.
    pub(crate) json: Option<&'a Json<'a>>,
    /// The headers.
    pub(crate) headers: &'a HeaderMap,
}

/// A text or a number, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scalar<'a> {
    Text(&'a str),
    Number(&'a str),
}

impl<'a> Scalar<'a> {
    pub(crate) fn as_text(&self) -> &'a str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
        }
    }

    /// Takes the value as an event id: text or an integer, 1 to 255 bytes, without control characters.
    pub(crate) fn into_id(self) -> Result<String, Reason> {
        let text = match self {
            Self::Text(text) => text,
            Self::Number(text)
                if text
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'-') =>
            {
                text
            }
            Self::Number(_) => return Err(Reason::EventIdInvalid),
        };
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
}

impl<'a> Lookup<'a> {
    /// Returns the first value that is there and not null.
    pub(crate) fn scalar(&self, refs: &FieldRefs) -> Result<Option<Scalar<'a>>, Reason> {
        for place in &refs.0 {
            if let Some(scalar) = self.scalar_at(place)? {
                return Ok(Some(scalar));
            }
        }
        Ok(None)
    }

    /// Returns the value at one place; anything but a text or a number is no usable value.
    pub(crate) fn scalar_at(&self, place: &FieldRef) -> Result<Option<Scalar<'a>>, Reason> {
        match place {
            FieldRef::Body(pointer) => {
                let Some(json) = self.json else {
                    return Ok(None);
                };
                match json.get(pointer).map_err(|_| Reason::DuplicateKey)? {
                    None | Some(Json::Null) => Ok(None),
                    Some(Json::Number(number)) => Ok(Some(Scalar::Number(number))),
                    Some(value) => value
                        .as_str()
                        .map(Scalar::Text)
                        .map(Some)
                        .ok_or(Reason::FieldInvalid),
                }
            }
            FieldRef::Header(name) => {
                let mut values = self.headers.get_all(name).iter();
                let Some(value) = values.next() else {
                    return Ok(None);
                };
                // Two values under one name could be read differently by somebody on the way.
                if values.next().is_some() {
                    return Err(Reason::FieldInvalid);
                }
                std::str::from_utf8(value.as_bytes())
                    .map(|text| Some(Scalar::Text(text)))
                    .map_err(|_| Reason::FieldInvalid)
            }
            FieldRef::Event(_) => Ok(None),
        }
    }

    /// Returns a text or number for a column of at most `max` bytes; blank counts as missing.
    pub(crate) fn text(&self, refs: &FieldRefs, max: usize) -> Result<Option<String>, Reason> {
        let Some(scalar) = self.scalar(refs)? else {
            return Ok(None);
        };
        let text = scalar.as_text();
        if text.trim().is_empty() {
            return Ok(None);
        }
        if text.contains('\0') {
            return Err(Reason::FieldInvalid);
        }
        if text.len() > max {
            return Err(Reason::FieldTooLong);
        }
        Ok(Some(text.to_owned()))
    }

    /// Returns a version: an integer from 0 to 2^63 − 1, as a number or as decimal text.
    pub(crate) fn version(&self, refs: &FieldRefs) -> Result<Option<i64>, Reason> {
        let scalar = self.scalar(refs).map_err(|reason| match reason {
            Reason::FieldInvalid => Reason::VersionInvalid,
            other => other,
        })?;
        let Some(scalar) = scalar else {
            return Ok(None);
        };
        let text = scalar.as_text();
        let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(version) if is_decimal => Ok(Some(version)),
            _ => Err(Reason::VersionInvalid),
        }
    }

    /// Returns a time in nanoseconds UTC.
    pub(crate) fn time(&self, refs: &FieldRefs) -> Result<Option<i64>, Reason> {
        let scalar = self.scalar(refs).map_err(|reason| match reason {
            Reason::FieldInvalid => Reason::OccurredAtInvalid,
            other => other,
        })?;
        match scalar {
            None => Ok(None),
            Some(Scalar::Text(text)) => parse_time(text).map(Some).ok_or(Reason::OccurredAtInvalid),
            Some(Scalar::Number(_)) => Err(Reason::OccurredAtInvalid),
        }
    }
}

/// Reads an RFC 3339 time with an offset into nanoseconds UTC, from the year 1678 to 2261.
///
/// `T` and `Z` may be lower case and a blank may stand for the `T`, as RFC 3339 §5.6 allows; fraction digits after the
/// ninth must be 0. Without an offset there is no instant, so that such text is refused.
pub fn parse_time(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let has_shape = bytes.len() >= 20
        && bytes[..19]
            .iter()
            .zip(b"dddd-dd-ddTdd:dd:dd")
            .all(|(byte, form)| match form {
                b'd' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b't' | b' '),
                other => byte == other,
            });
    if !has_shape {
        return None;
    }
    let (fraction, offset) = split_fraction(&text[19..])?;
    let offset = match offset {
        "Z" | "z" => "Z",
        offset if is_offset(offset.as_bytes()) => offset,
        _ => return None,
    };
    let mut normal = String::with_capacity(40);
    let _ = write!(
        normal,
        "{}T{}{fraction}{offset}",
        &text[..10],
        &text[11..19]
    );
    let timestamp: jiff::Timestamp = normal.parse().ok()?;
    i64::try_from(timestamp.as_nanosecond()).ok()
}

/// Splits `.123Z` into `.123` and `Z`, cutting zeros after the ninth digit.
fn split_fraction(rest: &str) -> Option<(&str, &str)> {
    let Some(digits) = rest.strip_prefix('.') else {
        return Some(("", rest));
    };
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    if len == 0
        || digits.as_bytes()[..len]
            .iter()
            .skip(9)
            .any(|digit| *digit != b'0')
    {
        return None;
    }
    Some((&rest[..=len.min(9)], &digits[len..]))
}

fn is_offset(bytes: &[u8]) -> bool {
    matches!(bytes, [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_instants_whatever_their_spelling() {
        let at = |text| parse_time(text).unwrap_or_else(|| panic!("{text} was refused"));
        assert_eq!(at("1970-01-01T00:00:01Z"), 1_000_000_000);
        assert_eq!(at("2026-01-01T00:00:00Z"), at("2026-01-01t00:00:00z"));
        assert_eq!(at("2026-01-01T00:00:00Z"), at("2026-01-01 00:00:00+00:00"));
        assert_eq!(at("2026-01-01T00:00:00.10Z"), at("2026-01-01T00:00:00.1Z"));
        assert_eq!(
            at("2026-01-01T00:00:00.123456789Z") % 1_000_000_000,
            123_456_789
        );
        assert_eq!(
            at("2026-01-01T00:00:00.1234567890Z"),
            at("2026-01-01T00:00:00.123456789Z")
        );
        assert!(at("2026-01-01T00:30:00+03:00") < at("2026-01-01T00:00:00Z"));
        assert!(at("2026-01-01T00:00:00Z") < at("2026-01-01T00:00:00.1Z"));
    }

    #[test]
    fn text_without_one_instant_is_refused() {
        for text in [
            "2026-01-01T00:00:00",
            "2026-01-01",
            "",
            "1767225600",
            "2026-01-01T00:00:00.Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00+0300",
            "2026-01-01T00:00:00.1234567891Z",
            "1500-01-01T00:00:00Z",
            "9999-01-01T00:00:00Z",
            "2026-01-01T00:00:00[UTC]",
            "2026-01-01T00:00:00Z[UTC]",
            "20260101T000000Z",
            "2026-01-01T24:00:00Z",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
