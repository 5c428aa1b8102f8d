//! The nodes, their clocks and their database.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use sekali_testkit::redis::Redis;

use super::{Database, Kind};
use crate::support::{Connection, Server, Start, counted, within};

/// How many nodes there are.
pub(super) const NODES: usize = 3;
/// How often the database is asked.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
/// How long anything may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// The users the nodes connect as, by which the database tells them apart, and how far their clocks are off, in seconds.
const USERS: [(&str, &str); NODES] = [("node_a", "+0"), ("node_b", "+600"), ("node_c", "-600")];

/// Where the nodes listen at present.
pub(super) type Addresses = Arc<RwLock<Vec<String>>>;

/// The nodes and their database.
pub(super) struct Fleet {
    pub(super) database: Database,
    /// Taken out while it is away.
    pub(super) redis: Option<Redis>,
    nodes: Vec<Server>,
    addresses: Addresses,
}

impl Fleet {
    /// Starts a database without tables of ours, and all nodes at once.
    pub(super) fn start(kind: Kind) -> Self {
        let database = Database::start(kind, &Self::users(), &[]);
        Self::on(database, |database, node| database.url(Self::user(node)))
    }

    /// Starts all nodes at once on a database without tables of ours; each has a URL of its own.
    pub(super) fn on(database: Database, url: impl Fn(&Database, usize) -> String) -> Self {
        database.sql(&counted::tables(database.kind()));
        let redis = Redis::start(&[]);
        let nodes: Vec<Server> = std::thread::scope(|scope| {
            let start = |number: usize| {
                let (url, redis) = (url(&database, number), redis.url());
                scope.spawn(move || node(&url, &redis, USERS[number].1))
            };
            let starts: [_; NODES] = std::array::from_fn(start);
            starts.map(|node| node.join().unwrap()).into()
        });
        let addresses = nodes.iter().map(|node| node.address().to_owned());
        Self {
            addresses: Arc::new(RwLock::new(addresses.collect())),
            database,
            redis: Some(redis),
            nodes,
        }
    }

    /// Returns the names of the users the nodes connect as.
    pub(super) fn users() -> [&'static str; NODES] {
        USERS.map(|(user, _)| user)
    }

    /// Returns the name of the user a node connects as.
    pub(super) fn user(node: usize) -> &'static str {
        USERS[node].0
    }

    /// Returns where the nodes listen, also once they were started anew.
    pub(super) fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    pub(super) fn node(&mut self, node: usize) -> &mut Server {
        &mut self.nodes[node]
    }

    /// Starts a node again that was killed.
    pub(super) fn restart(&mut self, node: usize) {
        self.nodes[node].restart();
        self.addresses.write().unwrap()[node] = self.nodes[node].address().to_owned();
    }

    /// Waits until a condition holds.
    pub(super) fn within(&self, what: &str, mut holds: impl FnMut() -> bool) {
        within(PATIENCE, what, || {
            let is_true = holds();
            if !is_true {
                // Each look is a process of its own.
                std::thread::sleep(LOOKS_EVERY);
            }
            is_true
        });
    }

    /// Waits until no event waits to be applied.
    pub(super) fn wait_applied(&self) {
        let sql = "select count(*) from webhook_inbox \
            where processing_status in ('received', 'processing', 'failed')";
        self.within("nothing is pending", || self.database.count(sql) == 0);
    }

    pub(super) fn status(&self, event: &str) -> String {
        self.of_event("processing_status", event)
    }

    pub(super) fn attempts(&self, event: &str) -> i64 {
        self.of_event("attempts", event).parse().unwrap_or(0)
    }

    /// Returns the user of the node that applied an event.
    pub(super) fn applied_by(&self, event: &str) -> String {
        let sql = format!("select node from runs where event_id = '{event}'");
        self.database.sql(&sql).trim().to_owned()
    }

    fn of_event(&self, column: &str, event: &str) -> String {
        let sql = format!("select {column} from webhook_inbox where event_id = '{event}'");
        self.database.sql(&sql).trim().to_owned()
    }

    /// Tells how often an event was taken over from a node whose lease had run out.
    pub(super) fn taken_over(&self) -> i64 {
        let sql = "select count(*) from webhook_attempts where reason = 'lease_expired'";
        self.database.count(sql)
    }

    pub(super) fn is_ready(&self, node: usize) -> bool {
        Connection::open(self.nodes[node].address())
            .get("/readyz")
            .status
            == 200
    }

    /// Waits until every node sees Redis, or sees that it is away.
    pub(super) fn see_redis(&self, is_up: bool) {
        let seen = if is_up { 1.0 } else { 0.0 };
        self.within("every node sees what became of Redis", || {
            let mut nodes = self.nodes.iter();
            nodes.all(|node| node.metric("sekali_lock_up ") == seen)
        });
    }

    /// Has all nodes stop as they should.
    pub(super) fn stop(mut self) {
        for node in &self.nodes {
            node.terminate();
        }
        for node in &mut self.nodes {
            let status = node.wait_ended();
            assert!(status.success(), "{status}");
        }
        let held = "select count(*) from webhook_inbox where lease_token is not null";
        assert_eq!(self.database.count(held), 0, "leases were not given back");
    }
}

/// Returns the table of the lock; keys at the start of a line are those of the store, which a test's start replaces.
fn lock(url: &str) -> String {
    format!("\n[lock]\n  url = \"{url}\"\n")
}

/// Starts a node whose clock is off.
fn node(url: &str, redis: &str, offset: &str) -> Server {
    let library = faketime();
    Start::new("")
        .file("sekali.toml", counted::config(url) + &lock(redis))
        .env("LD_PRELOAD", library.to_str().unwrap())
        .env("FAKETIME", offset)
        .env("DONT_FAKE_MONOTONIC", "1")
        // A process that is killed would leave its shared memory behind.
        .env("FAKETIME_DISABLE_SHM", "1")
        .serve()
}

/// Finds the library that moves a process's clock.
fn faketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten();
    let folders = folders.flatten().map(|folder| folder.path());
    let mut files = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    files
        .find(|file| file.is_file())
        .expect("libfaketime is missing: install it with `apt-get install faketime`")
}
