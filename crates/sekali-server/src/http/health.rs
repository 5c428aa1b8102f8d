//! Health and metrics.
//!
//! A node is ready where the store answers and takes writes. That a disk is full shows only when something is stored:
//! after a delivery that could not be, the node is not ready until the next one is, or senders have come again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use sekali::store::{Ping, ReadDepth};

use super::App;

/// How long the store may take to show that it answers.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// How long a delivery that could not be stored counts: a little longer than senders are told to stay away.
const TROUBLE_LASTS: Duration = Duration::from_secs(6);

/// When a delivery could not be stored because of the store.
pub(crate) struct Trouble {
    since: Instant,
    /// In milliseconds since then, from 1; 0 once a delivery was stored.
    last_ms: AtomicU64,
}

impl Default for Trouble {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }
}

impl Trouble {
    /// Notes that the store could not take a delivery.
    pub(crate) fn note(&self) {
        self.last_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Notes that the store took a delivery.
    pub(crate) fn is_over(&self) {
        // Written to only where it says something else, as every delivery comes by.
        if self.last_ms.load(Ordering::Relaxed) != 0 {
            self.last_ms.store(0, Ordering::Relaxed);
        }
    }

    fn is_recent(&self) -> bool {
        let last_ms = self.last_ms.load(Ordering::Relaxed);
        let age_ms = u128::from(self.now_ms().saturating_sub(last_ms));
        last_ms != 0 && age_ms < TROUBLE_LASTS.as_millis()
    }

    fn now_ms(&self) -> u64 {
        let ms = self.since.elapsed().as_millis() + 1;
        u64::try_from(ms).unwrap_or(u64::MAX)
    }
}

/// Says that the process runs.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Says whether deliveries can be taken in.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let why = if app.is_stopping() {
        "stopping\n"
    } else if app.trouble.is_recent() {
        "a delivery could not be stored a moment ago\n"
    } else {
        match tokio::time::timeout(READY_WITHIN, app.store.read(Ping)).await {
            Ok(Ok(())) => return "ready\n".into_response(),
            Ok(Err(_)) => "the store cannot be written\n",
            Err(_) => "the store does not answer\n",
        }
    };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

/// Shows all numbers.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let depth = app.store.read(ReadDepth).await.unwrap_or_default();
    let text = app.metrics.render(depth, app.clock.now_ms());
    (
        [(
            header::CONTENT_TYPE,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        )],
        text,
    )
        .into_response()
}
