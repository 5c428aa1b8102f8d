//! The nodes of a run, each in a runtime of its own that can be taken away in the middle of anything, and their database.

use std::collections::BTreeSet;
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

use super::Answers;
use super::events::{Body, Events};
use super::invariants::INVARIANTS;
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

struct Node {
    runtime: Runtime,
    engine: Engine,
    clock: Clock,
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
            let store = world.open(false, Schema::Make).await;
            script(&store, DOCS).await;
            script(&store, REFUSES).await;
            store
        });
        world.store = Some(made);
        world.nodes = (0..first).map(|node| world.node(node)).collect();
        world
    }

    async fn open(&self, exclusive: bool, schema: Schema) -> Store {
        let options = StoreOptions {
            clock: self.clock.clone(),
            exclusive,
            schema,
            lease: LEASE,
            allow_unsafe_durability: true,
            ..StoreOptions::serving(self.place.database.clone())
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
                ..Limits::default()
            },
            clock: clock.clone(),
            observer: Arc::new(Silent),
            workers: 2,
        };
        let is_file = matches!(self.place.database, Database::Sqlite(_));
        let engine = runtime.block_on(async {
            let store = self.open(is_file, Schema::Make).await;
            Engine::start(store, options).await.unwrap()
        });
        Node {
            runtime,
            engine,
            clock,
        }
    }

    fn index(&self, node: usize) -> usize {
        node % self.nodes.len()
    }

    /// Delivers all of it at once, each to its node, and returns what was answered.
    pub(super) fn deliver(&mut self, sent: Vec<(usize, Body)>) -> Vec<Option<Outcome>> {
        let answers = self.send(sent);
        self.runtime.block_on(async {
            let mut outcomes = Vec::new();
            for answer in answers {
                outcomes.push(answer.await.unwrap_or_default());
            }
            outcomes
        })
    }

    fn send(&self, sent: Vec<(usize, Body)>) -> Vec<tokio::task::JoinHandle<Option<Outcome>>> {
        let send = |(node, body): (usize, Body)| {
            let node = &self.nodes[self.index(node)];
            let source = node.engine.sources().get("model").unwrap();
            let delivery = delivery(source, &body, node.clock.now_ms());
            let (admission, errors) = (node.engine.admission().clone(), self.errors.clone());
            node.runtime.spawn(async move {
                match admission.admit(delivery).await {
                    Ok(receipt) => Some(receipt.outcome),
                    Err(error) => {
                        errors.lock().unwrap().push(sekali::chain(&error));
                        None
                    }
                }
            })
        };
        sent.into_iter().map(send).collect()
    }

    /// Takes a node away a moment after the deliveries were sent, and starts it again; whoever was on it has no answer.
    pub(super) fn crash(
        &mut self,
        node: usize,
        sent: Vec<(usize, Body)>,
        after: Duration,
    ) -> Vec<Option<Outcome>> {
        let (index, answers) = (self.index(node), self.send(sent));
        std::thread::sleep(after);
        let Node {
            runtime, engine, ..
        } = self.nodes.remove(index);
        runtime.shutdown_timeout(PATIENCE);
        drop(engine);
        let outcomes = self.runtime.block_on(async {
            let mut outcomes = Vec::new();
            for answer in answers {
                outcomes.push(answer.await.unwrap_or_default());
            }
            outcomes
        });
        let node = self.node(index);
        self.nodes.insert(index, node);
        outcomes
    }

    pub(super) fn restart(&mut self, node: usize) {
        let index = self.index(node);
        let Node {
            runtime, engine, ..
        } = self.nodes.remove(index);
        runtime.block_on(engine.stop(PATIENCE));
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

    fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let store = self.store.as_ref().unwrap();
        self.runtime.block_on(query(store, sql))
    }

    /// Lists what does not hold.
    pub(super) fn broken(&self, answers: &Answers) -> Vec<String> {
        let mut broken = Vec::new();
        for (what, sql) in INVARIANTS {
            let found = self.rows(sql).concat();
            if !found.is_empty() {
                broken.push(format!("{what}: {found:?}"));
            }
        }
        let stored = self.rows("select event_id from webhook_inbox").concat();
        let stored: BTreeSet<String> = stored.into_iter().collect();
        let lost = answers.answered().filter(|id| !stored.contains(*id));
        broken.extend(lost.map(|id| format!("{id} was answered and is lost")));
        broken
    }

    /// Lists in what the user's table and the events' ends differ from the model.
    pub(super) fn unlike(&self, events: &Events) -> Vec<String> {
        let bodies = self
            .rows("select cast(body as text) from webhook_payloads")
            .concat();
        let stored: BTreeSet<String> = bodies.into_iter().collect();
        let mut unlike = Vec::new();
        let rows = self.rows("select entity, event, title from docs");
        let mut expected = events.expected(&stored);
        for row in rows {
            if expected.remove(&row[0]).as_ref().map(|row| &row[..]) != Some(&row[1..]) {
                unlike.push(format!("{row:?} is not what it should be"));
            }
        }
        unlike.extend(
            expected
                .into_iter()
                .map(|row| format!("{row:?} is missing")),
        );
        let refused = events.refused();
        for row in self.rows("select event_id, processing_status, status_reason from webhook_inbox")
        {
            let is_right = match row[1].as_str() {
                "processed" | "ignored_out_of_order" => true,
                "dead_letter" => row[2] == "constraint" && refused.contains(&*row[0]),
                _ => false,
            };
            if !is_right {
                unlike.push(format!("{row:?} is not where an event ends"));
            }
        }
        unlike
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
