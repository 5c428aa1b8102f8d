//! The declarative language in which a signature scheme is written down.
//!
//! A scheme is data: which parts are signed, with what, where the signature and the time stand.
//! This module reads and validates it; it does not compute or compare signatures.

use std::sync::Arc;

use http::HeaderName;
use serde::{Deserialize, Deserializer};
use thiserror::Error;

/// A signature scheme, read from its declaration and known to be consistent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Declaration")]
pub struct Scheme {
    // Shared, because every `Verified` keeps it to tell later what was signed.
    pub(crate) signed: Arc<[Part]>,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: KeyForm,
    pub(crate) signature: Signature,
    pub(crate) time: Option<Time>,
}

impl Scheme {
    /// Lists the headers that the scheme reads, the signature's first.
    pub fn uses_header(&self) -> impl Iterator<Item = &HeaderName> {
        let time = self.time.as_ref().map(|time| &time.header);
        std::iter::once(self.signature.place.header()).chain(time)
    }

    /// Tells whether a time is part of what is signed.
    pub fn signs_time(&self) -> bool {
        self.signed.contains(&Part::Timestamp)
    }

    /// Tells whether the signature covers every byte of the body.
    pub fn covers_whole_body(&self) -> bool {
        self.signed.contains(&Part::Body)
    }
}

/// One piece of the signed text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Stands for a fixed text.
    Literal(String),
    /// Stands for the timestamp exactly as it was received.
    Timestamp,
    /// Stands for the raw body.
    Body,
}

/// The function that makes a signature out of a key and a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Algorithm {
    /// Is HMAC with SHA-256.
    HmacSha256,
}

/// The way from the configured secret to the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyForm {
    /// Takes the secret's bytes as they are, with any prefix it may have.
    Text,
}

/// Where the signature stands, and how its bytes are written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The place in the request.
    pub place: Place,
    /// The encoding of the bytes.
    pub encoding: Encoding,
}

/// The place of the signature in the request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Place {
    /// Is a header whose whole value is the signature.
    Header(#[serde(deserialize_with = "header_name")] HeaderName),
    /// Is a header with a list of labelled entries, of which those with this label count.
    Labelled {
        /// The header's name.
        #[serde(deserialize_with = "header_name")]
        header: HeaderName,
        /// The text in front of each signature, with its `=`; case matters.
        label: String,
    },
}

impl Place {
    /// Names the header that carries the signature.
    pub fn header(&self) -> &HeaderName {
        match self {
            Self::Header(header) | Self::Labelled { header, .. } => header,
        }
    }

    /// Gives the text that stands in front of each signature.
    pub fn label(&self) -> &str {
        match self {
            Self::Header(_) => "",
            Self::Labelled { label, .. } => label,
        }
    }
}

/// The encoding of a signature's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Encoding {
    /// Is two hexadecimal digits a byte; either case is accepted, lower case is written.
    Hex,
}

/// Where the signed time stands, and what it counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// The header's name.
    #[serde(deserialize_with = "header_name")]
    pub header: HeaderName,
    /// The unit of the number in it.
    pub unit: TimeUnit,
}

/// What a timestamp counts since the start of 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeUnit {
    /// Counts seconds.
    UnixSeconds,
    /// Counts milliseconds.
    UnixMillis,
}

/// A scheme as it is written, before its parts were held against each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    signed: Vec<Part>,
    algorithm: Algorithm,
    key: KeyForm,
    signature: Signature,
    time: Option<Time>,
}

#[derive(Debug, Error)]
enum SchemeError {
    #[error("`signed` must name the body or the timestamp: literals alone prove nothing")]
    NothingSigned,
    #[error("`time` is set, but `signed` lacks \"timestamp\": an unsigned time proves nothing")]
    TimeNotSigned,
    #[error("`signed` contains \"timestamp\", but `time` does not say where it stands")]
    TimeNotPlaced,
    #[error("the signature and the time cannot stand in the same header")]
    SameHeader,
    #[error("`label` must be visible ASCII without blanks and commas, and not empty")]
    Label,
}

impl TryFrom<Declaration> for Scheme {
    type Error = SchemeError;

    fn try_from(declared: Declaration) -> Result<Self, SchemeError> {
        let Declaration {
            signed,
            algorithm,
            key,
            signature,
            time,
        } = declared;
        if signed.iter().all(|part| matches!(part, Part::Literal(_))) {
            return Err(SchemeError::NothingSigned);
        }
        match (&time, signed.contains(&Part::Timestamp)) {
            (Some(_), false) => return Err(SchemeError::TimeNotSigned),
            (None, true) => return Err(SchemeError::TimeNotPlaced),
            _ => {}
        }
        if time
            .as_ref()
            .is_some_and(|time| time.header == *signature.place.header())
        {
            return Err(SchemeError::SameHeader);
        }
        if let Place::Labelled { label, .. } = &signature.place
            && !is_label(label)
        {
            return Err(SchemeError::Label);
        }
        Ok(Self {
            signed: signed.into(),
            algorithm,
            key,
            signature,
            time,
        })
    }
}

/// Commas and blanks separate entries, so a label with one of them could never be found.
fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b',')
}

fn header_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeaderName, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse()
        .map_err(|_| serde::de::Error::custom(format!("`{text}` is no header name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY_ONLY: &str = "signed = [\"body\"]\nalgorithm = \"hmac_sha256\"\nkey = \"text\"\n\
        signature = { place = { header = \"X-Sig\" }, encoding = \"hex\" }\n";

    fn refusal(text: &str) -> String {
        toml::from_str::<Scheme>(text).unwrap_err().to_string()
    }

    #[test]
    fn a_consistent_declaration_is_read() {
        let scheme: Scheme = toml::from_str(BODY_ONLY).unwrap();
        assert!(scheme.covers_whole_body());
        assert!(!scheme.signs_time());
        assert_eq!(
            scheme
                .uses_header()
                .map(HeaderName::as_str)
                .collect::<Vec<_>>(),
            ["x-sig"]
        );
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert!(refusal(&format!("{BODY_ONLY}colour = \"red\"")).contains("colour"));
        let text = BODY_ONLY.replace("encoding", "colour = 1, encoding");
        assert!(refusal(&text).contains("colour"));
    }

    #[test]
    fn contradictions_are_refused() {
        let time = "time = { header = \"X-Time\", unit = \"unix_seconds\" }";
        assert!(refusal(&format!("{BODY_ONLY}{time}")).contains("unsigned time"));
        let timed = BODY_ONLY.replace("\"body\"", "\"timestamp\", \"body\"");
        assert!(refusal(&timed).contains("where it stands"));
        let same = format!("{timed}{}", time.replace("X-Time", "x-SIG"));
        assert!(refusal(&same).contains("same header"));
        assert!(toml::from_str::<Scheme>(&format!("{timed}{time}")).is_ok());
    }

    #[test]
    fn texts_that_prove_nothing_are_refused() {
        assert!(refusal(&BODY_ONLY.replace("\"body\"", "")).contains("prove nothing"));
        let literal = BODY_ONLY.replace("\"body\"", "{ literal = \"x\" }");
        assert!(refusal(&literal).contains("prove nothing"));
    }

    #[test]
    fn labels_and_header_names_are_checked() {
        let labelled = |label: &str| {
            let place = format!("{{ labelled = {{ header = \"X-Sig\", label = \"{label}\" }} }}");
            BODY_ONLY.replace("{ header = \"X-Sig\" }", &place)
        };
        assert!(toml::from_str::<Scheme>(&labelled("sha256=")).is_ok());
        for label in ["", "a b", "a,b", "é="] {
            assert!(refusal(&labelled(label)).contains("`label`"), "{label:?}");
        }
        assert!(refusal(&BODY_ONLY.replace("X-Sig", "X Sig")).contains("no header name"));
    }
}
