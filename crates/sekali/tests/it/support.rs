//! An engine in a folder of its own, whose clock is moved by hand.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sekali::observer::Observer;
use sekali::store::{EventRow, ReadDepth, Setup, ShowEvent, Story};
use sekali::{
    Clock, Database, Engine, EngineOptions, Limits, Result, Source, Sources, Store, StoreOptions,
};
use sekali_testkit::{mariadb, postgres};
use tempfile::TempDir;

mod dialect;
mod hold;
mod sql;
mod table;
mod wire;

pub(crate) use hold::settle;
pub(crate) use sql::{query, script};
pub(crate) use table::{DOCS, docs, source, sources, titled, update};
pub(crate) use wire::{Refused, Request};

/// 2026-12-01T00:00:00Z.
pub(crate) const START_MS: i64 = 1_796_083_200_000;
/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a rig is made of beside its sources.
pub(crate) struct Options {
    pub(crate) setup: &'static str,
    pub(crate) workers: usize,
    pub(crate) limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        let poll = Duration::from_millis(20);
        Self {
            setup: DOCS,
            workers: 1,
            limits: Limits {
                // What a transaction takes can be told from what the one before left.
                admission_batches_at_once: 1,
                poll,
                ..Limits::default()
            },
        }
    }
}

/// Remembers how many deliveries each admission transaction took.
#[derive(Default)]
pub(crate) struct Batches(Mutex<Vec<usize>>);

impl Batches {
    /// The length of each, in their order.
    pub(crate) fn lens(&self) -> Vec<usize> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn largest(&self) -> usize {
        self.0.lock().unwrap().iter().copied().max().unwrap_or(0)
    }
}

impl Observer for Batches {
    fn admitted_batch(&self, len: usize) {
        self.0.lock().unwrap().push(len);
    }
}

/// A running engine with its folder and its clock.
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) clock: Clock,
    pub(crate) batches: Arc<Batches>,
    limits: Limits,
    workers: usize,
    place: Place,
}

/// A database of its own, on the store that the tests are run for.
pub(crate) struct Place {
    pub(crate) database: Database,
    /// The folder of a file.
    _dir: Option<TempDir>,
}

impl Place {
    /// Makes one on the store that `SEKALI_TEST_STORE` names: `sqlite`, `postgres` or `mariadb`.
    pub(crate) fn new() -> Self {
        let (database, dir) = match store_name().as_str() {
            "sqlite" => {
                let dir = TempDir::new().unwrap();
                (Database::Sqlite(dir.path().join("test.db")), Some(dir))
            }
            "postgres" => (Database::Postgres(postgres::server().database()), None),
            "mariadb" => (Database::MySql(mariadb::server().database()), None),
            other => panic!("SEKALI_TEST_STORE={other}: write sqlite, postgres or mariadb"),
        };
        Self {
            database,
            _dir: dir,
        }
    }
}

/// Returns the name of the store that the tests are run for.
#[expect(
    clippy::disallowed_methods,
    reason = "the store is chosen for a whole run"
)]
pub(crate) fn store_name() -> String {
    std::env::var("SEKALI_TEST_STORE").unwrap_or_else(|_| "sqlite".to_owned())
}

impl Rig {
    /// Starts an engine with the `docs` table, one worker and the sources of a text.
    pub(crate) async fn start(text: &str) -> Self {
        Self::with(sources(text), Options::default()).await
    }

    pub(crate) async fn with(sources: Vec<Source>, options: Options) -> Self {
        let (place, clock) = (Place::new(), Clock::manual(START_MS));
        let store = open(&place, &clock).await;
        for sql in dialect::translated(options.setup) {
            store.write(Setup { sql }).await.unwrap();
        }
        let (limits, workers, batches) = (options.limits, options.workers, Arc::default());
        let engine = Engine::start(
            store,
            EngineOptions {
                sources: Sources::new(sources).unwrap(),
                retired: Vec::new(),
                limits,
                clock: clock.clone(),
                observer: Arc::clone(&batches) as Arc<dyn Observer>,
                workers,
            },
        );
        Self {
            engine: engine.await.unwrap(),
            clock,
            batches,
            limits,
            workers,
            place,
        }
    }

    /// Stops the engine and starts another one on the same file.
    pub(crate) async fn restart(self, sources: Vec<Source>, retired: &[&str]) -> Result<Self> {
        self.engine.stop(PATIENCE).await;
        let store = open(&self.place, &self.clock).await;
        let engine = Engine::start(
            store,
            EngineOptions {
                sources: Sources::new(sources).unwrap(),
                retired: retired.iter().map(|id| (*id).to_owned()).collect(),
                limits: self.limits,
                clock: self.clock.clone(),
                observer: Arc::clone(&self.batches) as Arc<dyn Observer>,
                workers: self.workers,
            },
        );
        let engine = engine.await?;
        Ok(Self { engine, ..self })
    }

    /// Waits until nothing is pending.
    pub(crate) async fn drain(&self) {
        self.until("nothing is pending", async || {
            self.engine.store().read(ReadDepth).await.unwrap().pending == 0
        })
        .await;
    }

    /// Waits until an event stands there.
    pub(crate) async fn settled(&self, id: &str, status: &str) -> EventRow {
        self.until(&format!("{id} is {status}"), async || {
            self.event(id).await.status == status
        })
        .await;
        self.event(id).await
    }

    /// Waits until something holds, within bounds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let started = Instant::now();
        while !holds().await {
            if started.elapsed() > PATIENCE {
                let sql = "select event_id, processing_status, status_reason, attempts, next_attempt_at, error_message \
                    from webhook_inbox order by seq desc limit 20";
                panic!(
                    "not within {PATIENCE:?}: {what}; {:?}",
                    self.query(sql).await
                );
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Moves the clock and has the worker look.
    pub(crate) fn advance(&self, by_ms: i64) {
        self.clock.advance(by_ms);
        self.engine.wake();
    }

    pub(crate) async fn event(&self, id: &str) -> EventRow {
        self.story(id).await.event
    }

    pub(crate) async fn story(&self, id: &str) -> Story {
        let (id, source) = (id.to_owned(), None);
        let shown = self.engine.store().read(ShowEvent { id, source }).await;
        shown.unwrap()
    }

    /// Returns an event's status and reason.
    pub(crate) async fn standing(&self, id: &str) -> (String, String) {
        let event = self.event(id).await;
        (event.status, event.reason.unwrap_or_default())
    }
}

async fn open(place: &Place, clock: &Clock) -> Store {
    let store = Store::open(StoreOptions {
        clock: clock.clone(),
        // The servers of tests do not wait for the disk.
        allow_unsafe_durability: true,
        ..StoreOptions::serving(place.database.clone())
    });
    store.await.unwrap()
}
