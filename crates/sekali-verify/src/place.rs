//! Places: where a value comes from, as written in a mapping.
//!
//! The language is described for its users in `docs/guide/own-provider.md`; [`crate::View`] reads
//! places out of a delivery.

use std::fmt;
use std::str::FromStr;

use http::HeaderName;
use serde::{Deserialize, Deserializer, de};

use crate::json::{Ambiguous, Json, Pointer};

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

/// A JSON pointer whose steps may also be `*` or `{/pointer}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// Has only plain steps.
    Plain(Pointer),
    /// Has other steps.
    Free(Vec<PathStep>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A member's name or an item's index.
    Key(String),
    /// The first member through which the rest leads somewhere.
    Any,
    /// The name that stands at this pointer.
    At(Pointer),
}

impl Path {
    /// Finds the value, and the name of the member that it is.
    pub(crate) fn find<'j, 'a>(
        &self,
        document: &'j Json<'a>,
    ) -> Result<Option<(&'j str, &'j Json<'a>)>, Ambiguous> {
        match self {
            Self::Plain(pointer) => Ok(document.get(pointer)?.map(|found| ("", found))),
            Self::Free(steps) => walk(document, ("", document), steps),
        }
    }

    /// Gives the pointer, where every step is plain.
    pub fn pointer(&self) -> Option<&Pointer> {
        match self {
            Self::Plain(pointer) => Some(pointer),
            Self::Free(_) => None,
        }
    }
}

type Member<'j, 'a> = (&'j str, &'j Json<'a>);

fn walk<'j, 'a>(
    document: &'j Json<'a>,
    at: Member<'j, 'a>,
    steps: &[PathStep],
) -> Result<Option<Member<'j, 'a>>, Ambiguous> {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(Some(at));
    };
    let key = match step {
        PathStep::Key(key) => key.clone(),
        PathStep::At(pointer) => match document.get(pointer)?.and_then(Json::as_str) {
            Some(key) => key.to_owned(),
            None => return Ok(None),
        },
        PathStep::Any => {
            let Json::Object(members) = at.1 else {
                return Ok(None);
            };
            for (name, value) in members {
                let leads = !rest.is_empty() || matches!(value, Json::Object(_));
                let member = (name.as_str().unwrap_or_default(), value);
                if leads && let Some(found) = walk(document, member, rest)? {
                    return Ok(Some(found));
                }
            }
            return Ok(None);
        }
    };
    let escaped = key.replace('~', "~0").replace('/', "~1");
    let Ok(pointer) = Pointer::try_from(format!("/{escaped}")) else {
        return Ok(None);
    };
    let Some(value) = at.1.get(&pointer)? else {
        return Ok(None);
    };
    let name = match at.1 {
        Json::Object(members) => members
            .iter()
            .find_map(|(name, _)| name.as_str().filter(|name| *name == key)),
        _ => None,
    };
    walk(document, (name.unwrap_or_default(), value), rest)
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let has_free = text.split('/').any(|step| step == "*") || text.contains("{/");
        if !has_free {
            let pointer: Result<Pointer, _> = text.parse();
            return pointer
                .map(Self::Plain)
                .map_err(|problem| problem.to_string());
        }
        let mut rest = text
            .strip_prefix('/')
            .ok_or_else(|| format!("`{text}` must start with `/`"))?;
        let mut steps = Vec::new();
        loop {
            if let Some(inner) = rest.strip_prefix('{') {
                let (pointer, after) = inner
                    .split_once('}')
                    .ok_or_else(|| format!("`{text}` lacks a closing brace"))?;
                let pointer: Result<Pointer, _> = pointer.parse();
                steps.push(PathStep::At(
                    pointer.map_err(|problem| problem.to_string())?,
                ));
                match after.strip_prefix('/') {
                    Some(after) => rest = after,
                    None if after.is_empty() => return Ok(Self::Free(steps)),
                    None => return Err(format!("`{text}` has text behind a brace")),
                }
                continue;
            }
            let (step, after) = match rest.split_once('/') {
                Some((step, after)) => (step, Some(after)),
                None => (rest, None),
            };
            steps.push(match step {
                "*" => PathStep::Any,
                key => PathStep::Key(key.replace("~1", "/").replace("~0", "~")),
            });
            match after {
                Some(after) => rest = after,
                None => return Ok(Self::Free(steps)),
            }
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return text.parse().map(Self::Body);
        }
        if text.starts_with("../") {
            let (levels, path) = above(text)?;
            return Ok(Self::Above(levels, path));
        }
        if text.contains('{') && !text.starts_with("literal:") {
            return joined(text);
        }
        let (kind, name) = text.split_once(':').ok_or_else(|| unknown(text))?;
        if name.is_empty() {
            return Err(unknown(text));
        }
        let header = || {
            let parsed: Result<HeaderName, _> = name.parse();
            parsed.map_err(|_| format!("{name} is no header name"))
        };
        Ok(match kind {
            "key" => Self::Key(name.parse()?),
            "inner" => Self::Inner(name.parse()?),
            "header" => Self::Header(header()?),
            "decoded-header" => Self::DecodedHeader(header()?),
            "query" => Self::Query(name.to_owned()),
            "form" => Self::Form(name.to_owned()),
            "xml" => {
                let steps = name.strip_prefix('/').ok_or_else(|| unknown(text))?;
                Self::Xml(steps.split('/').map(str::to_owned).collect())
            }
            "tail" => Self::Tail(name.parse().map_err(|_| unknown(text))?),
            "literal" => Self::Literal(name.to_owned()),
            "count" => {
                let (levels, path) = above(name)?;
                Self::Count(levels, path)
            }
            "hash" if name == "body" => Self::HashBody,
            "hash" => Self::Hash(Box::new(name.parse()?)),
            _ => return Err(unknown(text)),
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Free(steps) = self else {
            return match self {
                Self::Plain(pointer) => pointer.fmt(f),
                Self::Free(_) => Ok(()),
            };
        };
        for step in steps {
            match step {
                PathStep::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1"))?,
                PathStep::Any => f.write_str("/*")?,
                PathStep::At(pointer) => write!(f, "/{{{pointer}}}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = |levels: &usize| "../".repeat(*levels);
        let rest = |path: &Path| path.to_string().trim_start_matches('/').to_owned();
        match self {
            Self::Body(path) => path.fmt(f),
            Self::Above(levels, path) => write!(f, "{}{}", above(levels), rest(path)),
            Self::Key(path) => write!(f, "key:{path}"),
            Self::Inner(path) => write!(f, "inner:{path}"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::DecodedHeader(name) => write!(f, "decoded-header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Form(name) => write!(f, "form:{name}"),
            Self::Xml(steps) => write!(f, "xml:/{}", steps.join("/")),
            Self::Tail(index) => write!(f, "tail:{index}"),
            Self::Literal(text) => write!(f, "literal:{text}"),
            Self::Count(levels, path) => write!(f, "count:{}{}", above(levels), rest(path)),
            Self::HashBody => f.write_str("hash:body"),
            Self::Hash(place) => write!(f, "hash:{place}"),
            Self::Join(pieces) => pieces.iter().try_for_each(|piece| match piece {
                Piece::Text(text) => f.write_str(text),
                Piece::Needed(place) => write!(f, "{{{place}}}"),
                Piece::Optional(place) => write!(f, "{{{place}?}}"),
            }),
        }
    }
}

fn unknown(text: &str) -> String {
    format!(
        "{text} is neither a JSON pointer (/a/b) nor one of header:Name, decoded-header:Name, query:name, form:name, \
         xml:/a/b, tail:0, key:/a, inner:/a, literal:text, count:../a, hash:body and texts with {{places}} in them"
    )
}

fn above(text: &str) -> Result<(usize, Path), String> {
    let (mut levels, mut rest) = (0, text);
    while let Some(after) = rest.strip_prefix("../") {
        levels += 1;
        rest = after;
    }
    Ok((levels, format!("/{rest}").parse()?))
}

fn joined(text: &str) -> Result<Place, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((front, after)) = rest.split_once('{') {
        if !front.is_empty() {
            pieces.push(Piece::Text(front.to_owned()));
        }
        // A place may have braces of its own: `{/payload/{/contains/0}/id}`.
        let end = closing(after).ok_or_else(|| format!("`{text}` lacks a closing brace"))?;
        let place = &after[..end];
        pieces.push(match place.strip_suffix('?') {
            Some(place) => Piece::Optional(place.parse()?),
            None => Piece::Needed(place.parse()?),
        });
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(Place::Join(pieces))
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(index),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
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

    fn found(body: &str, path: &str) -> Option<(String, String)> {
        let json = Json::parse(body.as_bytes()).unwrap();
        let path: Path = path.parse().unwrap();
        let found = path.find(&json).unwrap()?;
        Some((found.0.to_owned(), found.1.to_string()))
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
