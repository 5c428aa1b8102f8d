//! Serving: everything started in order, and stopped in reverse once it is told to.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use sekali::store::{DbErrorKind, Setup};
use sekali::{Clock, Database, Engine, EngineOptions, Schema, Store, StoreOptions, chain};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::config::{Config, LockConfig};
use crate::http::{self, App};
use crate::role::Role;
use crate::telemetry::Metrics;

mod prune;

pub(crate) use prune::prune_all;

/// How long new connections still get a 503 instead of none at all, so that a load balancer sees the end coming.
const GRACE: Duration = Duration::from_millis(500);

/// Where a server listens.
pub(crate) struct Listeners {
    /// For webhooks, where they are received.
    pub(crate) public: Option<TcpListener>,
    /// For metrics.
    pub(crate) internal: Option<TcpListener>,
}

impl Listeners {
    /// Opens the configured addresses.
    pub(crate) async fn bind(config: &Config, role: Role) -> anyhow::Result<Self> {
        let bind = async |address: Option<SocketAddr>| match address {
            Some(address) => {
                let listener = TcpListener::bind(address).await;
                let listener = listener.with_context(|| format!("could not listen on {address}"));
                listener.map(Some)
            }
            None => Ok(None),
        };
        let public = role.receives().then_some(config.server.listen);
        Ok(Self {
            internal: bind(config.server.internal_listen).await?,
            public: bind(public).await?,
        })
    }

    /// Tells where they really listen, which differs from the configuration where that asks for any free port.
    fn addresses(&self) -> [String; 2] {
        let text = |listener: &TcpListener| {
            let address = listener.local_addr();
            address.map_or_else(|_| "unknown".to_owned(), |address| address.to_string())
        };
        [&self.public, &self.internal].map(|listener| match listener {
            Some(listener) => text(listener),
            None => "none".to_owned(),
        })
    }
}

/// Opens the store of a configuration for a command; a database that is not there yet is not made.
pub(crate) async fn open_store(config: &Config) -> anyhow::Result<Store> {
    let database = config.database()?;
    if let Database::Sqlite(path) = &database
        && !path.exists()
    {
        let (what, name) = ("database", path.display().to_string());
        let missing = anyhow::Error::new(sekali::Error::NotFound { what, name });
        return Err(missing.context("`sekali serve` or `sekali migrate` makes the database"));
    }
    Ok(Store::open(options(config, StoreOptions::beside(database))).await?)
}

/// Completes the options of a store by what the configuration says.
fn options(config: &Config, options: StoreOptions) -> StoreOptions {
    StoreOptions {
        lease: config.limits().lease,
        allow_unsafe_durability: config.store.allow_unsafe_durability,
        ..options
    }
}

/// Opens the store of a configuration as it is, to try the configuration out.
pub(crate) async fn try_store(config: &Config) -> anyhow::Result<Store> {
    let beside = StoreOptions::beside(config.database()?);
    let options = StoreOptions {
        schema: Schema::Any,
        ..options(config, beside)
    };
    Ok(Store::open(options).await?)
}

/// Opens the store of a configuration, makes what is missing and runs the set-up statements.
pub(crate) async fn make_store(config: &Config, exclusive: bool) -> anyhow::Result<Store> {
    let serving = StoreOptions::serving(config.database()?);
    let connect_within = config.store.connect_within.map(Into::into);
    let options = StoreOptions {
        exclusive,
        connect_within: connect_within.unwrap_or(serving.connect_within),
        ..options(config, serving)
    };
    let store = Store::open(options).await?;
    if let Some(sql) = config.setup()? {
        match store.write(Setup { sql }).await {
            // A role that serves need not have the right; what is missing then is told by the check of the effects.
            Err(error) if exclusive && is_forbidden(&error) => tracing::warn!(
                error = chain(&error),
                "this role may not run store.setup; `sekali migrate` does it with one that may"
            ),
            ran => ran.context("store.setup")?,
        }
    }
    Ok(store)
}

/// Tells whether the role lacks a right.
pub(crate) fn is_forbidden(error: &sekali::Error) -> bool {
    matches!(error, sekali::Error::Store { source, .. } if source.kind() == DbErrorKind::Forbidden)
}

/// Serves until `shutdown` is ready, then finishes what was begun.
pub(crate) async fn run(
    (config, role): (Config, Role),
    store: Store,
    listeners: Listeners,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let lock = config.lock.as_ref().map(LockConfig::start).transpose()?;
    let metrics = Arc::new(Metrics::new(lock.as_ref()));
    let engine = start(&config, role, &store, metrics.clone()).await?;
    let (stop, stopping) = watch::channel(false);
    let keys = http::Keys::new(&config, engine.sources())?;
    let app = Arc::new(App::new(
        &engine,
        metrics,
        (config.server.clone(), keys),
        stopping.clone(),
    ));
    let pruning = role
        .applies()
        .then(|| tokio::spawn(prune::prune(store, config.clone(), prune::FIRST)));
    let (close, closing) = watch::channel(false);
    let (end, ended) = watch::channel(false);
    let addresses = listeners.addresses();
    let internal = listeners.internal.map(|listener| {
        let (router, server, ended) = (http::internal(app.clone()), config.server.clone(), ended);
        tokio::spawn(async move { http::serve(listener, router, &server, ended).await })
    });
    announce(addresses, &engine, role);
    let public = async {
        let router = http::public(app);
        match listeners.public {
            Some(listener) => http::serve(listener, router, &config.server, closing).await,
            None => until(closing).await,
        }
    };
    tokio::pin!(public);
    tokio::select! {
        () = shutdown => {}
        () = &mut public => unreachable!("serving ends when it is told to, and nobody told it"),
    }
    tracing::info!("stopping: new deliveries are answered 503, what was begun is finished");
    let _ = stop.send(true);
    tokio::select! {
        () = tokio::time::sleep(GRACE) => {}
        () = &mut public => unreachable!("serving ends when it is told to, and nobody told it"),
    }
    let _ = close.send(true);
    public.await;
    let _ = end.send(true);
    if let Some(internal) = internal {
        let _ = tokio::time::timeout(Duration::from_secs(1), internal).await;
    }
    if let Some(pruning) = pruning {
        pruning.abort();
    }
    engine.stop(config.server.drain.into()).await;
    tracing::info!("stopped");
    Ok(())
}

async fn start(
    config: &Config,
    role: Role,
    store: &Store,
    observer: Arc<Metrics>,
) -> anyhow::Result<Engine> {
    let options = EngineOptions {
        sources: config.sources()?,
        retired: config.retired.clone(),
        limits: config.limits(),
        clock: Clock::System,
        observer,
        workers: match role.applies() {
            true => config.worker.count.unwrap_or(2),
            false => 0,
        },
    };
    Ok(Engine::start(store.clone(), options).await?)
}

/// Waits until it is told to end.
async fn until(mut told: watch::Receiver<bool>) {
    // Whoever could tell is gone as well at the end.
    let _ = told.wait_for(|is_told| *is_told).await;
}

fn announce([address, internal]: [String; 2], engine: &Engine, role: Role) {
    let sources: Vec<_> = engine
        .sources()
        .iter()
        .map(|source| format!("/hooks/{}", source.path))
        .collect();
    if sources.is_empty() {
        tracing::warn!("no source is configured; every webhook will be answered 404");
    }
    for source in engine.sources().iter().filter(|source| !source.is_signed()) {
        tracing::warn!(
            source = &*source.id,
            "deliveries of this source are not signed: anybody can send them"
        );
    }
    let database = engine.store().database();
    let sources = sources.join(" ");
    tracing::info!(%address, %internal, sources, %database, ?role, "ready");
}

/// Returns what waits for the signal that asks a process to end.
///
/// Signals are listened for from the call on and not only from the first wait: one that comes while a process starts
/// must not end it in the middle.
pub(crate) fn asked_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    let listen = |kind| signal(kind).context("could not listen for signals");
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
