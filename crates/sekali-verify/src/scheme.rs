//! The declarative language in which a signature scheme is written down.
//!
//! A scheme is data: which parts are signed, with what, where the signature and the time stand. This
//! module reads and validates it; it does not compute or compare signatures. The language is
//! described for its users in `docs/guide/own-provider.md`.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderName;
use serde::{Deserialize, Deserializer};

use crate::batch::Pattern;
use crate::json::Pointer;
use crate::place::Place;

mod algorithm;
mod consistency;
mod declaration;
mod outside;

pub use algorithm::{Algorithm, Coverage, Encoding, KeyForm};
pub(crate) use declaration::{SpotDeclaration, Unfit};
pub use outside::{JwtRules, KeyUrl, OutsideKeys};

use declaration::Declaration;

/// A signature scheme, read from its declaration and known to be consistent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Declaration")]
pub struct Scheme {
    pub(crate) when: Vec<Condition>,
    pub(crate) signed: Arc<[Part]>,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: KeyForm,
    pub(crate) key_prefix: Option<String>,
    pub(crate) key_prefix_needed: bool,
    pub(crate) signature: Signature,
    pub(crate) time: Option<Time>,
    pub(crate) url_ports: bool,
    pub(crate) body_hash: Option<Spot>,
    pub(crate) each: Option<Pattern>,
    pub(crate) jwt: Option<JwtRules>,
    pub(crate) keys: Option<OutsideKeys>,
}

impl Scheme {
    /// Tells whether a time is part of what is proven.
    pub fn signs_time(&self) -> bool {
        self.time.is_some()
    }

    /// Tells what the signature covers.
    pub fn coverage(&self) -> Coverage {
        let covers = |part: &Part| match part {
            Part::Body
            | Part::FormSorted
            | Part::BodySha256Hex
            | Part::BodySha256Base64
            | Part::MinifiedBodySha256Hex => Coverage::Body,
            Part::Json(_)
            | Part::JsonOrEmpty(_)
            | Part::Form(_)
            | Part::Lines(_)
            | Part::BodyCrc32 => Coverage::Fields,
            Part::Url | Part::UrlUnescaped | Part::Path | Part::Query(_) => Coverage::Url,
            _ => Coverage::Nothing,
        };
        let hashes_body = self.body_hash.is_some()
            || self.jwt.as_ref().is_some_and(|jwt| jwt.body_hash.is_some());
        match hashes_body {
            true => Coverage::Body,
            false => self.signed.iter().map(covers).max().unwrap_or_default(),
        }
    }

    /// Tells whether the signature covers every byte of the body.
    pub fn covers_whole_body(&self) -> bool {
        self.coverage() == Coverage::Body
    }

    /// Tells whether a header is part of what is signed.
    pub fn signs_header(&self, name: &HeaderName) -> bool {
        let is_signed = |part: &Part| matches!(part, Part::Header(header) if header == name);
        self.signed.iter().any(is_signed)
    }

    /// Tells whether it applies only where a header is absent.
    pub(crate) fn needs_absent(&self, name: &HeaderName) -> bool {
        let is_absent = |condition: &Condition| {
            condition.test == Test::Absent && condition.spot == Spot::Header(name.clone())
        };
        self.when.iter().any(is_absent)
    }

    /// Tells whether a text is signed, so that what stands in its place is no secret.
    pub fn signs_text(&self) -> bool {
        self.algorithm.signs_text()
    }

    /// Gives the place that the signature, or the token, stands in.
    pub fn signature_spot(&self) -> &Spot {
        &self.signature.spot
    }

    /// Gives what makes a signature of one scheme one of another: text, function, key and place.
    pub fn shape(&self) -> impl PartialEq + '_ {
        let (spot, entries) = (&self.signature.spot, &self.signature.entries);
        (
            &self.signed,
            self.algorithm,
            self.key,
            &self.key_prefix,
            spot,
            &entries.label,
            self.signature.encoding,
        )
    }

    /// Tells whether a value's place is inside of what is signed.
    pub fn signs_place(&self, place: &Place) -> bool {
        let has_url = self
            .signed
            .iter()
            .any(|part| matches!(part, Part::Url | Part::UrlUnescaped));
        let is_field = |pointer: &Pointer| {
            let (needed, optional) = (
                Part::Json(pointer.clone()),
                Part::JsonOrEmpty(pointer.clone()),
            );
            self.signed.contains(&needed) || self.signed.contains(&optional)
        };
        match place {
            Place::Header(name) | Place::DecodedHeader(name) => self.signs_header(name),
            Place::Query(_) => has_url,
            Place::Tail(_) => has_url || self.signed.contains(&Part::Path),
            Place::Form(name) => {
                self.covers_whole_body() || self.signed.contains(&Part::Form(name.clone()))
            }
            Place::Body(path) => {
                let is_line = |pointer: &Pointer| {
                    let name = pointer.tokens().first();
                    self.signed.iter().any(|part| {
                        matches!((part, name), (Part::Lines(keys), Some(name)) if keys.contains(name))
                    })
                };
                self.covers_whole_body()
                    || path
                        .pointer()
                        .is_some_and(|pointer| is_field(pointer) || is_line(pointer))
            }
            _ => self.covers_whole_body(),
        }
    }

    /// Tells whether its keys come from outside of the configuration.
    pub fn has_outside_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Tells whether the key is the sender's public one, so that nobody else can sign.
    pub fn is_asymmetric(&self) -> bool {
        !self.algorithm.is_symmetric()
            && !matches!(&self.jwt, Some(jwt) if jwt.algorithms == ["HS256"])
    }
}

/// One piece of the signed text, or of a handshake's reply.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Stands for a fixed text.
    Literal(#[serde(deserialize_with = "literal")] Bytes),
    /// Stands for the timestamp exactly as it was received.
    Timestamp,
    /// Stands for the raw body.
    Body,
    /// Stands for the method in upper case.
    Method,
    /// Stands for the URL as the sender called it.
    Url,
    /// Stands for the URL with some of its escapes decoded, as HubSpot does.
    UrlUnescaped,
    /// Stands for the URL's path.
    Path,
    /// Stands for the form's parameters, sorted by name, values of one name once.
    FormSorted,
    /// Stands for the secret itself, where the algorithm is a plain hash.
    Key,
    /// Stands for the SHA-256 of the body in hexadecimal digits.
    BodySha256Hex,
    /// Stands for the SHA-256 of the body in base64.
    BodySha256Base64,
    /// Stands for the SHA-256, in hexadecimal digits, of the JSON body without blanks.
    MinifiedBodySha256Hex,
    /// Stands for the CRC-32 of the body as a decimal number.
    BodyCrc32,
    /// Stands for a header's value.
    Header(#[serde(deserialize_with = "header_name")] HeaderName),
    /// Stands for the token in a header, without `Bearer` in front of it.
    Bearer(#[serde(deserialize_with = "header_name")] HeaderName),
    /// Stands for a parameter of the URL.
    Query(String),
    /// Stands for a field of the form.
    Form(String),
    /// Stands for a text or a number in the JSON body, as written.
    Json(Pointer),
    /// Stands for the same, or for nothing where it is missing.
    JsonOrEmpty(Pointer),
    /// Stands for a value that the operator configured.
    Setting(String),
    /// Stands for the lines `key`, `value` of those members of the JSON body that are there.
    Lines(Vec<String>),
    /// Stands, in a reply, for the signature of the first scheme over another piece.
    Mac(Box<Part>),
}

/// Where something stands in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spot {
    /// Is a header.
    Header(HeaderName),
    /// Is every header with this name and a number behind it, counted from 1.
    Numbered(String),
    /// Is a parameter of the URL.
    Query(String),
    /// Is a place in the JSON body.
    Json(Pointer),
    /// Is a field of the form.
    Form(String),
    /// Is a claim of the token.
    Claim(String),
    /// Is a segment of the path behind the source's.
    Tail(usize),
    /// Is the method.
    Method,
    /// Is the media type of the body.
    ContentType,
}

/// How entries stand in one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The characters that separate entries; none where the value is one entry.
    pub separator: String,
    /// What stands in front of each entry that counts.
    pub label: String,
    /// Whether entries without the label count as well.
    pub label_optional: bool,
}

/// Where the signature stands, and how its bytes are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The place in the request.
    pub spot: Spot,
    /// How signatures stand in it.
    pub entries: Entries,
    /// The encoding of the bytes.
    pub encoding: Encoding,
}

/// Where the signed time stands, and what it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// The place in the request.
    pub spot: Spot,
    /// How the time stands in it.
    pub entries: Entries,
    /// The unit of the number in it.
    pub unit: TimeUnit,
}

/// How a timestamp is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeUnit {
    /// Counts seconds since the start of 1970, UTC.
    UnixSeconds,
    /// Counts milliseconds since the start of 1970, UTC.
    UnixMillis,
    /// Is a date and time with an offset, RFC 3339.
    Rfc3339,
}

/// A question about a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "declaration::ConditionDeclaration")]
pub struct Condition {
    pub(crate) spot: Spot,
    pub(crate) test: Test,
}

/// What a condition asks of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Present,
    Absent,
    OneOf(Vec<String>),
    Setting(String),
    InSetting(String),
    Hex(usize, usize),
    NotHex(usize, usize),
}

fn header_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeaderName, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse()
        .map_err(|_| serde::de::Error::custom(format!("`{text}` is no header name")))
}

fn literal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    String::deserialize(deserializer).map(Bytes::from)
}

#[cfg(test)]
mod tests;
