//! A node, its database, and the way between them, with a sender that remembers what it was told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sekali_testkit::proxy::Proxy;

use super::SmallDisk;
use crate::support::counted::{self, ANSWER_WITHIN};
use crate::support::{Connection, Database, Kind, Server, Start, hook, order, within};

/// The user the node connects as.
pub(super) const USER: &str = "receiver";
/// How many deliveries are sent at once.
const AT_ONCE: usize = 6;
/// What an answer may take beyond its limit on a machine that has other things to do.
const SLACK: Duration = Duration::from_secs(3);
/// How long anything may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How long the body of an event is that needs room on a disk: most of what MariaDB keeps in one place. One that is longer
/// and does not fit has MariaDB end itself.
pub(super) const LARGE: usize = 6400;
/// How often the database and the node are asked.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
/// Tries to apply an event that may fail for other reasons than the event itself.
const NO_DEAD_LETTER: &str =
    "select count(*) from webhook_inbox where processing_status = 'dead_letter'";

/// A node and its database.
///
/// What runs on something else goes before it.
pub(super) struct Site {
    server: Server,
    pub(super) proxy: Proxy,
    pub(super) disk: Option<SmallDisk>,
    pub(super) database: Database,
    /// Every event that was sent, and whether it was acknowledged.
    sent: Mutex<BTreeMap<String, bool>>,
}

impl Site {
    /// Starts a database with settings of its own, and a node.
    pub(super) fn start(kind: Kind, settings: &[&'static str]) -> Self {
        Self::on(Database::start(kind, &[USER], settings), None)
    }

    /// Starts a database whose rows are on a disk of their own, and a node.
    pub(super) fn start_on_small_disk(kind: Kind) -> Self {
        let database = Database::start(kind, &[USER], &[]);
        let disk = SmallDisk::under(&database);
        Self::on(database, Some(disk))
    }

    fn on(database: Database, disk: Option<SmallDisk>) -> Self {
        database.sql(&counted::tables(database.kind()));
        let proxy = Proxy::start(database.port());
        let url = database.url_at(USER, proxy.port());
        let server = Start::new("")
            .file("sekali.toml", counted::config(&url))
            .serve();
        Self {
            server,
            proxy,
            disk,
            database,
            sent: Mutex::default(),
        }
    }

    /// Sends some events, all of which must be taken, and waits until they are applied.
    pub(super) fn take_some(&self) {
        for (id, status) in self.send_at_once(&self.new_events(AT_ONCE)) {
            assert_eq!(status, 202, "{id}");
        }
        assert!(self.is_ready(), "deliveries are taken");
        self.wait_applied();
    }

    /// Sends events, none of which can be stored, and has the node say so; returns them.
    pub(super) fn refuse_all(&self, why: &str) -> Vec<String> {
        let new = self.new_events(AT_ONCE);
        for (id, status) in self.send_at_once(&new) {
            assert_eq!(status, 503, "{id}, while {why}");
        }
        self.within(&format!("readyz tells that {why}"), || !self.is_ready());
        new
    }

    /// Sends while something happens; what is answered is noted, and nothing is asked of it.
    pub(super) fn send_while(&self, happens: impl FnOnce(&Self)) {
        let is_over = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let over = is_over.clone();
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    self.send_at_once(&self.new_events(AT_ONCE));
                }
            });
            happens(self);
            is_over.store(true, Ordering::SeqCst);
        });
    }

    /// Waits until the same process has taken everything that was not acknowledged, and something new.
    pub(super) fn recover(&self) {
        self.within("everything is acknowledged", || {
            let open = self.sent.lock().unwrap().clone().into_iter();
            let open: Vec<String> = open
                .filter_map(|(id, is_acknowledged)| (!is_acknowledged).then_some(id))
                .collect();
            for ids in open.chunks(AT_ONCE) {
                self.send_at_once(ids);
            }
            open.is_empty()
        });
        self.within("the node is ready again", || self.is_ready());
        self.wait_applied();
        self.take_some();
    }

    /// Checks that what was acknowledged is there, and that it was applied once.
    pub(super) fn check(&self) {
        let sent = self.sent.lock().unwrap();
        let ran = self
            .database
            .lines("select event_id from runs order by event_id");
        let ran: Vec<&str> = ran.iter().map(String::as_str).collect();
        let mut ids: Vec<&str> = sent.keys().map(String::as_str).collect();
        ids.sort_unstable();
        assert_eq!(
            ran, ids,
            "everything was acknowledged in the end, and applied"
        );
        let twice = "select event_id from runs where runs <> 1";
        assert_eq!(
            self.database.lines(twice),
            [""; 0],
            "applied more than once"
        );
        assert_eq!(self.database.count(NO_DEAD_LETTER), 0);
    }

    /// Tells whether an event is in the inbox, acknowledged or not.
    pub(super) fn is_stored(&self, id: &str) -> bool {
        let sql = format!("select count(*) from webhook_inbox where event_id = '{id}'");
        self.database.count(&sql) == 1
    }

    /// Lets the database take nothing new, or take it again.
    pub(super) fn set_read_only(&self, is_on: bool) {
        let on = if is_on { "on" } else { "off" };
        match self.database.kind() {
            Kind::Postgres => {
                // Each is a transaction of its own.
                let set = format!("alter system set default_transaction_read_only = {on}");
                self.database.sql(&set);
                self.database.sql("select pg_reload_conf()");
                // The server's first process reads it, and then tells the others.
                let shown = || self.database.sql("show default_transaction_read_only");
                self.within("the setting is read", || shown().trim() == on);
            }
            Kind::MariaDb => {
                self.database.sql(&format!("set global read_only = {on}"));
            }
        }
    }

    pub(super) fn within(&self, what: &str, mut holds: impl FnMut() -> bool) {
        within(PATIENCE, what, || {
            let is_true = holds();
            if !is_true {
                std::thread::sleep(LOOKS_EVERY);
            }
            is_true
        });
    }

    fn wait_applied(&self) {
        let sql = "select count(*) from webhook_inbox \
            where processing_status in ('received', 'processing', 'failed')";
        self.within("nothing is pending", || self.database.count(sql) == 0);
    }

    fn is_ready(&self) -> bool {
        let began = Instant::now();
        let reply = Connection::open(self.server.address()).get("/readyz");
        assert!(began.elapsed() < ANSWER_WITHIN + SLACK, "readyz hangs");
        assert!(matches!(reply.status, 200 | 503), "{reply:?}");
        reply.status == 200
    }

    fn new_events(&self, count: usize) -> Vec<String> {
        let mut sent = self.sent.lock().unwrap();
        let ids = (sent.len()..sent.len() + count).map(|number| format!("e-{number:05}"));
        let ids: Vec<String> = ids.collect();
        sent.extend(ids.iter().map(|id| (id.clone(), false)));
        ids
    }

    /// Sends each event over a connection of its own, and returns the status of each answer.
    fn send_at_once(&self, ids: &[String]) -> Vec<(String, u16)> {
        std::thread::scope(|scope| {
            let sending = ids.iter().map(|id| scope.spawn(|| self.send(id)));
            let sending: Vec<_> = sending.collect();
            let statuses = sending.into_iter().map(|sending| sending.join().unwrap());
            ids.iter().cloned().zip(statuses).collect()
        })
    }

    /// Sends an event; there is always an answer in time.
    fn send(&self, id: &str) -> u16 {
        let body = order(id, 1, &self.status_of(id));
        let began = Instant::now();
        let reply = hook(id, body).send(&self.server);
        let took = began.elapsed();
        assert!(took < ANSWER_WITHIN + SLACK, "answered after {took:?}");
        match reply.status {
            200 | 202 => {
                self.sent.lock().unwrap().insert(id.to_owned(), true);
            }
            503 => assert!(
                reply.header("retry-after").is_some(),
                "a 503 says when to come again"
            ),
            _ => panic!("{}", reply.says()),
        }
        reply.status
    }

    /// Makes the status of an order: a long text where there is a disk to be filled.
    fn status_of(&self, id: &str) -> String {
        if self.disk.is_none() {
            return "paid".into();
        }
        // The same for the same event, and nothing that could be stored in less.
        let seed = id.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte));
        let mut dice = fastrand::Rng::with_seed(seed);
        (0..LARGE).map(|_| dice.alphanumeric()).collect()
    }
}
