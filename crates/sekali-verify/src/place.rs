//! Places: where a value comes from, as written in a mapping.
//!
//! The language is described for its users in `docs/guide/own-provider.md`; [`crate::View`] reads
//! places out of a delivery.

use std::fmt;

use http::HeaderName;
use serde::{Deserialize, Deserializer, de};

mod path;
mod text;

pub use path::{Path, PathStep};

/// Where one value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A place in the JSON document, or in the element of a batch.
    Body(Path),
    /// A place that many levels above the element of a batch.
    Above(usize, Path),
    /// The name of the member that a path finds.
    Key(Path),
    /// A place in the inner document.
    Inner(Path),
    /// A header.
    Header(HeaderName),
    /// A header, percent-decoded.
    DecodedHeader(HeaderName),
    /// A parameter of the URL.
    Query(String),
    /// A field of the form.
    Form(String),
    /// The text of an XML element; `*` stands for any name.
    Xml(Vec<String>),
    /// A segment of the path behind the source's.
    Tail(usize),
    /// The text itself.
    Literal(String),
    /// The number at a place above the element, plus the element's index.
    Count(usize, Path),
    /// The SHA-256 of the body, or of the element.
    HashBody,
    /// The SHA-256 of what stands at a place.
    Hash(Box<Place>),
    /// Several places and texts joined.
    Join(Vec<Piece>),
}

/// A piece of joined places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A fixed text.
    Text(String),
    /// A place without which there is no value.
    Needed(Place),
    /// A place that may be missing.
    Optional(Place),
}

/// A value's place with its fall-backs: the first that is there and not null counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(pub Vec<Place>);

impl Places {
    /// Iterates over all places, those inside of joins included.
    pub fn all(&self) -> impl Iterator<Item = &Place> {
        fn inner(place: &Place) -> Vec<&Place> {
            let pieces = match place {
                Place::Hash(place) => return inner(place),
                Place::Join(pieces) => pieces,
                place => return vec![place],
            };
            let places = pieces.iter().filter_map(|piece| match piece {
                Piece::Text(_) => None,
                Piece::Needed(place) | Piece::Optional(place) => Some(place),
            });
            places.flat_map(inner).collect()
        }
        self.0.iter().flat_map(inner)
    }
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = OneOrMany::deserialize(deserializer)?.0;
        let places: Result<Vec<Place>, String> = texts.iter().map(|text| text.parse()).collect();
        places.map(Self).map_err(de::Error::custom)
    }
}

/// A text or a list of texts.
pub struct OneOrMany(pub Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = OneOrMany;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany, A::Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    fn found(body: &str, path: &str) -> Option<(String, String)> {
        let json = Json::parse(body.as_bytes()).unwrap();
        let path: Path = path.parse().unwrap();
        let found = path.find(&json).unwrap()?;
        Some((found.0.to_owned(), found.1.to_string()))
    }

    #[test]
    fn braces_are_steps_where_a_path_stands() {
        for text in ["inner:/a/{/b}/c", "key:/a/{/b}", "hash:/a/{/b}"] {
            let place: Place = text.parse().unwrap();
            assert!(!matches!(place, Place::Join(_)), "{text}");
            assert_eq!(place.to_string(), text);
        }
        let joined = "{/a}:{/b}".parse();
        assert!(matches!(joined, Ok(Place::Join(_))));
    }

    #[test]
    fn free_paths_find_the_first_that_leads_somewhere() {
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        let telegram = r#"{"update_id":7,"edited":{"date":5,"chat":{"id":3}}}"#;
        assert_eq!(found(telegram, "/*/chat/id"), pair("id", "3"));
        assert_eq!(
            found(telegram, "/*").map(|found| found.0),
            Some("edited".into())
        );
        let razorpay =
            r#"{"contains":["payment"],"payload":{"order":{"id":1},"payment":{"id":2}}}"#;
        assert_eq!(
            found(razorpay, "/payload/{/contains/0}/id"),
            pair("id", "2")
        );
        assert_eq!(found(razorpay, "/payload/{/nothing}/id"), None);
        assert_eq!(found(razorpay, "/payload/*/name"), None);
    }

    #[test]
    fn a_place_without_steps_can_be_printed() {
        let whole: Path = "".parse().unwrap();
        assert_eq!(Place::Above(2, whole.clone()).to_string(), "../../");
        assert_eq!(Place::Count(1, whole).to_string(), "count:../");
    }

    #[test]
    fn every_form_is_read_and_others_are_refused() {
        for text in [
            "/a",
            "../../a/b",
            "key:/*",
            "inner:/x",
            "header:x-id",
            "decoded-header:ce-id",
            "query:a",
            "form:a.b",
            "xml:/a/*/c",
            "tail:0",
            "literal:{not a place}",
            "count:../../first",
            "hash:body",
            "hash:form:x",
            "{/a}:{header:x}-{/b?}",
            "{/payload/{/contains/0}/id}:x",
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!(place.to_string(), text.to_ascii_lowercase());
        }
        for text in [
            "a",
            "header:a b",
            "tail:x",
            "hash:nonsense",
            "{/a",
            "xml:a",
            "query:",
            "nonsense:x",
        ] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }
}
