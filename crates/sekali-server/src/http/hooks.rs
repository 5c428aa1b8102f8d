//! The way of a delivery: receive, handshake, verify, identify, admit, answer. Each step is named below and does one thing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode, header};
use sekali::identify::{Arrival, identify};
use sekali::{Outcome, Reason, Source};
use sekali_verify::{Rejection, Verified};

use super::App;
use super::answer::{Answer, plain, request_id};
use super::origin::{client_address, public_url};
use super::receive::{Limits, receive as receive_body};
use crate::fetch::FetchError;

mod admit;
mod keep;
mod refuse;

use refuse::Known;

/// How often a key is fetched for one request: its document, and once more where that lacks the key.
const KEY_FETCHES: usize = 2;

/// A request on its way, as far as it is known.
pub(super) struct Hook<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) source: &'a Arc<Source>,
    pub(super) remote: Option<IpAddr>,
    pub(super) received_at: i64,
    started: Instant,
    pub(super) request_id: String,
}

/// Takes a delivery in.
pub(crate) async fn receive(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let path = request
        .uri()
        .path()
        .strip_prefix("/hooks/")
        .unwrap_or_default();
    let name = path.split('/').next().unwrap_or_default();
    let Some(source) = app.sources.at(name) else {
        return unknown_source(&app);
    };
    if !source.methods().any(|method| method == request.method()) {
        return wrong_method(&app, source);
    }
    let peer = request.extensions().get::<SocketAddr>();
    let trusted = &app.config.trusted_proxies;
    let delivery = Hook {
        app: &app,
        source,
        remote: peer.map(|peer| client_address(peer.ip(), request.headers(), trusted)),
        received_at: app.clock.now_ms(),
        started: Instant::now(),
        request_id: request_id(),
    };
    let (parts, body) = request.into_parts();
    delivery.answer(&parts, body).await
}

/// Answers a request that leads nowhere.
pub(crate) async fn unknown(State(app): State<Arc<App>>) -> Response {
    unknown_source(&app)
}

fn unknown_source(app: &App) -> Response {
    app.metrics.count_unknown("source");
    plain(StatusCode::NOT_FOUND, "There is no such source.")
}

fn wrong_method(app: &App, source: &Source) -> Response {
    app.metrics.count_unknown("method");
    let mut response = plain(
        StatusCode::METHOD_NOT_ALLOWED,
        "Webhooks are sent with POST.",
    );
    let mut methods: Vec<&str> = source.methods().map(Method::as_str).collect();
    methods.dedup();
    if let Ok(value) = HeaderValue::from_str(&methods.join(", ")) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}

impl Hook<'_> {
    async fn answer(&self, parts: &Parts, body: Body) -> Response {
        if let Err(refused) = self.may_come(parts) {
            return refused.into_response();
        }
        let config = &self.app.config;
        let limits = Limits {
            max_bytes: config.max_body.0,
            within: config.body_timeout.into(),
            budget: &self.app.budget,
        };
        match receive_body(&parts.headers, body, limits).await {
            Ok(received) => self.received(parts, received.bytes.clone()).await,
            Err((outcome, reason)) => {
                let known = Known {
                    closes: true,
                    ..Known::default()
                };
                self.refuse(outcome, reason, known).into_response()
            }
        }
    }

    /// Refuses what need not be read to be refused.
    fn may_come(&self, parts: &Parts) -> Result<(), Box<Answer>> {
        let closed = |status| Known {
            status,
            closes: true,
            ..Known::default()
        };
        let refused = if self.app.is_stopping() {
            self.refuse(Outcome::Unavailable, Reason::ShuttingDown, closed(None))
        } else if !self.comes_from_listed() {
            let known = Known {
                signature_valid: Some(false),
                ..closed(None)
            };
            self.refuse(Outcome::Signature, Reason::AddressNotAllowed, known)
        } else if is_compressed(parts) {
            self.refuse(
                Outcome::Malformed,
                Reason::ContentEncoding,
                closed(Some(415)),
            )
        } else {
            return Ok(());
        };
        Err(Box::new(refused))
    }

    fn comes_from_listed(&self) -> bool {
        let Some(list) = &self.source.allow_from else {
            return true;
        };
        self.remote.is_some_and(|remote| list.contains(remote))
    }

    async fn received(&self, parts: &Parts, body: Bytes) -> Response {
        let url = self.url(parts);
        let request = sekali_verify::Request {
            method: &parts.method,
            url: &url,
            tail: tail(parts.uri.path()),
            headers: &parts.headers,
            body: &body,
        };
        let answer = match self.handshake(&request).await {
            Some(Ok(response)) => return response,
            Some(Err(rejection)) => self.rejected(rejection, &request).await,
            None if parts.method != Method::POST => return wrong_method(self.app, self.source),
            None => self.verify(&request).await,
        };
        answer.into_response()
    }

    /// Gives the URL as its sender called it; a source that knows its own takes only the query from the request.
    fn url(&self, parts: &Parts) -> String {
        let Some(known) = &self.source.public_url else {
            return public_url(parts, &self.app.config);
        };
        let tail = match tail(parts.uri.path()) {
            "" => String::new(),
            tail => format!("/{tail}"),
        };
        match parts.uri.query() {
            Some(query) => format!("{known}{tail}?{query}"),
            None => format!("{known}{tail}"),
        }
    }

    async fn verify(&self, request: &sekali_verify::Request<'_>) -> Answer {
        match self.proven(request).await {
            Ok(verified) => self.verified(&verified, request).await,
            Err(rejection) => self.rejected(rejection, request).await,
        }
    }

    /// Proves who sent a request, and fetches the keys that are needed for it.
    pub(super) async fn proven(
        &self,
        request: &sekali_verify::Request<'_>,
    ) -> Result<Verified, Rejection> {
        let mut documents = self.app.keys.at(&self.source.id, self.received_at);
        let mut outcome = self.source.verify(request, self.received_at, &documents);
        for _ in 0..KEY_FETCHES {
            let Err(Rejection::KeyNeeded(document)) = &outcome else {
                break;
            };
            // Whoever sends decides what is fetched, and has proven nothing yet.
            let may_ask = || {
                let throttle = &self.app.throttle;
                throttle.fetch(&self.source.id, self.remote, self.received_at)
            };
            let fetched = documents.fetch(document, may_ask).await;
            if let Err(FetchError::Throttled) = fetched {
                tracing::debug!(source = &*self.source.id, "a key was not fetched");
                break;
            }
            if let Err(error) = fetched {
                tracing::warn!(
                    source = &*self.source.id,
                    url = document.url,
                    code = error.code(),
                    error = sekali::chain(&error),
                    "a key could not be fetched"
                );
                break;
            }
            outcome = self.source.verify(request, self.received_at, &documents);
        }
        outcome
    }

    async fn verified(&self, verified: &Verified, request: &sekali_verify::Request<'_>) -> Answer {
        let drift_ms = verified.drift_ms();
        if let Err(seconds) = self
            .app
            .throttle
            .verified(&self.source.id, self.received_at)
        {
            let known = Known {
                retry_after: Some(seconds),
                ..self.known(request.body, drift_ms)
            };
            return self.refuse(Outcome::Throttled, Reason::RateLimited, known);
        }
        match identify(self.source, verified, self.arrival(request)) {
            Ok(events) => self.admit(events, None, drift_ms).await,
            Err(refusal) => self.unusable(refusal, self.known(request.body, drift_ms)),
        }
    }

    fn arrival<'r>(&self, request: &sekali_verify::Request<'r>) -> Arrival<'r> {
        Arrival {
            headers: request.headers,
            url: Some(*request),
            now_ms: self.received_at,
        }
    }
}

/// Gives the path behind the source's name.
fn tail(path: &str) -> &str {
    let path = path.strip_prefix("/hooks/").unwrap_or_default();
    path.split_once('/').map_or("", |(_, tail)| tail)
}

fn is_compressed(parts: &Parts) -> bool {
    let coding = parts.headers.get(header::CONTENT_ENCODING);
    coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
