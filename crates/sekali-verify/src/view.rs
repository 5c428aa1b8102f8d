//! Reads values out of a verified delivery: its JSON, form or XML, its headers and its URL.
//!
//! A [`Decode`] says how the document is found in the body; a [`View`] is one event of the delivery, the whole of
//! it or an element. Values stay as they are written: nothing is converted here.

use std::borrow::Cow;

use base64::Engine as _;
use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::batch::Element;
use crate::json::{Ambiguous, Json, JsonError};
use crate::place::{Path, Piece, Place};
use crate::request::{Pairs, Request, only};

mod xml;

/// How the documents are found in the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decode {
    /// The form field that holds the document.
    pub document: Option<DocumentField>,
    /// Where an inner document stands.
    pub inner: Option<InnerPlace>,
}

/// A form field that holds the document.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentField {
    /// The field's name.
    pub form: String,
    /// Whether it is base64.
    #[serde(default)]
    pub base64: bool,
    /// Whether it is XML; JSON otherwise.
    #[serde(default)]
    pub xml: bool,
}

/// A text in the document that is a document itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InnerPlace {
    /// Where the text stands.
    pub json: crate::json::Pointer,
    /// Whether it is base64.
    #[serde(default)]
    pub base64: bool,
}

/// The bytes of a delivery, decoded as far as its source says.
pub struct Opening<'a> {
    form: Pairs<'a>,
    document: Cow<'a, [u8]>,
    xml: Option<String>,
}

impl Decode {
    /// Opens a body: a form is split, and the document in it decoded.
    pub fn open<'a>(&self, request: &Request<'a>) -> Opening<'a> {
        let form: Pairs<'a> = match request.is_form() {
            true => form_urlencoded::parse(request.body).collect(),
            false => Vec::new(),
        };
        let field = self.document.as_ref().and_then(|field| {
            let text = only(&form, &field.form).ok()??;
            let bytes = match field.base64 {
                true => decode_lines(text)?,
                false => text.as_bytes().to_vec(),
            };
            Some((field.xml, bytes))
        });
        let (document, xml) = match field {
            Some((true, bytes)) => (Cow::Borrowed(&[][..]), String::from_utf8(bytes).ok()),
            Some((false, bytes)) => (Cow::Owned(bytes), None),
            None => (Cow::Borrowed(&request.body[..]), None),
        };
        Opening {
            form,
            document,
            xml,
        }
    }

    /// Gives the bytes of the inner document of an event.
    pub fn inner_bytes(&self, event: Option<&Json<'_>>) -> Option<Vec<u8>> {
        let place = self.inner.as_ref()?;
        let text = event?.get(&place.json).ok()??.as_str()?;
        match place.base64 {
            true => base64::prelude::BASE64_STANDARD.decode(text).ok(),
            false => Some(text.as_bytes().to_vec()),
        }
    }
}

/// Base64 in a form may be broken into lines.
fn decode_lines(text: &str) -> Option<Vec<u8>> {
    let joined: String = text
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .collect();
    base64::prelude::BASE64_STANDARD.decode(joined).ok()
}

impl Opening<'_> {
    /// Reads the document.
    pub fn json(&self) -> Result<Json<'_>, JsonError> {
        Json::parse(&self.document)
    }

    /// Tells whether the body is a form or XML, so that it need not be JSON.
    pub fn is_no_json_by_right(&self) -> bool {
        !self.form.is_empty() || self.xml.is_some()
    }

    /// Gives the document's bytes.
    pub fn document(&self) -> &[u8] {
        &self.document
    }
}

/// One event of a delivery, as its mapping sees it.
#[derive(Clone, Copy)]
pub struct View<'v> {
    headers: &'v HeaderMap,
    url: Option<Request<'v>>,
    body: &'v [u8],
    opening: &'v Opening<'v>,
    lineage: &'v [&'v Json<'v>],
    index: usize,
    inner: Option<&'v Json<'v>>,
}

/// A text or a number, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// Is a text.
    Text(Cow<'a, str>),
    /// Is a JSON number.
    Number(&'a str),
}

impl Scalar<'_> {
    /// Gives the text, or the digits.
    pub fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number,
        }
    }
}

/// The reason why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Says that a name occurs twice on the way.
    Repeated,
    /// Says that it is neither a text nor a number.
    NoScalar,
}

impl From<Ambiguous> for Unreadable {
    fn from(_: Ambiguous) -> Self {
        Self::Repeated
    }
}

impl<'v> View<'v> {
    /// Looks at a whole delivery; without a URL where it was stored without one.
    pub fn whole(
        headers: &'v HeaderMap,
        url: Option<Request<'v>>,
        opening: &'v Opening<'v>,
        body: &'v [u8],
    ) -> Self {
        Self {
            headers,
            url,
            body,
            opening,
            lineage: &[],
            index: 0,
            inner: None,
        }
    }

    /// Looks at the JSON document, or at an element of it: `lineage` leads from the document to it.
    pub fn with_json(self, lineage: &'v [&'v Json<'v>], inner: Option<&'v Json<'v>>) -> Self {
        Self {
            lineage,
            inner,
            ..self
        }
    }

    /// Looks at an element's bytes.
    pub fn of_element(self, element: &Element, body: &'v [u8]) -> Self {
        Self {
            body,
            index: element.index(),
            ..self
        }
    }

    /// Gives the bytes of the event.
    pub fn body(&self) -> &'v [u8] {
        self.body
    }

    /// Gives the event's JSON.
    pub fn json(&self) -> Option<&'v Json<'v>> {
        self.lineage.last().copied()
    }

    /// Gives the value at a place in the JSON, of whatever kind it is.
    pub fn json_at(&self, place: &Place) -> Result<Option<&'v Json<'v>>, Ambiguous> {
        let (document, path) = match place {
            Place::Body(path) => (self.json(), path),
            Place::Above(levels, path) => (self.above(*levels), path),
            Place::Inner(path) => (self.inner, path),
            _ => return Ok(None),
        };
        let Some(document) = document else {
            return Ok(None);
        };
        Ok(path.find(document)?.map(|(_, value)| value))
    }

    fn above(&self, levels: usize) -> Option<&'v Json<'v>> {
        let last = self.lineage.len().checked_sub(1 + levels)?;
        self.lineage.get(last).copied()
    }

    /// Gives the text or number at a place; nothing where there is nothing, or null.
    pub fn scalar(&self, place: &Place) -> Result<Option<Scalar<'v>>, Unreadable> {
        let text = |text: Option<Cow<'v, str>>| Ok(text.map(Scalar::Text));
        match place {
            Place::Body(_) | Place::Above(..) | Place::Inner(_) => match self.json_at(place)? {
                None | Some(Json::Null) => Ok(None),
                Some(Json::Number(number)) => Ok(Some(Scalar::Number(number))),
                Some(value) => match value.as_str() {
                    Some(value) => text(Some(value.into())),
                    None => Err(Unreadable::NoScalar),
                },
            },
            Place::Key(path) => self
                .key(path)
                .map(|key| key.map(|key| Scalar::Text(key.into()))),
            Place::Header(name) => text(self.header(name)?.map(Cow::Borrowed)),
            Place::DecodedHeader(name) => {
                let decode =
                    |value: &'v str| percent_encoding::percent_decode_str(value).decode_utf8();
                let decoded = self.header(name)?.map(decode).transpose();
                text(decoded.map_err(|_| Unreadable::NoScalar)?)
            }
            Place::Form(name) => {
                let value = only(&self.opening.form, name).map_err(|_| Unreadable::Repeated)?;
                text(value.map(Cow::Borrowed))
            }
            Place::Query(name) => text(self.query(name)?),
            Place::Tail(index) => text(self.url.and_then(|request| request.tail_segment(*index))),
            Place::Xml(steps) => {
                let found = self
                    .opening
                    .xml
                    .as_deref()
                    .and_then(|xml| xml::find(xml, steps));
                text(found.map(Cow::Owned))
            }
            Place::Literal(literal) => text(Some(Cow::Owned(literal.clone()))),
            Place::Count(levels, path) => self.count(*levels, path),
            Place::HashBody => {
                let hash = format!("sha256:{}", hex::encode(Sha256::digest(self.body)));
                text(Some(hash.into()))
            }
            Place::Hash(place) => {
                let value = self.scalar(place)?;
                let hash = |scalar: Scalar<'_>| {
                    let digest = Sha256::digest(scalar.as_text().as_bytes());
                    format!("sha256:{}", hex::encode(digest)).into()
                };
                text(value.map(hash))
            }
            Place::Join(pieces) => text(self.join(pieces)?.map(|parts| parts.concat().into())),
        }
    }

    /// Gives the pieces of joined places; none where one is missing without which there is no value.
    pub fn join(&self, pieces: &[Piece]) -> Result<Option<Vec<String>>, Unreadable> {
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (place, is_optional) = match piece {
                Piece::Text(text) => {
                    parts.push(text.clone());
                    continue;
                }
                Piece::Needed(place) => (place, false),
                Piece::Optional(place) => (place, true),
            };
            match self.scalar(place)? {
                Some(scalar) => parts.push(scalar.as_text().to_owned()),
                None if is_optional => parts.push(String::new()),
                None => return Ok(None),
            }
        }
        Ok(Some(parts))
    }

    fn key(&self, path: &Path) -> Result<Option<&'v str>, Unreadable> {
        let Some(json) = self.json() else {
            return Ok(None);
        };
        let found = path.find(json)?;
        Ok(found.map(|(name, _)| name).filter(|name| !name.is_empty()))
    }

    fn header(&self, name: &HeaderName) -> Result<Option<&'v str>, Unreadable> {
        let mut values = self.headers.get_all(name).iter();
        // Two values under one name could be read differently by somebody on the way.
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Unreadable::Repeated),
            (None, None) => Ok(None),
            (Some(value), None) => {
                let text = std::str::from_utf8(value.as_bytes());
                text.map(Some).map_err(|_| Unreadable::NoScalar)
            }
        }
    }

    fn query(&self, name: &str) -> Result<Option<Cow<'v, str>>, Unreadable> {
        let Some(request) = self.url else {
            return Ok(None);
        };
        let mut values = form_urlencoded::parse(request.query().as_bytes())
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Unreadable::Repeated),
            (first, None) => Ok(first),
        }
    }

    fn count(&self, levels: usize, path: &Path) -> Result<Option<Scalar<'v>>, Unreadable> {
        let Some(document) = self.above(levels) else {
            return Ok(None);
        };
        let Some((_, Json::Number(first))) = path.find(document)? else {
            return Ok(None);
        };
        let first: u64 = first.parse().map_err(|_| Unreadable::NoScalar)?;
        let number = first
            .checked_add(self.index as u64)
            .ok_or(Unreadable::NoScalar)?;
        Ok(Some(Scalar::Text(number.to_string().into())))
    }
}
