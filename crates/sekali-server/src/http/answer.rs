//! Answers: the one place where an outcome becomes an HTTP response.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use sekali::source::Answers;
use sekali::{Outcome, Reason};
use serde::Serialize;

/// The header that carries the request's id.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// What a sender is told.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<Reason>,
    /// Only for verified deliveries: nobody else learns what is known.
    pub(crate) event_id: Option<String>,
    pub(crate) request_id: String,
    /// In seconds.
    pub(crate) retry_after: Option<u64>,
    /// Whether the connection ends with this answer.
    pub(crate) closes: bool,
    /// What the provider wants to read instead of our own words.
    pub(crate) body: Option<OwnBody>,
}

/// A body that a provider wants to read.
#[derive(Debug)]
pub(crate) struct OwnBody {
    text: String,
    content_type: Option<HeaderValue>,
}

impl OwnBody {
    /// Takes the body of success, where the source has one.
    pub(crate) fn of_success(answers: &Answers) -> Option<Self> {
        let content_type = answers.content_type.as_deref().unwrap_or("text/plain");
        Self::new(answers.body.as_deref()?, content_type)
    }

    /// Takes the body of a refused signature, where the source has one.
    pub(crate) fn of_refusal(answers: &Answers) -> Option<Self> {
        Self::new(answers.refused_body.as_deref()?, "text/plain")
    }

    fn new(text: &str, content_type: &str) -> Option<Self> {
        Some(Self {
            text: text.to_owned(),
            content_type: HeaderValue::from_str(content_type)
                .ok()
                .filter(|_| !text.is_empty()),
        })
    }
}

#[derive(Serialize)]
struct Text<'a> {
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<&'a str>,
    message: &'static str,
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let text = Text {
            outcome: self.outcome,
            reason: self.reason,
            event_id: self.event_id.as_deref(),
            message: self
                .reason
                .map_or(self.outcome.sentence(), Reason::sentence),
        };
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let json = Some(HeaderValue::from_static("application/json"));
        let (body, content_type) = match self.body {
            _ if status == StatusCode::NO_CONTENT => (Vec::new(), None),
            Some(own) => (own.text.into_bytes(), own.content_type),
            // A struct of texts has a JSON form.
            None => (serde_json::to_vec(&text).unwrap_or_default(), json),
        };
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.extend(content_type.map(|value| (header::CONTENT_TYPE, value)));
        if let Ok(id) = HeaderValue::from_str(&self.request_id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Makes an id for a request.
pub(crate) fn request_id() -> String {
    format!("req_{:016x}", fastrand::u64(..))
}

/// Answers a request that reaches no source.
pub(crate) fn plain(status: StatusCode, message: &'static str) -> Response {
    let body = format!("{{\"message\":\"{message}\"}}");
    let mut response = (status, body).into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if let Ok(id) = HeaderValue::from_str(&request_id()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
