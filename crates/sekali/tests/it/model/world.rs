//! The nodes of a run, each in a runtime of its own that can be taken away in the middle of anything, and their database.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::HeaderMap;
use sekali::event::Delivery;
use sekali::identify::{Arrival, identify};
use sekali::observer::Observer;
use sekali::store::{ReadDepth, Setup};
use sekali::{
    Clock, Database, Engine, EngineOptions, Limits, Outcome, Schema, Source, Sources, Store,
    StoreOptions,
};
use sekali_verify::NoDocuments;
use tokio::runtime::{Builder, Runtime};

use super::answers::Request;
use super::events::Body;
use super::fuse::{Fuse, Moment};
use crate::support::{DOCS, Place, START_MS, query, script, sources, store_name};

/// How many nodes there are where a store takes several; on SQLite, deliveries to the others go to the one.
pub(super) const NODES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(30);
/// How far the nodes' own clocks are off, in milliseconds.
const SKEWS: [i64; NODES] = [0, 600_000, -600_000];

const SOURCE: &str = r#"
[[source]]
id = "model"
unsigned = true
equal_version = "tie_break"
retry = { base = "100ms", cap = "1s", max_attempts = 1000 }
[source.map]
event_id = "/id"
event_type = "/type"
entity_id = "/entity"
version = "/version"
[[source.effect]]
kind = "upsert"
when = ["doc.updated"]
table = "docs"
key = { entity = "/entity" }
version_column = "version"
columns = { title = "/title", event = "event:id" }
[[source.effect]]
kind = "delete"
when = ["doc.deleted"]
table = "docs"
key = { entity = "/entity" }
version_column = "version"
"#;

const REFUSES: &str = "
    create trigger refuses_insert before insert on docs when new.title = 'refused' begin
        select raise(abort, 'refused'); end;
    create trigger refuses_update before update on docs when new.title = 'refused' begin
        select raise(abort, 'refused'); end;";

struct Silent;

impl Observer for Silent {}

pub(super) struct World {
    seed: u64,
    place: Place,
    /// The database's clock.
    clock: Clock,
    /// Looks at the database, beside the nodes.
    runtime: Runtime,
    store: Option<Store>,
    nodes: Vec<Node>,
    claims: usize,
    /// Why deliveries were not admitted.
    pub(super) errors: Arc<Mutex<Vec<String>>>,
}

/// What will be answered about the events of a request; `None` where nobody answers.
type Answer = tokio::task::JoinHandle<Option<Vec<Outcome>>>;

struct Node {
    runtime: Runtime,
    engine: Engine,
    clock: Clock,
    fuse: Fuse,
}

impl World {
    pub(super) fn start(seed: u64) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut world = Self {
            seed,
            place: Place::new(),
            clock: Clock::manual(START_MS),
            runtime,
            store: None,
            nodes: Vec::new(),
            claims: 0,
            errors: Arc::default(),
        };
        let first = match store_name().as_str() {
            "sqlite" => 1,
            _ => NODES,
        };
        let made = world.runtime.block_on(async {
            let store = world
                .open(world.place.database.clone(), false, Schema::Make)
                .await;
            script(&store, DOCS).await;
            script(&store, REFUSES).await;
            store
        });
        world.store = Some(made);
        world.nodes = (0..first).map(|node| world.node(node)).collect();
        world
    }

    async fn open(&self, database: Database, exclusive: bool, schema: Schema) -> Store {
        let options = StoreOptions {
            clock: self.clock.clone(),
            exclusive,
            schema,
            lease: LEASE,
            allow_unsafe_durability: true,
            ..StoreOptions::serving(database)
        };
        let end = Instant::now() + PATIENCE;
        loop {
            match Store::open(options.clone()).await {
                Ok(store) => return store,
                // What is left of a node that crashed still holds the file.
                Err(_) if exclusive && Instant::now() < end => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) => panic!("seed {}: {}", self.seed, sekali::chain(&error)),
            }
        }
    }

    fn node(&self, number: usize) -> Node {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let clock = Clock::manual(self.clock.now_ms() + SKEWS[number]);
        let options = EngineOptions {
            sources: Sources::new(sources(SOURCE)).unwrap(),
            retired: Vec::new(),
            limits: Limits {
                lease: LEASE,
                poll: Duration::from_millis(10),
                // Little at once, so that the workers meet each other.
                claim_len: 4,
                apply_len: 2,
                ..Limits::default()
            },
            clock: clock.clone(),
            observer: Arc::new(Silent),
            workers: 2,
        };
        let is_file = matches!(self.place.database, Database::Sqlite(_));
        let (fuse, database) = Fuse::before(&self.place.database);
        let engine = runtime.block_on(async {
            let store = self.open(database, is_file, Schema::Make).await;
            fuse.put_into(&store).await;
            Engine::start(store, options).await.unwrap()
        });
        Node {
            runtime,
            engine,
            clock,
            fuse,
        }
    }

    fn index(&self, node: usize) -> usize {
        node % self.nodes.len()
    }

    /// Sends all requests at once, each to its node, and returns what was answered about the events of each.
    ///
    /// Every node works, so that every request has an answer.
    pub(super) fn deliver_all(&mut self, sent: Vec<Request>) -> Vec<Option<Vec<Outcome>>> {
        self.errors.lock().unwrap().clear();
        let outcomes = self.await_all(self.send(sent));
        let is_answered = outcomes.iter().all(Option::is_some);
        let errors = self.errors.lock().unwrap();
        assert!(is_answered, "seed {}, no trouble: {errors:?}", self.seed);
        drop(errors);
        outcomes
    }

    fn await_all(&self, answers: Vec<Answer>) -> Vec<Option<Vec<Outcome>>> {
        self.runtime.block_on(async {
            let mut outcomes = Vec::new();
            for answer in answers {
                let Ok(answer) = tokio::time::timeout(PATIENCE, answer).await else {
                    let errors = self.errors.lock().unwrap();
                    panic!("seed {}: a request has no answer: {errors:?}", self.seed);
                };
                outcomes.push(answer.unwrap_or_default());
            }
            outcomes
        })
    }

    fn send(&self, sent: Vec<Request>) -> Vec<Answer> {
        let send = |(node, bodies): Request| {
            let node = &self.nodes[self.index(node)];
            let source = node.engine.sources().get("model").unwrap();
            let now_ms = node.clock.now_ms();
            let deliveries = bodies.iter().map(|body| delivery(source, body, now_ms));
            let deliveries = deliveries.collect();
            let (admission, errors) = (node.engine.admission().clone(), self.errors.clone());
            node.runtime.spawn(async move {
                match admission.admit_all(deliveries).await {
                    Ok(receipts) => Some(receipts.iter().map(|receipt| receipt.outcome).collect()),
                    Err(error) => {
                        errors.lock().unwrap().push(sekali::chain(&error));
                        None
                    }
                }
            })
        };
        sent.into_iter().map(send).collect()
    }

    /// Takes a node away at one of its commits, and starts it again; whoever was on it has no answer.
    pub(super) fn crash(
        &mut self,
        node: usize,
        sent: Vec<Request>,
        (after, moment): (Duration, Moment),
    ) -> Vec<Option<Vec<Outcome>>> {
        let (index, answers) = (self.index(node), self.send(sent));
        std::thread::sleep(after);
        self.meet(index, moment);
        let node = self.nodes.remove(index);
        node.runtime.shutdown_timeout(PATIENCE);
        drop((node.engine, node.fuse));
        let outcomes = self.await_all(answers);
        let node = self.node(index);
        self.nodes.insert(index, node);
        outcomes
    }

    /// Spoils commits of a node for a moment; it has to find back by itself.
    pub(super) fn cut(
        &mut self,
        node: usize,
        sent: Vec<Request>,
        (after, moment): (Duration, Moment),
    ) -> Vec<Option<Vec<Outcome>>> {
        let (index, answers) = (self.index(node), self.send(sent));
        std::thread::sleep(after);
        self.meet(index, moment);
        self.nodes[index].fuse.mend();
        self.await_all(answers)
    }

    /// Spoils the commits of a node, and waits until one has met that, and for a moment for more: one of its workers that
    /// looked for events in vain may have been the first.
    fn meet(&self, index: usize, moment: Moment) {
        const MORE: Duration = Duration::from_millis(20);
        let fuse = &self.nodes[index].fuse;
        let (met, began) = (fuse.met(), Instant::now());
        fuse.spoil(moment);
        while fuse.met() == met || (fuse.met() < met + 3 && began.elapsed() < MORE) {
            assert!(
                began.elapsed() < PATIENCE,
                "seed {}: nothing commits",
                self.seed
            );
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    pub(super) fn restart(&mut self, node: usize) {
        let index = self.index(node);
        let node = self.nodes.remove(index);
        node.runtime.block_on(node.engine.stop(PATIENCE));
        // The way to the database lasts as long as what is behind it.
        drop((node.runtime, node.fuse));
        let node = self.node(index);
        self.nodes.insert(index, node);
    }

    /// Claims whatever waits, as a worker does that never comes back.
    pub(super) fn claim_and_die(&mut self) {
        self.claims += 1;
        let until = self.clock.now_ms() + i64::try_from(LEASE.as_millis()).unwrap();
        let sql = format!(
            "update webhook_inbox set processing_status = 'processing', attempts = attempts + 1, \
             lease_until = {until}, next_attempt_at = {until}, lease_token = 'gone-{}' \
             where processing_status in ('received', 'failed')",
            self.claims
        );
        let store = self.store.as_ref().unwrap();
        self.runtime.block_on(async {
            store.write(Setup { sql }).await.unwrap();
        });
    }

    pub(super) fn jump(&self, by_ms: i64) {
        self.clock.advance(by_ms);
        for node in &self.nodes {
            node.clock.advance(by_ms);
            node.engine.wake();
        }
    }

    /// Moves the clock on until nothing is pending.
    pub(super) fn drain(&self) {
        let store = self.store.as_ref().unwrap();
        let end = Instant::now() + PATIENCE;
        while self
            .runtime
            .block_on(store.read(ReadDepth))
            .unwrap()
            .pending
            > 0
        {
            assert!(
                Instant::now() < end,
                "seed {}: events stay pending",
                self.seed
            );
            self.jump(LEASE.as_millis().try_into().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let store = self.store.as_ref().unwrap();
        self.runtime.block_on(query(store, sql))
    }
}

fn delivery(source: &Arc<Source>, body: &Body, now_ms: i64) -> Delivery {
    let (headers, body) = (HeaderMap::new(), body.json().into());
    let request = sekali_verify::Request::post(&headers, &body);
    let Ok(verified) = source.verify(&request, now_ms, &NoDocuments) else {
        panic!("an unsigned source takes everything");
    };
    let arrival = Arrival {
        headers: &headers,
        url: None,
        now_ms,
    };
    let mut identified = identify(source, &verified, arrival).unwrap();
    Delivery {
        event: identified.remove(0),
        source: source.clone(),
        received_at: now_ms,
        started: Instant::now(),
        remote_address: None,
        only_if_known: None,
    }
}
