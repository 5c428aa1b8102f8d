//! Signs a request the way its sender does, for tests, demos and the command line.
//!
//! The counterpart of [`crate::Prover`], and judged by it where there are several schemes. It sends nothing itself. Where a provider signs inside of the body, the body is printed again with the signature in it.

use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::batch::elements;
use crate::json::{Json, Pointer, Text};
use crate::outside::NoDocuments;
use crate::prover::{Lane, Prover};
use crate::request::{Opened, Request};
use crate::scene::{Known, Scene};
use crate::scheme::{Part, Scheme, Spot, TimeUnit};
use crate::settings::Settings;
use crate::signature::encode;
use crate::verify::Prove as _;

/// A request that is about to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The absolute URL.
    pub url: String,
    /// The path behind the part that names the source.
    pub tail: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Outgoing {
    /// Describes a POST.
    pub fn post(url: impl Into<String>, headers: HeaderMap, body: Bytes) -> Self {
        Self {
            method: Method::POST,
            url: url.into(),
            tail: String::new(),
            headers,
            body,
        }
    }

    /// Looks at it as its receiver will.
    pub fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            url: &self.url,
            tail: &self.tail,
            headers: &self.headers,
            body: &self.body,
        }
    }
}

/// The reason why nothing can be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CannotSign {
    /// Says that only the provider has the key.
    #[error("only the provider can sign with this scheme: the receiver has its public key")]
    NotOurKey,
    /// Says that the body has no room for what the scheme signs.
    #[error("the body lacks what this scheme signs")]
    Body,
}

impl Prover {
    /// Makes the headers that prove a body; times before 1970 count as its start.
    pub fn sign(&self, body: &Bytes, at_ms: i64) -> Result<HeaderMap, CannotSign> {
        let request = Outgoing::post("", HeaderMap::new(), body.clone());
        self.sign_request(request, at_ms)
            .map(|signed| signed.headers)
    }

    /// Signs a request with the first scheme that it can be proven by.
    pub fn sign_request(&self, request: Outgoing, at_ms: i64) -> Result<Outgoing, CannotSign> {
        let at_ms = at_ms.max(0);
        let able = |lane: &&Lane| lane.scheme.algorithm.is_symmetric() && !lane.keys.is_empty();
        let mut lanes = self.lanes.iter().filter(able).peekable();
        if lanes.peek().is_none() {
            return Err(CannotSign::NotOurKey);
        }
        for lane in lanes {
            let Some(signed) = self.try_lane(lane, request.clone(), at_ms) else {
                continue;
            };
            // A scheme without conditions applies to every request: it need not be asked.
            if lane.scheme.when.is_empty() || self.takes(&signed, at_ms) {
                return Ok(signed);
            }
        }
        Err(CannotSign::Body)
    }

    fn takes(&self, signed: &Outgoing, at_ms: i64) -> bool {
        self.prove(&signed.request(), at_ms, &NoDocuments).is_ok()
    }

    fn try_lane(&self, lane: &Lane, request: Outgoing, at_ms: i64) -> Option<Outgoing> {
        let scheme = &lane.scheme;
        let id = format!("id_{}", hex::encode(&Sha256::digest(&request.body)[..12]));
        let time = scheme.time.as_ref().map(|time| written(time.unit, at_ms));
        let mut draft = Draft {
            request,
            scheme,
            settings: &self.settings,
        };
        draft.complete(&id, time.as_deref())?;
        let texts = match &scheme.each {
            Some(pattern) => {
                let json = Json::parse(&draft.request.body).ok()?;
                let found = elements(&draft.request.body, std::slice::from_ref(pattern)).ok()??;
                let lineages = found.iter().map(|element| element.lineage(&json));
                let signed = lineages.map(|lineage| {
                    self.signature(
                        lane,
                        &draft.request,
                        lineage.last().copied(),
                        time.as_deref(),
                    )
                });
                signed.collect::<Option<Vec<_>>>()?
            }
            None => vec![self.signature(lane, &draft.request, None, time.as_deref())?],
        };
        draft.place(&lane.label, &texts, time.as_deref())?;
        Some(draft.request)
    }

    fn signature(
        &self,
        lane: &Lane,
        request: &Outgoing,
        element: Option<&Json<'_>>,
        time: Option<&str>,
    ) -> Option<String> {
        let (_, key) = lane.keys.last()?;
        let opened = Opened::new(request.request());
        let scene = Scene {
            opened: &opened,
            element,
            settings: &self.settings,
        };
        let known = Known {
            timestamp: time.unwrap_or_default().as_bytes(),
            url: &request.url,
            key: key.plain(),
        };
        let text = scene.pieces(&lane.scheme.signed, known).ok()?;
        let bytes = key.sign(lane.scheme.algorithm, &text)?;
        String::from_utf8(encode(lane.scheme.signature.encoding, &bytes)).ok()
    }
}

fn written(unit: TimeUnit, at_ms: i64) -> String {
    match unit {
        TimeUnit::UnixSeconds => (at_ms / 1000).to_string(),
        TimeUnit::UnixMillis => at_ms.to_string(),
        TimeUnit::Rfc3339 => jiff::Timestamp::from_millisecond(at_ms)
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
            .to_string(),
    }
}

/// A request that gets what its scheme signs, and then the signature.
struct Draft<'s> {
    request: Outgoing,
    scheme: &'s Scheme,
    settings: &'s Settings,
}

impl Draft<'_> {
    /// Adds what is signed and missing: the time, ids in headers and in the body, the hash of the body.
    fn complete(&mut self, id: &str, time: Option<&str>) -> Option<()> {
        if let (Spot::Form(_), false) = (&self.scheme.signature.spot, self.is_form()) {
            self.wrap_in_form()?;
        }
        if let (Some(time), Some(text)) = (&self.scheme.time, time) {
            match &time.spot {
                Spot::Json(pointer) => self.set_json(pointer, text)?,
                Spot::Header(name) if !self.is_in_signature(&time.spot) => {
                    let value = format!("{}{text}", time.entries.label);
                    self.set_header(name, &value)?;
                }
                _ => {}
            }
        }
        for part in self.scheme.signed.iter() {
            match part {
                Part::Header(name) if !self.request.headers.contains_key(name) => {
                    self.set_header(name, id)?;
                }
                Part::Json(pointer) if self.scheme.each.is_none() && !self.has_json(pointer) => {
                    self.set_json(pointer, id)?;
                }
                _ => {}
            }
        }
        if let Some(Spot::Query(name)) = &self.scheme.body_hash {
            let hash = hex::encode(Sha256::digest(&self.request.body));
            self.add_query(name, &hash);
        }
        Some(())
    }

    /// Puts the signatures where the scheme has them.
    fn place(&mut self, label: &str, texts: &[String], time: Option<&str>) -> Option<()> {
        let scheme = self.scheme;
        let first = format!("{label}{}", texts.first()?);
        match &scheme.signature.spot {
            Spot::Header(name) => {
                let front = match (&scheme.time, time) {
                    (Some(at), Some(text)) if self.is_in_signature(&at.spot) => {
                        let separator = scheme.signature.entries.separator.get(..1)?;
                        format!("{}{text}{separator}", at.entries.label)
                    }
                    _ => String::new(),
                };
                self.set_header(name, &format!("{front}{first}"))
            }
            Spot::Numbered(front) => self.set_header(&format!("{front}1").parse().ok()?, &first),
            Spot::Query(name) => {
                let name = self.settings.expand(name)?;
                self.add_query(&name, &first);
                Some(())
            }
            Spot::Tail(_) => {
                self.request.url = format!("{}/{first}", self.request.url);
                self.request.tail.clone_from(&first);
                Some(())
            }
            Spot::Form(name) => {
                let mut form = form_urlencoded::Serializer::new(String::new());
                form.append_pair(name, &first);
                form.extend_pairs(form_urlencoded::parse(&self.request.body));
                self.request.body = form.finish().into();
                Some(())
            }
            Spot::Json(pointer) if scheme.each.is_none() => self.set_json(pointer, &first),
            Spot::Json(pointer) => self.set_in_each(pointer, texts),
            _ => None,
        }
    }

    fn is_in_signature(&self, spot: &Spot) -> bool {
        *spot == self.scheme.signature.spot
    }

    fn is_form(&self) -> bool {
        let kind = self.request.headers.get(header::CONTENT_TYPE);
        kind.is_some_and(|kind| {
            kind.as_bytes()
                .starts_with(b"application/x-www-form-urlencoded")
        })
    }

    /// Puts the body, in base64, into the form field that is signed.
    fn wrap_in_form(&mut self) -> Option<()> {
        let field = self.scheme.signed.iter().find_map(|part| match part {
            Part::Form(name) => Some(name),
            _ => None,
        })?;
        let payload = base64::prelude::BASE64_STANDARD.encode(&self.request.body);
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair(field, &format!("{payload}\n"));
        self.request.body = form.finish().into();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        self.request.headers.insert(header::CONTENT_TYPE, kind);
        Some(())
    }

    fn set_header(&mut self, name: &HeaderName, value: &str) -> Option<()> {
        let value = HeaderValue::from_str(value).ok()?;
        self.request.headers.insert(name, value);
        Some(())
    }

    fn add_query(&mut self, name: &str, value: &str) {
        let mark = if self.request.url.contains('?') {
            '&'
        } else {
            '?'
        };
        let pair = form_urlencoded::Serializer::new(String::new())
            .append_pair(name, value)
            .finish();
        self.request.url = format!("{}{mark}{pair}", self.request.url);
    }

    fn has_json(&self, pointer: &Pointer) -> bool {
        let json = Json::parse(&self.request.body).ok();
        json.is_some_and(|json| json.get(pointer).is_ok_and(|value| value.is_some()))
    }

    fn set_json(&mut self, pointer: &Pointer, text: &str) -> Option<()> {
        let body = self.request.body.clone();
        let mut json = Json::parse(&body).ok()?;
        set(&mut json, pointer.tokens(), text)?;
        self.request.body = json.to_string().into();
        Some(())
    }

    fn set_in_each(&mut self, pointer: &Pointer, texts: &[String]) -> Option<()> {
        let body = self.request.body.clone();
        let pattern = self.scheme.each.as_ref()?;
        let found = elements(&body, std::slice::from_ref(pattern)).ok()??;
        let mut json = Json::parse(&body).ok()?;
        for (element, text) in found.iter().zip(texts) {
            let mut inner = &mut json;
            for position in &element.way {
                inner = match inner {
                    Json::Array(items) => items.get_mut(*position)?,
                    Json::Object(members) => &mut members.get_mut(*position)?.1,
                    _ => return None,
                };
            }
            set(inner, pointer.tokens(), text)?;
        }
        self.request.body = json.to_string().into();
        Some(())
    }
}

/// Sets a member to a text, or to a number where a number stood; objects on the way are made.
fn set<'a>(json: &mut Json<'a>, steps: &[String], text: &'a str) -> Option<()> {
    let Some((step, rest)) = steps.split_first() else {
        let is_number =
            !matches!(json, Json::String(_)) && text.bytes().all(|b| b.is_ascii_digit());
        *json = match is_number {
            true => Json::Number(text),
            false => Json::String(Text::Borrowed(text)),
        };
        return Some(());
    };
    match json {
        Json::Object(members) => {
            let known = members
                .iter()
                .position(|(name, _)| name.as_bytes() == step.as_bytes());
            let position = known.unwrap_or_else(|| {
                let empty = match rest.is_empty() {
                    true => Json::Null,
                    false => Json::Object(Vec::new()),
                };
                members.push((Text::Unescaped(step.clone()), empty));
                members.len() - 1
            });
            set(&mut members[position].1, rest, text)
        }
        Json::Array(items) => set(items.get_mut(step.parse::<usize>().ok()?)?, rest, text),
        _ => None,
    }
}

/// Tells whether a receiver's secret is enough to sign with one of the schemes.
pub(crate) fn can_sign(schemes: &[Scheme]) -> bool {
    let is_able = |scheme: &Scheme| scheme.algorithm.is_symmetric();
    schemes.iter().any(is_able)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use crate::timestamp::Window;

    fn names_and_values(scheme: Scheme, at_ms: i64) -> Vec<(String, String)> {
        let window = Window {
            past_ms: 1,
            future_ms: 1,
        };
        let secrets = [Secret::new("a-long-secret").unwrap()];
        let prover = Prover::new(&[scheme], &secrets, Settings::default(), window).unwrap();
        let headers = prover.sign(&Bytes::from_static(b"{}"), at_ms).unwrap();
        let pair = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        headers.iter().map(pair).collect()
    }

    #[test]
    fn a_timed_scheme_sends_both_headers() {
        let headers = names_and_values(Scheme::standard(), 1_767_225_600_999);
        assert_eq!(
            headers[0],
            ("x-webhook-timestamp".to_owned(), "1767225600".to_owned())
        );
        assert_eq!(headers[1].0, "x-webhook-signature");
        assert!(headers[1].1.starts_with("v1=") && headers[1].1.len() == 67);
    }

    #[test]
    fn a_scheme_without_time_sends_one_header() {
        let headers = names_and_values(Scheme::body_only(), i64::MIN);
        assert_eq!(headers.len(), 1);
        assert_eq!(
            (headers[0].0.as_str(), headers[0].1.len()),
            ("x-signature", 64)
        );
    }

    #[test]
    fn times_before_1970_are_its_start() {
        assert_eq!(names_and_values(Scheme::standard(), -1)[0].1, "0");
    }
}
