//! The process under test, in a folder of its own.

use std::path::Path;
use std::process::{Command, ExitStatus, Output};
use std::sync::{Arc, Mutex};

use rusqlite::{OpenFlags, ToSql};

use super::start::{Process, complete};
use super::{Connection, PATIENCE, Reply, Start, eventually, within};

/// A server that runs until it is dropped.
pub(crate) struct Server {
    start: Start,
    log: Arc<Mutex<String>>,
    process: Process,
}

impl Server {
    /// Wraps a process that is ready.
    pub(super) fn of(start: Start, log: Arc<Mutex<String>>, process: Process) -> Self {
        Self {
            start,
            log,
            process,
        }
    }

    /// Starts a server with a config file; its ports, its database and its tables need not be mentioned.
    pub(crate) fn start(config: &str) -> Self {
        Start::new(config).serve()
    }

    /// Returns the address for webhooks.
    pub(crate) fn address(&self) -> &str {
        &self.process.address
    }

    /// Returns the URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.process.address)
    }

    /// Returns the folder of the config file and the database.
    pub(crate) fn folder(&self) -> &Path {
        self.start.folder.path()
    }

    /// Returns what was logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Gets a path of the internal listener.
    pub(crate) fn internal(&self, path: &str) -> Reply {
        Connection::open(&self.process.internal).get(path)
    }

    /// Returns the value of one line of the metrics, 0 where it is not there.
    pub(crate) fn metric(&self, line: &str) -> f64 {
        let text = self.internal("/metrics").text();
        let value = text.lines().find_map(|found| found.strip_prefix(line));
        value.map_or(0.0, |value| value.trim().parse().unwrap())
    }

    /// Opens the database for reading.
    pub(crate) fn db(&self) -> rusqlite::Connection {
        let path = self.folder().join("sekali.db");
        let db = rusqlite::Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let db = db.unwrap();
        db.busy_timeout(PATIENCE).unwrap();
        db
    }

    /// Runs a query that yields one number.
    pub(crate) fn count(&self, sql: &str, values: &[&dyn ToSql]) -> i64 {
        self.db().query_row(sql, values, |row| row.get(0)).unwrap()
    }

    /// Runs a query that yields one column of text, and returns its rows; NULL is `-`.
    pub(crate) fn column(&self, sql: &str, values: &[&dyn ToSql]) -> Vec<String> {
        let db = self.db();
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement.query_map(values, |row| row.get::<_, Option<String>>(0));
        rows.unwrap()
            .map(|text| text.unwrap().unwrap_or_else(|| "-".into()))
            .collect()
    }

    /// Returns where an event stands.
    pub(crate) fn status(&self, event_id: &str) -> String {
        let sql = "select processing_status from webhook_inbox where event_id = ?";
        self.column(sql, &[&event_id]).join(",")
    }

    /// Returns how often an event wrote its order.
    pub(crate) fn writes(&self, event_id: &str) -> i64 {
        let sql = "select count(*) from order_writes where event_id = ?";
        self.count(sql, &[&event_id])
    }

    /// Waits until no event waits to be applied.
    pub(crate) fn wait_applied(&self) {
        let sql = "select count(*) from webhook_inbox \
            where processing_status in ('received', 'processing', 'failed')";
        eventually("nothing is pending", || self.count(sql, &[]) == 0);
    }

    /// Runs another command of the binary beside the server, on the same config file.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.start.command(arguments).output().unwrap()
    }

    /// Returns the most memory that the process had so far.
    pub(crate) fn peak_memory_bytes(&self) -> usize {
        let path = format!("/proc/{}/status", self.process.child.id());
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        kib.expect("the line of the peak").parse::<usize>().unwrap() * 1024
    }

    /// Asks the process to end.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends the process a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.child.id().to_string();
        let mut command = Command::new("kill");
        let status = command.args(["-s", name, &id]).status().unwrap();
        assert!(status.success(), "the process is gone already");
    }

    /// Ends the process without a chance to tidy up, and waits until it is gone.
    pub(crate) fn kill9(&mut self) {
        let _ = self.process.child.kill();
        self.wait_ended();
    }

    /// Waits until the process has ended.
    pub(crate) fn wait_ended(&mut self) -> ExitStatus {
        let mut ended = None;
        // It may finish what was begun for as long as `drain`.
        within(PATIENCE * 3, "the process has ended", || {
            ended = self.process.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }

    /// Starts the process again on the same folder; one that still runs is killed first.
    pub(crate) fn restart(&mut self) {
        self.kill9();
        self.process = Process::spawn(&self.start, &self.log)
            .unwrap_or_else(|log| panic!("no new start:\n{log}"));
    }

    /// Changes the config file for the next start.
    pub(crate) fn reconfigure(&self, config: &str) {
        std::fs::write(self.folder().join("sekali.toml"), complete(config)).unwrap();
    }

    /// Runs statements beside the server, as the owner of the user's tables does.
    pub(crate) fn edit(&self, sql: &str) {
        self.writer().execute_batch(sql).unwrap();
    }

    /// Takes the database's write lock, so that nothing can be stored until the result is dropped.
    pub(crate) fn lock(&self) -> rusqlite::Connection {
        let db = self.writer();
        db.execute_batch("begin immediate").unwrap();
        db
    }

    fn writer(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.folder().join("sekali.db")).unwrap();
        db.busy_timeout(PATIENCE).unwrap();
        db
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.child.kill();
        let _ = self.process.child.wait();
        if std::thread::panicking() {
            eprintln!("log of the server:\n{}", self.log());
        }
    }
}
