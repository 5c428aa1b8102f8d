//! Looks up what a scheme names: places, conditions and the pieces of the signed text.
//!
//! Everything is taken as it was received. A value that could be read in two ways, because its name
//! occurs twice, is refused and never chosen from.

use std::borrow::Cow;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use crate::json::{Json, Pointer};
use crate::rejection::SignatureProblem;
use crate::request::{Opened, Pairs, Repeated, only, scalar, split_authority};
use crate::scheme::{Condition, Part, Spot, Test};
use crate::settings::Settings;

impl From<Repeated> for SignatureProblem {
    fn from(_: Repeated) -> Self {
        Self::Malformed
    }
}

/// A request with what is configured for its source.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'o, 'a> {
    pub(crate) opened: &'o Opened<'a>,
    /// The element that `json` places are inside of, where each carries its own signature.
    pub(crate) element: Option<&'o Json<'a>>,
    pub(crate) settings: &'o Settings,
}

/// The pieces that are not in the request itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known<'k> {
    pub(crate) timestamp: &'k [u8],
    pub(crate) url: &'k str,
    pub(crate) key: Option<&'k Bytes>,
}

impl<'o> Scene<'o, '_> {
    /// Gives all values of a place; only headers may have several.
    pub(crate) fn values(&self, spot: &Spot) -> Result<Vec<Cow<'o, [u8]>>, SignatureProblem> {
        let request = &self.opened.request;
        let borrowed = |text: Option<&'o str>| {
            text.map(|text| Cow::Borrowed(text.as_bytes()))
                .into_iter()
                .collect()
        };
        Ok(match spot {
            Spot::Header(name) => {
                let values = request.headers.get_all(name).iter();
                values
                    .map(|value| Cow::Owned(value.as_bytes().to_vec()))
                    .collect()
            }
            Spot::Numbered(front) => {
                let numbered = |index: usize| request.headers.get(format!("{front}{index}"));
                let values = (1..=100).map_while(numbered);
                values
                    .map(|value| Cow::Owned(value.as_bytes().to_vec()))
                    .collect()
            }
            Spot::Query(name) => borrowed(self.only_of(self.opened.query(), name)?),
            Spot::Form(name) => borrowed(only(self.opened.form(), name)?),
            Spot::Json(pointer) => borrowed(self.json(pointer)?),
            Spot::Tail(index) => {
                let segment = request.tail_segment(*index);
                let owned = segment.map(|text| Cow::Owned(text.into_owned().into_bytes()));
                owned.into_iter().collect()
            }
            Spot::Method => vec![Cow::Owned(request.method.as_str().into())],
            Spot::ContentType => {
                let kind = request.content_type();
                kind.map(|kind| Cow::Owned(kind.into_bytes()))
                    .into_iter()
                    .collect()
            }
            Spot::Claim(_) => Vec::new(),
        })
    }

    /// Gives the only value of a place.
    pub(crate) fn value(&self, spot: &Spot) -> Result<Option<Cow<'o, [u8]>>, SignatureProblem> {
        let mut values = self.values(spot)?;
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(SignatureProblem::Malformed),
        }
    }

    fn only_of(&self, pairs: &'o Pairs<'_>, name: &str) -> Result<Option<&'o str>, Repeated> {
        match self.settings.expand(name) {
            Some(name) => only(pairs, &name),
            None => Ok(None),
        }
    }

    fn json(&self, pointer: &Pointer) -> Result<Option<&'o str>, Repeated> {
        match self.element {
            Some(element) => scalar(element, pointer),
            None => self.opened.scalar(pointer),
        }
    }

    /// Tells whether something stands at a place that is neither text, number nor null.
    fn has_other(&self, pointer: &Pointer) -> Result<bool, Repeated> {
        let Some(document) = self.element.or_else(|| self.opened.json()) else {
            return Ok(false);
        };
        let found = document.get(pointer).map_err(|_| Repeated)?;
        Ok(!matches!(found, None | Some(Json::Null)))
    }

    /// Tells whether a condition holds.
    pub(crate) fn holds(&self, condition: &Condition) -> bool {
        let Ok(value) = self.value(&condition.spot) else {
            return false;
        };
        let Some(value) = value else {
            return condition.test == Test::Absent;
        };
        let equals = |text: &str| bool::from(value.as_ref().ct_eq(text.as_bytes()));
        match &condition.test {
            Test::Present => true,
            Test::Absent => false,
            Test::OneOf(texts) => texts.iter().any(|text| equals(text)),
            Test::Setting(name) => self.settings.get(name).is_some_and(equals),
            Test::InSetting(name) => self.settings.get(name).is_some_and(|words| {
                words
                    .split_ascii_whitespace()
                    .any(|word| word == "*" || equals(word))
            }),
            Test::Hex(min, max) => is_hex(&value, (*min, *max)),
            Test::NotHex(min, max) => !is_hex(&value, (*min, *max)),
        }
    }

    /// Collects the signed text, piece by piece.
    pub(crate) fn pieces(
        &self,
        parts: &[Part],
        known: Known<'_>,
    ) -> Result<Vec<Bytes>, SignatureProblem> {
        parts.iter().map(|part| self.piece(part, known)).collect()
    }

    fn piece(&self, part: &Part, known: Known<'_>) -> Result<Bytes, SignatureProblem> {
        let request = &self.opened.request;
        let body = request.body;
        Ok(match part {
            Part::Literal(text) => text.clone(),
            Part::Timestamp => Bytes::copy_from_slice(known.timestamp),
            Part::Body => body.clone(),
            Part::Method => Bytes::copy_from_slice(request.method.as_str().as_bytes()),
            Part::Url => Bytes::copy_from_slice(known.url.as_bytes()),
            Part::UrlUnescaped => unescaped(known.url).into(),
            Part::Path => Bytes::copy_from_slice(request.path().as_bytes()),
            Part::FormSorted => sorted(self.opened.form()).into(),
            Part::Key => known.key.cloned().unwrap_or_default(),
            Part::BodySha256Hex => hex::encode(Sha256::digest(body)).into(),
            Part::BodySha256Base64 => {
                use base64::Engine as _;
                base64::prelude::BASE64_STANDARD
                    .encode(Sha256::digest(body))
                    .into()
            }
            Part::MinifiedBodySha256Hex => hex::encode(Sha256::digest(minified(body))).into(),
            Part::BodyCrc32 => crc32fast::hash(body).to_string().into(),
            Part::Header(name) => self.given(&Spot::Header(name.clone()))?,
            Part::Bearer(name) => {
                let value = self.given(&Spot::Header(name.clone()))?;
                match value.split_at_checked(7) {
                    Some((front, _)) if front.eq_ignore_ascii_case(b"bearer ") => value.slice(7..),
                    _ => return Err(SignatureProblem::Malformed),
                }
            }
            Part::Query(name) => self.given(&Spot::Query(name.clone()))?,
            Part::Form(name) => self.given(&Spot::Form(name.clone()))?,
            Part::Json(pointer) => self.given(&Spot::Json(pointer.clone()))?,
            Part::JsonOrEmpty(pointer) => {
                let value = self.json(pointer)?;
                if value.is_none() && self.has_other(pointer)? {
                    return Err(SignatureProblem::Malformed);
                }
                Bytes::copy_from_slice(value.unwrap_or_default().as_bytes())
            }
            Part::Setting(name) => {
                let value = self.settings.get(name).ok_or(SignatureProblem::Missing)?;
                Bytes::copy_from_slice(value.as_bytes())
            }
            Part::Lines(keys) => self.lines(keys)?.into(),
            Part::Mac(_) => return Err(SignatureProblem::Malformed),
        })
    }

    fn given(&self, spot: &Spot) -> Result<Bytes, SignatureProblem> {
        let value = self.value(spot)?.ok_or(SignatureProblem::Missing)?;
        match value.trim_ascii().is_empty() && matches!(spot, Spot::Header(_)) {
            true => Err(SignatureProblem::Missing),
            false => Ok(Bytes::from(value.into_owned())),
        }
    }

    fn lines(&self, keys: &[String]) -> Result<String, SignatureProblem> {
        let mut text = String::with_capacity(256);
        for key in keys {
            let escaped = key.replace('~', "~0").replace('/', "~1");
            let pointer = Pointer::try_from(format!("/{escaped}"));
            let pointer = pointer.map_err(|_| SignatureProblem::Malformed)?;
            if let Some(value) = self.json(&pointer)? {
                for piece in [key, "\n", value, "\n"] {
                    text.push_str(piece);
                }
            }
        }
        match text.is_empty() {
            true => Err(SignatureProblem::Missing),
            false => Ok(text),
        }
    }
}

fn is_hex(value: &[u8], (min, max): (usize, usize)) -> bool {
    (min..=max).contains(&value.len()) && value.iter().all(u8::is_ascii_hexdigit)
}

/// Gives the URL also without its port, and with the port that its scheme has.
pub(crate) fn with_and_without_port(url: &str) -> Vec<String> {
    let (front, target) = split_authority(url);
    let scheme_end = front.find("://").map_or(0, |found| found + 3);
    let (scheme, authority) = front.split_at(scheme_end);
    let (user, host) = match authority.rfind('@') {
        Some(at) => authority.split_at(at + 1),
        None => ("", authority),
    };
    let port = host.rfind(':').filter(|colon| {
        host[*colon..].len() > 1 && host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit())
    });
    let other = match port {
        Some(colon) => format!("{scheme}{user}{}{target}", &host[..colon]),
        None if scheme == "http://" => format!("{scheme}{user}{host}:80{target}"),
        None => format!("{scheme}{user}{host}:443{target}"),
    };
    vec![url.to_owned(), other]
}

/// Decodes the escapes of these characters only: `: / ? @ ! $ ' ( ) * , ;`.
fn unescaped(url: &str) -> String {
    const CODES: [(&str, &str); 12] = [
        ("3a", ":"),
        ("2f", "/"),
        ("3f", "?"),
        ("40", "@"),
        ("21", "!"),
        ("24", "$"),
        ("27", "'"),
        ("28", "("),
        ("29", ")"),
        ("2a", "*"),
        ("2c", ","),
        ("3b", ";"),
    ];
    let mut parts = url.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).map(str::to_ascii_lowercase);
        let known = CODES
            .iter()
            .find(|(known, _)| code.as_deref() == Some(*known));
        match known {
            Some((_, character)) => {
                text.push_str(character);
                text.push_str(&part[2..]);
            }
            None => {
                text.push('%');
                text.push_str(part);
            }
        }
    }
    text
}

/// Joins names and values, sorted by name and then by value, each pair once.
fn sorted(form: &Pairs<'_>) -> String {
    let mut pairs: Vec<(&str, &str)> = form
        .iter()
        .map(|(name, value)| (name.as_ref(), value.as_ref()))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
        .into_iter()
        .flat_map(|(name, value)| [name, value])
        .collect()
}

/// Leaves the blanks between the tokens of a JSON text out.
fn minified(json: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(json.len());
    let (mut is_inside, mut is_escaped) = (false, false);
    for &byte in json {
        if is_inside {
            is_inside = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            is_inside = byte == b'"';
        }
        text.push(byte);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_come_and_go() {
        let other = |url: &str| with_and_without_port(url)[1].clone();
        assert_eq!(other("https://a.b:1234/x?y=:1"), "https://a.b/x?y=:1");
        assert_eq!(other("https://u:p@a.b/x"), "https://u:p@a.b:443/x");
        assert_eq!(other("http://a.b"), "http://a.b:80");
        assert_eq!(other("https://[::1]/x"), "https://[::1]:443/x");
        assert_eq!(other("https://[::1]:8/x"), "https://[::1]/x");
    }

    #[test]
    fn only_listed_escapes_are_decoded() {
        assert_eq!(
            unescaped("https://h/a%2Fb%20c%3a%25?%zz%2"),
            "https://h/a/b%20c:%25?%zz%2"
        );
        assert_eq!(unescaped("https://h/%é%2C"), "https://h/%é,");
    }

    #[test]
    fn blanks_inside_of_texts_stay() {
        let text = br#"{ "a b" : "c \" d\\" , "n" : [ 1 , 2 ] }"#;
        assert_eq!(minified(text), br#"{"a b":"c \" d\\","n":[1,2]}"#);
    }

    #[test]
    fn forms_are_sorted_and_each_pair_counts_once() {
        let form = form_urlencoded::parse(b"b=2&a=9&a=1&b=2").collect();
        assert_eq!(sorted(&form), "a1a9b2");
    }
}
