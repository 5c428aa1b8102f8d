//! A request out of the bytes of an input, with the key documents and the time that go with it.
//!
//! ```text
//! number switches METHOD URL TAIL \n
//! name: value \n …
//! \n
//! body
//! \n\0\n
//! key document
//! ```
//!
//! Number and switches are one byte each, and the method follows at once. What is missing is empty.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sekali_verify::{KeyDocument, KeyDocuments, Request};

/// The time of most inputs: a second after the first of 2026.
pub const NOW_MS: i64 = 1_767_225_601_000;

/// Stands between the body and the key document.
const DOCUMENT: &[u8] = b"\n\0\n";

/// More headers than a server takes.
const MAX_HEADERS: usize = 64;

/// Everything that an input says.
pub struct Input {
    /// Chooses the source.
    pub number: usize,
    switches: u8,
    method: Method,
    url: String,
    tail: String,
    headers: HeaderMap,
    body: Bytes,
    /// What every key address answers.
    pub documents: Documents,
}

/// Answers every key address with the same bytes.
pub struct Documents {
    text: Option<Bytes>,
    checks_certificates: bool,
}

impl KeyDocuments for Documents {
    fn find(&self, _: &KeyDocument) -> Option<Bytes> {
        self.text.clone()
    }

    fn checks_certificates(&self) -> bool {
        self.checks_certificates
    }
}

impl Input {
    /// Splits an input; none where it is too short.
    pub fn split(data: &[u8]) -> Option<Self> {
        let [number, switches, rest @ ..] = data else {
            return None;
        };
        let (head, rest) = split_at(rest, b"\n\n");
        let (body, document) = split_at(rest, DOCUMENT);
        let mut lines = head.split(|byte| *byte == b'\n');
        let first = String::from_utf8_lossy(lines.next()?).into_owned();
        let mut words = first.splitn(3, ' ');
        let method = words.next()?.parse().unwrap_or(Method::POST);
        Some(Self {
            number: usize::from(*number),
            switches: *switches,
            method,
            url: words.next().unwrap_or_default().to_owned(),
            tail: words.next().unwrap_or_default().to_owned(),
            headers: lines.take(MAX_HEADERS).fold(HeaderMap::new(), with_line),
            body: Bytes::copy_from_slice(body),
            documents: Documents {
                text: (!document.is_empty()).then(|| Bytes::copy_from_slice(document)),
                checks_certificates: switches & 1 == 0,
            },
        })
    }

    /// Looks at it as its receiver does.
    pub fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            url: &self.url,
            tail: &self.tail,
            headers: &self.headers,
            body: &self.body,
        }
    }

    /// Tells whether the search for causes is wanted, which takes a hundred times as long.
    pub fn is_diagnosed(&self) -> bool {
        self.switches & 0xf0 == 0x40
    }

    /// Gives the time of receipt, now and then an absurd one.
    pub fn now_ms(&self) -> i64 {
        match self.switches >> 2 & 7 {
            1 => 0,
            2 => i64::MIN,
            3 => i64::MAX,
            _ => NOW_MS,
        }
    }
}

fn split_at<'d>(data: &'d [u8], separator: &[u8]) -> (&'d [u8], &'d [u8]) {
    let found = data
        .windows(separator.len())
        .position(|part| part == separator);
    match found {
        Some(at) => (&data[..at], &data[at + separator.len()..]),
        None => (data, &[]),
    }
}

fn with_line(mut headers: HeaderMap, line: &[u8]) -> HeaderMap {
    if let Some(colon) = line.iter().position(|byte| *byte == b':') {
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}
