//! The way of a delivery: receive, verify, identify, admit, answer. Each step is named below and does one thing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use sekali::event::{Delivery, NewEvent, Receipt, Rejected};
use sekali::identify::{Arrival, Refusal, identify, identify_late};
use sekali::observer::{self, Observer as _};
use sekali::{Error, Outcome, Reason, Source};
use sekali_verify::{Rejection, SignatureProblem, StaleReason, TimestampProblem};
use sha2::{Digest as _, Sha256};

use super::App;
use super::answer::{Answer, plain, request_id};
use super::receive::{Limits, receive as receive_body};

/// After how many seconds a sender comes again when nothing better is known.
const RETRY_AFTER: u64 = 5;

/// A request on its way, as far as it is known.
struct Hook<'a> {
    app: &'a App,
    source: &'a Arc<Source>,
    remote: Option<SocketAddr>,
    received_at: i64,
    started: Instant,
    request_id: String,
}

/// What is known of a delivery that is refused.
#[derive(Default)]
struct Known {
    event_id: Option<String>,
    event_type: Option<String>,
    entity_id: Option<String>,
    payload_hash: Option<[u8; 32]>,
    signature_valid: Option<bool>,
    drift_ms: Option<i64>,
    retry_after: Option<u64>,
    status: Option<u16>,
    closes: bool,
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
    if request.method() != Method::POST {
        return wrong_method(&app);
    }
    let delivery = Hook {
        app: &app,
        source,
        remote: request.extensions().get::<SocketAddr>().copied(),
        received_at: app.clock.now_ms(),
        started: Instant::now(),
        request_id: request_id(),
    };
    let (parts, body) = request.into_parts();
    delivery.answer(&parts.headers, body).await.into_response()
}

/// Answers a request that leads nowhere.
pub(crate) async fn unknown(State(app): State<Arc<App>>) -> Response {
    unknown_source(&app)
}

fn unknown_source(app: &App) -> Response {
    app.metrics.count_unknown("source");
    plain(StatusCode::NOT_FOUND, "There is no such source.")
}

fn wrong_method(app: &App) -> Response {
    app.metrics.count_unknown("method");
    let mut response = plain(
        StatusCode::METHOD_NOT_ALLOWED,
        "Webhooks are sent with POST.",
    );
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

impl Hook<'_> {
    async fn answer(&self, headers: &HeaderMap, body: Body) -> Answer {
        if self.app.is_stopping() {
            let known = Known {
                closes: true,
                ..Known::default()
            };
            return self.refuse(Outcome::Unavailable, Reason::ShuttingDown, known);
        }
        if headers
            .get(header::CONTENT_ENCODING)
            .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
        {
            let known = Known {
                status: Some(415),
                closes: true,
                ..Known::default()
            };
            return self.refuse(Outcome::Malformed, Reason::ContentEncoding, known);
        }
        let config = &self.app.config;
        let limits = Limits {
            max_bytes: config.max_body.0,
            within: config.body_timeout.into(),
            budget: &self.app.budget,
        };
        match receive_body(headers, body, limits).await {
            Ok(received) => self.verify(headers, received.bytes.clone()).await,
            Err((outcome, reason)) => self.refuse(
                outcome,
                reason,
                Known {
                    closes: true,
                    ..Known::default()
                },
            ),
        }
    }

    async fn verify(&self, headers: &HeaderMap, body: Bytes) -> Answer {
        let arrival = Arrival {
            headers,
            now_ms: self.received_at,
        };
        let verified = self
            .source
            .verifier(self.received_at)
            .verify(headers, body.clone());
        let known = |drift_ms| Known {
            payload_hash: Some(Sha256::digest(&body).into()),
            signature_valid: self.source.is_signed().then_some(true),
            drift_ms,
            ..Known::default()
        };
        match verified {
            Ok(verified) => {
                if let Err(seconds) = self
                    .app
                    .throttle
                    .verified(&self.source.id, self.received_at)
                {
                    let known = Known {
                        retry_after: Some(seconds),
                        ..known(verified.drift_ms())
                    };
                    return self.refuse(Outcome::Throttled, Reason::RateLimited, known);
                }
                match identify(self.source, &verified, arrival) {
                    Ok(event) => self.admit(event, None, verified.drift_ms()).await,
                    Err(refusal) => self.unusable(refusal, known(verified.drift_ms())),
                }
            }
            Err(Rejection::Stale(stale)) => {
                let reason = match stale.reason() {
                    StaleReason::Expired => Reason::TimestampTooOld,
                    StaleReason::InFuture => Reason::TimestampInFuture,
                };
                // Only a known event can be recognized; what cannot be identified is just too old.
                match identify_late(self.source, &stale, arrival) {
                    Ok(event) if !self.source.strict_expiry => {
                        self.admit(event, Some(reason), Some(stale.drift_ms()))
                            .await
                    }
                    _ => self.refuse(Outcome::Timestamp, reason, known(Some(stale.drift_ms()))),
                }
            }
            Err(Rejection::Timestamp(problem)) => {
                self.refuse(Outcome::Timestamp, timestamp_reason(&problem), known(None))
            }
            Err(Rejection::Signature(problem)) => {
                self.unverified(signature_reason(&problem), &body)
            }
        }
    }

    fn unverified(&self, reason: Reason, body: &Bytes) -> Answer {
        let known = Known {
            payload_hash: Some(Sha256::digest(body).into()),
            signature_valid: Some(false),
            ..Known::default()
        };
        let address = self.remote.map(|remote| remote.ip());
        match address.map_or(Ok(()), |address| {
            self.app.throttle.unverified(address, self.received_at)
        }) {
            Ok(()) => self.refuse(Outcome::Signature, reason, known),
            Err(seconds) => {
                let known = Known {
                    retry_after: Some(seconds),
                    ..known
                };
                self.refuse(Outcome::Throttled, Reason::RateLimited, known)
            }
        }
    }

    fn unusable(&self, refusal: Refusal, known: Known) -> Answer {
        self.refuse(
            Outcome::Malformed,
            refusal.reason,
            Known {
                event_id: refusal.event_id,
                ..known
            },
        )
    }

    async fn admit(
        &self,
        event: NewEvent,
        only_if_known: Option<Reason>,
        drift_ms: Option<i64>,
    ) -> Answer {
        let labels = [
            event.event_id.clone(),
            event.event_type.clone(),
            event.entity_id.clone(),
        ];
        let payload_hash = Some(event.payload_hash);
        let delivery = Delivery {
            source: self.source.clone(),
            event,
            received_at: self.received_at,
            started: self.started,
            remote_address: self.remote.map(|remote| remote.ip().to_string()),
            only_if_known,
        };
        let admitted = self.app.admission.admit(delivery);
        match tokio::time::timeout(Duration::from(self.app.config.answer_within), admitted).await {
            Ok(Ok(receipt)) => self.admitted(&receipt, labels, drift_ms),
            failed => {
                let reason = match failed {
                    Ok(Err(Error::Busy { .. })) => Reason::QueueFull,
                    Ok(Err(Error::Closed)) => Reason::ShuttingDown,
                    _ => Reason::StoreUnavailable,
                };
                let [event_id, event_type, entity_id] = labels.map(Some);
                let signature_valid = self.source.is_signed().then_some(true);
                let known = Known {
                    event_id,
                    event_type,
                    entity_id,
                    payload_hash,
                    signature_valid,
                    drift_ms,
                    ..Known::default()
                };
                self.refuse(Outcome::Unavailable, reason, known)
            }
        }
    }

    fn admitted(&self, receipt: &Receipt, labels: [String; 3], drift_ms: Option<i64>) -> Answer {
        let [event_id, event_type, entity_id] = labels;
        self.app.metrics.received(observer::Received {
            event_type: Some(&event_type),
            event_id: Some(&event_id),
            entity_id: Some(&entity_id),
            ..self.observed(receipt.outcome, receipt.reason, drift_ms)
        });
        Answer {
            status: self.source.http_status(receipt.outcome),
            outcome: receipt.outcome,
            reason: receipt
                .reason
                .filter(|_| receipt.outcome != Outcome::Duplicate),
            event_id: Some(event_id),
            request_id: self.request_id.clone(),
            retry_after: None,
            closes: false,
        }
    }

    /// Refuses a delivery: the answer now, its row behind.
    fn refuse(&self, outcome: Outcome, reason: Reason, known: Known) -> Answer {
        let status = known
            .status
            .unwrap_or_else(|| self.source.http_status(outcome));
        self.app.metrics.received(observer::Received {
            event_id: known.event_id.as_deref(),
            event_type: known.event_type.as_deref(),
            entity_id: known.entity_id.as_deref(),
            ..self.observed(outcome, Some(reason), known.drift_ms)
        });
        self.app.admission.reject(Rejected {
            source: self.source.id.clone(),
            received_at: self.received_at,
            outcome,
            reason,
            http_status: status,
            payload_hash: known.payload_hash,
            signature_valid: known.signature_valid,
            remote_address: self.remote.map(|remote| remote.ip().to_string()),
            duration_us: i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX),
        });
        let retries = matches!(outcome, Outcome::Unavailable | Outcome::Throttled);
        Answer {
            status,
            outcome,
            reason: Some(reason),
            event_id: known.event_id,
            request_id: self.request_id.clone(),
            retry_after: known.retry_after.or(retries.then_some(RETRY_AFTER)),
            closes: known.closes,
        }
    }

    fn observed(
        &self,
        outcome: Outcome,
        reason: Option<Reason>,
        drift_ms: Option<i64>,
    ) -> observer::Received<'_> {
        observer::Received {
            source: &self.source.id,
            event_type: None,
            event_id: None,
            entity_id: None,
            outcome,
            reason,
            seconds: self.started.elapsed().as_secs_f64(),
            drift_seconds: drift_ms.map(|drift_ms| drift_ms as f64 / 1000.0),
        }
    }
}

fn signature_reason(problem: &SignatureProblem) -> Reason {
    match problem {
        SignatureProblem::Missing => Reason::SignatureMissing,
        SignatureProblem::Malformed => Reason::SignatureMalformed,
        SignatureProblem::TooMany => Reason::SignatureTooMany,
        _ => Reason::SignatureWrong,
    }
}

fn timestamp_reason(problem: &TimestampProblem) -> Reason {
    match problem {
        TimestampProblem::Unit => Reason::TimestampUnit,
        TimestampProblem::OutOfRange => Reason::TimestampOutOfRange,
        TimestampProblem::Repeated => Reason::TimestampRepeated,
        _ => Reason::TimestampUnreadable,
    }
}
