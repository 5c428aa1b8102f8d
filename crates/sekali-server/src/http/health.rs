//! Health and metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use sekali::store::{Ping, ReadDepth};

use super::App;

/// How long the store may take to show that it answers.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// Says that the process runs.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Says whether deliveries can be taken in: the store answers, and the process is not about to end.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    if app.is_stopping() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    match tokio::time::timeout(READY_WITHIN, app.store.read(Ping)).await {
        Ok(Ok(_)) => "ready\n".into_response(),
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the store does not answer\n",
        )
            .into_response(),
    }
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
