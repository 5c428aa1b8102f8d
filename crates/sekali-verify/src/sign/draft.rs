//! A request on its way to a signature: it gets what is signed, and then the signature where the scheme has it.

use base64::Engine as _;
use http::{HeaderName, HeaderValue, header};
use sha2::{Digest, Sha256};

use super::Outgoing;
use crate::batch::elements;
use crate::json::{Json, Pointer, Text};
use crate::scheme::{Part, Scheme, Spot};
use crate::settings::Settings;

/// A request that gets what its scheme signs, and then the signature.
pub(super) struct Draft<'s> {
    pub(super) request: Outgoing,
    pub(super) scheme: &'s Scheme,
    pub(super) settings: &'s Settings,
}

impl Draft<'_> {
    /// Adds what is signed and missing: the time, ids in headers and in the body, the hash of the body.
    pub(super) fn complete(&mut self, id: &str, time: Option<&str>) -> Option<()> {
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
    pub(super) fn place(
        &mut self,
        label: &str,
        texts: &[String],
        time: Option<&str>,
    ) -> Option<()> {
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
