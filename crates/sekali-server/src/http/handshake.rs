//! Questions of a provider that are no events: answered at once, recorded, and followed by what they ask for.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode};
use sekali::store::{HandshakeOutcome, NoteHandshake};
use sekali_verify::{Handshake, Rejection, Reply};

use super::App;
use super::answer::REQUEST_ID;
use super::hooks::Hook;

impl Hook<'_> {
    /// Sends a handshake's reply; what it leads to goes on behind.
    fn replied(&self, handshake: &Handshake, reply: Reply) -> Response {
        let name = handshake.name.as_str();
        let outcome = match reply.is_answered {
            true => HandshakeOutcome::Answered,
            false => HandshakeOutcome::Refused,
        };
        tracing::info!(
            source = &*self.source.id,
            handshake = name,
            outcome = outcome.code(),
            "a handshake was asked"
        );
        let note = NoteHandshake {
            source: self.source.id.clone(),
            at_ms: self.received_at,
            kind: name.to_owned(),
            outcome,
            remote_address: self.remote.map(|remote| remote.to_string()),
            detail: reply.confirm.as_ref().map(|(url, _)| url.clone()),
            secret: reply.show,
        };
        let confirm = reply.confirm.filter(|_| self.source.confirm_handshakes);
        // What anybody can ask is answered as often as it is asked, and recorded only as often as forgers are heard.
        let is_flood = !handshake.is_verified()
            && self.remote.is_some_and(|address| {
                self.app
                    .throttle
                    .unverified(address, self.received_at)
                    .is_err()
            });
        if !is_flood {
            let app = Arc::clone(self.app);
            tokio::spawn(async move { follow(&app, note, confirm).await });
        }
        let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
        let mut response = (status, reply.body).into_response();
        // A reply has the headers that the provider asks for, and no guess about its body.
        response.headers_mut().remove(http::header::CONTENT_TYPE);
        for (name, value) in reply.headers {
            if let Some(name) = name {
                response.headers_mut().insert(name, value);
            }
        }
        if let Ok(id) = HeaderValue::from_str(&self.request_id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response
    }

    /// Finds out whether the request asks instead of telling, and answers it.
    pub(super) async fn handshake(
        &self,
        request: &sekali_verify::Request<'_>,
    ) -> Option<Result<Response, Rejection>> {
        let prover = self.source.prover()?;
        let handshake = prover.handshake(&self.source.handshakes, request)?;
        if handshake.is_verified()
            && let Err(rejection) = self.proven(request).await
        {
            return Some(Err(rejection));
        }
        let documents = self.app.keys.at(&self.source.id, self.received_at);
        let reply = prover.answer(handshake, request, self.received_at, &documents);
        Some(reply.map(|reply| self.replied(handshake, reply)))
    }
}

/// Records a handshake, and calls the address that it asks to confirm, where that is switched on.
async fn follow(app: &App, note: NoteHandshake, confirm: Option<(String, Vec<String>)>) {
    let source = note.source.clone();
    let record = |note| async {
        if let Err(error) = app.store.write(note).await {
            tracing::warn!(
                error = sekali::chain(&error),
                "a handshake could not be recorded"
            );
        }
    };
    record(note.clone()).await;
    let Some((url, hosts)) = confirm else {
        return;
    };
    let confirmed = app.keys.confirm(&url, &hosts).await;
    let (outcome, detail) = match &confirmed {
        Ok(()) => (HandshakeOutcome::Confirmed, url),
        Err(error) => (
            HandshakeOutcome::Failed,
            format!("{url}: {}: {}", error.code(), sekali::chain(error)),
        ),
    };
    tracing::info!(
        source = &*source,
        outcome = outcome.code(),
        "a handshake was confirmed or failed"
    );
    record(NoteHandshake {
        at_ms: app.clock.now_ms(),
        outcome,
        detail: Some(detail),
        secret: None,
        ..note
    })
    .await;
}
