//! The nodes, their clocks and their database.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

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
    nodes: Vec<Server>,
    addresses: Addresses,
}

impl Fleet {
    /// Starts a database without tables of ours, and all nodes at once.
    pub(super) fn start(kind: Kind) -> Self {
        let users = USERS.map(|(user, _)| user);
        let database = Database::start(kind, &users, &[]);
        database.sql(&counted::tables(kind));
        let nodes: Vec<Server> = std::thread::scope(|scope| {
            let start = |(user, offset)| {
                let url = database.url(user);
                scope.spawn(move || node(&url, offset))
            };
            let starts = USERS.map(start);
            starts.map(|node| node.join().unwrap()).into()
        });
        let addresses = nodes.iter().map(|node| node.address().to_owned());
        Self {
            addresses: Arc::new(RwLock::new(addresses.collect())),
            database,
            nodes,
        }
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

/// Starts a node whose clock is off.
fn node(url: &str, offset: &str) -> Server {
    let library = faketime();
    Start::new("")
        .file("sekali.toml", counted::config(url))
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
