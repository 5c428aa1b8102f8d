//! One HTTP request as a signature sees it: method, URL as called, headers and raw body.
//!
//! Nothing here is normalised. What has to be parsed, because a provider puts its signature into a
//! form or into JSON, is parsed when it is first asked for, and then once.

use std::borrow::Cow;
use std::cell::OnceCell;

use bytes::Bytes;
use http::{HeaderMap, Method, header};

use crate::json::{Json, Pointer};

/// The most fields of a form that are looked at; Twilio sends about forty.
const MAX_FIELDS: usize = 4096;

/// A request as it was received, and the URL under which its sender called it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a Method,
    /// The absolute URL as the sender called it: `https://host/path?query`.
    pub url: &'a str,
    /// The path behind the part that names the source, without a slash in front.
    pub tail: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The raw body.
    pub body: &'a Bytes,
}

impl<'a> Request<'a> {
    /// Describes a POST whose URL plays no part.
    pub fn post(headers: &'a HeaderMap, body: &'a Bytes) -> Self {
        Self {
            method: &Method::POST,
            url: "",
            tail: "",
            headers,
            body,
        }
    }

    /// Gives the path of the URL, without its query.
    pub fn path(&self) -> &'a str {
        let (_, target) = split_authority(self.url);
        target.split(['?', '#']).next().unwrap_or_default()
    }

    /// Gives the query of the URL, without its question mark.
    pub fn query(&self) -> &'a str {
        let url = self.url.split('#').next().unwrap_or_default();
        url.split_once('?').map_or("", |(_, query)| query)
    }

    /// Gives the media type of the body in lower case, without its parameters.
    pub fn content_type(&self) -> Option<String> {
        let value = self.headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let kind = value.split(';').next().unwrap_or_default().trim();
        Some(kind.to_ascii_lowercase())
    }

    /// Tells whether the body is a form.
    ///
    /// The media type is not signed, so that alone does not make a form of a body: in one that begins like JSON or XML,
    /// somebody's text could pass for a field. Whatever writes forms escapes those characters.
    pub(crate) fn is_form(&self) -> bool {
        let is_named = self
            .content_type()
            .is_some_and(|kind| kind == "application/x-www-form-urlencoded");
        let first = self.body.trim_ascii_start().first();
        is_named
            && !matches!(first, Some(b'{' | b'[' | b'"' | b'<'))
            && self.body.iter().filter(|byte| **byte == b'&').count() < MAX_FIELDS
    }

    /// Gives a segment of the tail, percent-decoded; an empty one counts as missing.
    pub(crate) fn tail_segment(&self, index: usize) -> Option<Cow<'a, str>> {
        let segment = self.tail.split('/').nth(index)?;
        let decoded = percent_encoding::percent_decode_str(segment).decode_utf8();
        decoded.ok().filter(|text| !text.is_empty())
    }
}

/// Splits `scheme://authority` from the path, query and fragment behind it.
pub(crate) fn split_authority(url: &str) -> (&str, &str) {
    let start = url.find("://").map_or(0, |found| found + 3);
    let end = url[start..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |found| start + found);
    url.split_at(end)
}

/// Names and values of a form or of a query, in their order.
pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// A request of which parts may have been parsed.
pub(crate) struct Opened<'a> {
    pub(crate) request: Request<'a>,
    json: OnceCell<Option<Json<'a>>>,
    form: OnceCell<Pairs<'a>>,
    query: OnceCell<Pairs<'a>>,
}

impl<'a> Opened<'a> {
    pub(crate) fn new(request: Request<'a>) -> Self {
        Self {
            request,
            json: OnceCell::new(),
            form: OnceCell::new(),
            query: OnceCell::new(),
        }
    }

    /// Gives the body as JSON, where it is that.
    pub(crate) fn json(&self) -> Option<&Json<'a>> {
        let parsed = self
            .json
            .get_or_init(|| Json::parse(self.request.body).ok());
        parsed.as_ref()
    }

    /// Gives the fields of the body, where it is a form.
    pub(crate) fn form(&self) -> &Pairs<'a> {
        self.form.get_or_init(|| match self.request.is_form() {
            true => form_urlencoded::parse(self.request.body).collect(),
            false => Vec::new(),
        })
    }

    /// Gives the parameters of the URL.
    pub(crate) fn query(&self) -> &Pairs<'a> {
        let parse = || form_urlencoded::parse(self.request.query().as_bytes()).collect();
        self.query.get_or_init(parse)
    }

    /// Gives a text or a number of the body, as it is written.
    pub(crate) fn scalar(&self, pointer: &Pointer) -> Result<Option<&str>, Repeated> {
        let Some(json) = self.json() else {
            return Ok(None);
        };
        scalar(json, pointer)
    }
}

/// Gives a text or a number as it is written; a truth value counts as its word.
pub(crate) fn scalar<'j>(
    json: &'j Json<'_>,
    pointer: &Pointer,
) -> Result<Option<&'j str>, Repeated> {
    Ok(match json.get(pointer).map_err(|_| Repeated)? {
        Some(Json::Number(number)) => Some(number),
        Some(Json::Bool(true)) => Some("true"),
        Some(Json::Bool(false)) => Some("false"),
        Some(value) => value.as_str(),
        None => None,
    })
}

/// Gives the only value under a name.
pub(crate) fn only<'p>(pairs: &'p Pairs<'_>, name: &str) -> Result<Option<&'p str>, Repeated> {
    let mut values = pairs.iter().filter(|(key, _)| key == name);
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Repeated),
        (first, None) => Ok(first.map(|(_, value)| value.as_ref())),
    }
}

/// Says that something occurs twice of which only one can be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeated;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> (String, String) {
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        let request = Request {
            url,
            ..Request::post(&headers, &body)
        };
        (request.path().to_owned(), request.query().to_owned())
    }

    #[test]
    fn urls_are_split_and_not_changed() {
        let split = |path: &str, query: &str| (path.to_owned(), query.to_owned());
        assert_eq!(
            at("https://u:p@h:1/a%2Fb?x=1?y#z"),
            split("/a%2Fb", "x=1?y")
        );
        assert_eq!(at("https://h"), split("", ""));
        assert_eq!(at("https://h?x"), split("", "x"));
        assert_eq!(at("/only/path"), split("/only/path", ""));
    }

    #[test]
    fn a_body_is_a_form_by_more_than_its_label() {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_TYPE,
            "application/x-www-form-urlencoded".parse().unwrap(),
        );
        let is_form = |text: &str| {
            let body = Bytes::copy_from_slice(text.as_bytes());
            Request::post(&headers, &body).is_form()
        };
        assert!(is_form("payload=%7B%7D&a=b") && is_form(""));
        for text in [
            r#"{"text":"&payload={}&"}"#,
            " [\"&payload=1\"]",
            r#""&payload=1""#,
            "<a>&payload=1</a>",
        ] {
            assert!(!is_form(text), "{text}");
        }
        assert!(is_form(&"a=&".repeat(MAX_FIELDS - 1)) && !is_form(&"a=&".repeat(MAX_FIELDS)));
    }

    #[test]
    fn repeated_names_are_seen() {
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        let request = Request {
            url: "https://h/?a=1&b=2&a=3&c=%20x",
            ..Request::post(&headers, &body)
        };
        let opened = Opened::new(request);
        assert_eq!(only(opened.query(), "a"), Err(Repeated));
        assert_eq!(only(opened.query(), "c"), Ok(Some(" x")));
        assert_eq!(only(opened.query(), "d"), Ok(None));
    }
}
