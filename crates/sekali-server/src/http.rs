//! The HTTP side: connections, routes, and the way of a delivery to its answer.
//!
//! The router is a table of contents. Connections are bounded in number and in the time that the head of a request may
//! take; bodies are bounded in [`receive`]. The only place that knows status codes beside the sources' own is
//! [`answer`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, get};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::config::ServerConfig;
use crate::telemetry::Metrics;

mod answer;
mod handshake;
mod health;
mod hooks;
mod keys;
mod origin;
mod receive;
mod throttle;

use health::Trouble;
pub(crate) use keys::Keys;
use receive::Budget;
use throttle::Throttle;

/// What all requests share.
pub(crate) struct App {
    pub(crate) admission: sekali::admission::Admission,
    pub(crate) sources: sekali::Sources,
    pub(crate) store: sekali::Store,
    pub(crate) clock: sekali::Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) config: ServerConfig,
    pub(crate) keys: Keys,
    pub(crate) budget: Budget,
    pub(crate) throttle: Throttle,
    pub(crate) trouble: Trouble,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl App {
    /// Collects what requests share.
    pub(crate) fn new(
        engine: &sekali::Engine,
        metrics: Arc<Metrics>,
        (config, keys): (ServerConfig, Keys),
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            admission: engine.admission().clone(),
            sources: engine.sources().clone(),
            store: engine.store().clone(),
            clock: engine.clock().clone(),
            metrics,
            keys,
            budget: Budget::new(config.max_in_flight.0),
            throttle: Throttle::new(&config, engine.sources()),
            config,
            trouble: Trouble::default(),
            stopping,
        }
    }

    /// Tells whether the process is about to end.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}

/// What the public sees.
pub(crate) fn public(app: Arc<App>) -> Router {
    Router::new()
        .route("/hooks/{source}", any(hooks::receive))
        .route("/hooks/{source}/", any(hooks::receive))
        .route("/hooks/{source}/{*tail}", any(hooks::receive))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(hooks::unknown)
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

/// What operators see.
pub(crate) fn internal(app: Arc<App>) -> Router {
    Router::new()
        .route("/metrics", get(health::metrics))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .with_state(app)
}

/// Serves connections until it is told to stop, then lets the open ones finish within `drain`.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    config: &ServerConfig,
    mut stop: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(config.max_connections));
    let graceful = GracefulShutdown::new();
    let header_timeout = Duration::from(config.header_timeout);
    while !*stop.borrow() {
        let slot = tokio::select! {
            slot = slots.clone().acquire_owned() => slot,
            _ = stop.changed() => break,
        };
        let (stream, remote) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                // Out of file descriptors, or a connection that was gone before it was taken.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            _ = stop.changed() => break,
        };
        // Small answers must not wait for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let service = tower::ServiceBuilder::new()
            .map_request(move |request| with_remote(request, remote))
            .service(router.clone());
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // What breaks a connection is the peer's doing; its request, if any, has its own record.
            let _ = connection.await;
            drop(slot);
        });
    }
    drop(listener);
    let drain = Duration::from(config.drain);
    if tokio::time::timeout(drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(
            ?drain,
            "connections were still open when their time was over"
        );
    }
}

fn with_remote(
    mut request: http::Request<hyper::body::Incoming>,
    remote: SocketAddr,
) -> http::Request<hyper::body::Incoming> {
    request.extensions_mut().insert(remote);
    request
}
