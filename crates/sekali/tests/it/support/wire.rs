//! The road of a delivery as the server takes it: verify, identify, admit.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sekali::event::{Delivery, Receipt};
use sekali::identify::{Arrival, identify, identify_late};
use sekali::{Outcome, Reason, Result, Source};
use sekali_verify::{NoDocuments, Rejection};

use super::Rig;

/// Why a delivery never came to admission, or not through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<Reason>,
}

/// A request as it goes over the wire.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    /// The same request under another header value: what a forger can do with what is not signed.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        let name = HeaderName::from_static(name);
        self.headers
            .insert(name, HeaderValue::from_str(value).unwrap());
        self
    }
}

impl Rig {
    /// Signs a body now, as the sender of a source does.
    pub(crate) fn sign(&self, source: &str, body: impl Into<Bytes>) -> Request {
        let (source, body) = (self.source(source), body.into());
        let signed = source
            .prover()
            .map(|prover| prover.sign(&body, self.clock.now_ms()).unwrap());
        Request {
            headers: signed.unwrap_or_default(),
            body,
        }
    }

    /// Verifies, identifies and admits a request; a failing store is a panic.
    pub(crate) async fn receive(&self, source: &str, request: Request) -> Result<Receipt, Refused> {
        let delivery = self.delivery(source, request)?;
        Ok(self.engine.admission().admit(delivery).await.unwrap())
    }

    /// Makes the delivery of a request that carries one event, or says why it is refused.
    pub(crate) fn delivery(&self, source: &str, request: Request) -> Result<Delivery, Refused> {
        let mut deliveries = self.deliveries(source, request)?;
        assert_eq!(deliveries.len(), 1, "the request carries a batch");
        Ok(deliveries.remove(0))
    }

    /// Makes the deliveries of a request, one for each event, or says why it is refused.
    pub(crate) fn deliveries(
        &self,
        source: &str,
        request: Request,
    ) -> Result<Vec<Delivery>, Refused> {
        let (source, now_ms) = (self.source(source).clone(), self.clock.now_ms());
        let refused = |outcome, reason| Refused {
            outcome,
            reason: Some(reason),
        };
        let arrival = Arrival {
            headers: &request.headers,
            url: None,
            now_ms,
        };
        let post = sekali_verify::Request::post(&request.headers, &request.body);
        let (events, only_if_known) = match source.verify(&post, now_ms, &NoDocuments) {
            Ok(verified) => (identify(&source, &verified, arrival), None),
            Err(Rejection::Stale(stale)) if !source.strict_expiry => {
                let reason = Reason::from_code(stale.reason().code()).unwrap();
                (identify_late(&source, &stale, arrival), Some(reason))
            }
            Err(rejection) => {
                let outcome = match &rejection {
                    Rejection::Signature(_) => Outcome::Signature,
                    _ => Outcome::Timestamp,
                };
                return Err(refused(
                    outcome,
                    Reason::from_code(rejection.code()).unwrap(),
                ));
            }
        };
        let events = events.map_err(|refusal| refused(Outcome::Malformed, refusal.reason))?;
        let delivery = |event| Delivery {
            event,
            source: source.clone(),
            received_at: now_ms,
            started: Instant::now(),
            remote_address: None,
            only_if_known,
        };
        Ok(events.into_iter().map(delivery).collect())
    }

    /// Signs and receives a body, and returns what became of it.
    pub(crate) async fn send(&self, source: &str, body: impl Into<Bytes>) -> Outcome {
        match self.receive(source, self.sign(source, body)).await {
            Ok(receipt) => receipt.outcome,
            Err(refused) => refused.outcome,
        }
    }

    /// Sends a body that must be new.
    pub(crate) async fn accept(&self, source: &str, body: impl Into<Bytes>) -> i64 {
        let receipt = self.receive(source, self.sign(source, body)).await.unwrap();
        assert_eq!(receipt.outcome, Outcome::Accepted);
        receipt.seq.unwrap()
    }

    fn source(&self, id: &str) -> &Arc<Source> {
        self.engine.sources().get(id).unwrap()
    }
}
