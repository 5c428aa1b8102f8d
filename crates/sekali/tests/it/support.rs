//! An engine in a folder of its own, and the road of a delivery as the server takes it: verify, identify, admit.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sekali::event::{Delivery, Receipt};
use sekali::identify::{Arrival, identify, identify_late};
use sekali::observer::Observer;
use sekali::store::{
    Conn, DbError, EventRow, ReadDepth, Row, Setup, ShowEvent, Story, Transaction,
};
use sekali::{
    Clock, Engine, EngineOptions, Limits, Outcome, Reason, Result, Source, SourceConfig, Sources,
    Store, StoreOptions,
};
use sekali_verify::{Rejection, Scheme, Secret};
use tempfile::TempDir;

/// 2026-12-01T00:00:00Z.
pub(crate) const START_MS: i64 = 1_796_083_200_000;
/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The user's table, and a log of every write to it.
pub(crate) const DOCS: &str = "
    create table docs (entity text primary key, version bigint, title text, event text);
    create table writes (n integer primary key, entity text, event text);
    create trigger docs_insert after insert on docs begin
        insert into writes (entity, event) values (new.entity, new.event); end;
    create trigger docs_update after update on docs begin
        insert into writes (entity, event) values (new.entity, new.event); end;";

/// A source `docs` that keeps the table in step; `settings` are further lines of its own.
pub(crate) fn docs(settings: &str) -> String {
    source("docs", settings)
}

/// Like [`docs`] under another id.
pub(crate) fn source(id: &str, settings: &str) -> String {
    format!(
        "[[source]]\nid = \"{id}\"\nscheme = \"timestamped\"\nsecrets = [\"test\"]\n{settings}\n{MAPPING}"
    )
}

const MAPPING: &str = r#"
[source.map]
event_id = "/id"
scope = "/tenant"
event_type = "/type"
entity_id = "/entity"
version = "/version"
occurred_at = "/at"
content_hash = "/hash"
[[source.effect]]
kind = "upsert"
when = ["doc.created", "doc.updated"]
table = "docs"
key = { entity = "/entity" }
version_column = "version"
columns = { title = { from = "/title", optional = true }, event = "event:id" }
[[source.effect]]
kind = "delete"
when = ["doc.deleted"]
table = "docs"
key = { entity = "/entity" }
version_column = "version"
"#;

/// The body of an update of `entity` to `version`, titled like its event.
pub(crate) fn update(id: &str, entity: &str, version: i64) -> String {
    titled(id, entity, version, id)
}

/// The body of an update with a title of its own.
pub(crate) fn titled(id: &str, entity: &str, version: i64, title: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"doc.updated","entity":"{entity}","version":{version},"title":"{title}"}}"#
    )
}

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
    dir: TempDir,
}

/// Parses the `[[source]]` tables of a config file.
pub(crate) fn sources(text: &str) -> Vec<Source> {
    #[derive(serde::Deserialize)]
    struct File {
        source: Vec<SourceConfig>,
    }
    let file: File = toml::from_str(text).unwrap();
    let resolve = |_: &str| Ok(b"a-secret-of-this-test".to_vec());
    let build = |config| Source::build(config, &resolve).unwrap();
    file.source.into_iter().map(build).collect()
}

impl Rig {
    /// Starts an engine with the `docs` table, one worker and the sources of a text.
    pub(crate) async fn start(text: &str) -> Self {
        Self::with(sources(text), Options::default()).await
    }

    pub(crate) async fn with(sources: Vec<Source>, options: Options) -> Self {
        let (dir, clock) = (TempDir::new().unwrap(), Clock::manual(START_MS));
        let store = open(&dir, &clock).await;
        let sql = options.setup.to_owned();
        store.write(Setup { sql }).await.unwrap();
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
            dir,
        }
    }

    /// Stops the engine and starts another one on the same file.
    pub(crate) async fn restart(self, sources: Vec<Source>, retired: &[&str]) -> Result<Self> {
        self.engine.stop(PATIENCE).await;
        let store = open(&self.dir, &self.clock).await;
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

    /// Signs a body now, as the sender of a source does.
    pub(crate) fn sign(&self, source: &str, body: impl Into<Bytes>) -> Request {
        let (source, body) = (self.source(source), body.into());
        let secret = Secret::new("a-secret-of-this-test").unwrap();
        let signed = source
            .scheme()
            .map(|scheme: &Scheme| scheme.sign(&secret, &body, self.clock.now_ms()));
        Request {
            headers: signed.into_iter().flatten().collect(),
            body,
        }
    }

    /// Verifies, identifies and admits a request; a failing store is a panic.
    pub(crate) async fn receive(&self, source: &str, request: Request) -> Result<Receipt, Refused> {
        let delivery = self.delivery(source, request)?;
        Ok(self.engine.admission().admit(delivery).await.unwrap())
    }

    /// Makes the delivery of a request, or says why it is refused.
    pub(crate) fn delivery(&self, source: &str, request: Request) -> Result<Delivery, Refused> {
        let (source, now_ms) = (self.source(source).clone(), self.clock.now_ms());
        let refused = |outcome, reason| Refused {
            outcome,
            reason: Some(reason),
        };
        let arrival = Arrival {
            headers: &request.headers,
            now_ms,
        };
        let verified = source
            .verifier(now_ms)
            .verify(&request.headers, request.body);
        let (event, only_if_known) = match verified {
            Ok(verified) => (identify(&source, &verified, arrival), None),
            Err(Rejection::Stale(stale)) if !source.strict_expiry => {
                let reason = Reason::from_code(stale.reason().code());
                (identify_late(&source, &stale, arrival), reason)
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
        Ok(Delivery {
            event: event.map_err(|refusal| refused(Outcome::Malformed, refusal.reason))?,
            source,
            received_at: now_ms,
            started: Instant::now(),
            remote_address: None,
            only_if_known,
        })
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

    /// Runs statements beside the engine.
    pub(crate) async fn script(&self, sql: &str) -> Result<()> {
        let sql = sql.to_owned();
        self.engine.store().write(Setup { sql }).await
    }

    /// Runs a query; every value comes as text, null as `-`.
    pub(crate) async fn query(&self, sql: &str) -> Vec<Vec<String>> {
        let sql = sql.to_owned();
        self.engine.store().read(Query { sql }).await.unwrap()
    }

    /// Runs a query of one column and joins its rows by blanks.
    pub(crate) async fn column(&self, sql: &str) -> String {
        let rows = self.query(sql).await;
        rows.concat().join(" ")
    }
}

async fn open(dir: &TempDir, clock: &Clock) -> Store {
    let store = Store::open(StoreOptions {
        path: dir.path().join("test.db"),
        clock: clock.clone(),
        exclusive: true,
    });
    store.await.unwrap()
}

struct Query {
    sql: String,
}

impl Transaction for Query {
    type Output = Vec<Vec<String>>;
    const STEP: &'static str = "run a test's query";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Self::Output> {
        let rows = conn.fetch(&self.sql, &[], |row| Ok(texts(row))).await;
        rows.map_err(|source: DbError| sekali::Error::Store {
            step: Self::STEP,
            source,
        })
    }
}

fn texts(row: &Row<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    while row.opt_bytes(texts.len()).is_ok() {
        let index = texts.len();
        texts.push(match (row.opt_text(index), row.opt_int(index)) {
            (Ok(text), _) => text.unwrap_or_else(|| "-".to_owned()),
            (_, Ok(number)) => number.map_or_else(|| "-".to_owned(), |number| number.to_string()),
            _ => "(bytes)".to_owned(),
        });
    }
    texts
}
