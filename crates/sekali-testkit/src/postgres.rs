//! A private PostgreSQL server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::process::{Process, as_user, folder};

mod standby;

const USER: &str = "postgres";

/// A PostgreSQL server with databases for tests.
pub struct Postgres {
    process: Process,
    port: u16,
    made: AtomicU32,
}

/// Returns the server of this process, which it starts when it is first asked for.
///
/// # Panics
///
/// A server that cannot be started fails the test.
pub fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    // Nothing here outlives the process, so that the disk is not waited for.
    SERVER.get_or_init(|| Postgres::start(&["fsync=off", "full_page_writes=off"]))
}

impl Postgres {
    /// Starts a server with settings of its own.
    ///
    /// # Panics
    ///
    /// A server that cannot be started fails the test.
    pub fn start(settings: &[&str]) -> Self {
        let folder = folder(USER);
        let data = folder.path().join("data");
        let mut init = as_user(USER, &program("initdb"));
        init.args([
            "--auth=trust",
            "--username=postgres",
            "--no-sync",
            "--encoding=UTF8",
            "-D",
        ]);
        crate::run(init.arg(&data));
        Self::resume(folder, crate::free_port(), settings)
    }

    /// Starts a server in the folder of an earlier one.
    ///
    /// # Panics
    ///
    /// A server that cannot be started fails the test.
    pub fn resume(folder: TempDir, port: u16, settings: &[&str]) -> Self {
        let data = folder.path().join("data");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut arguments = vec![
            "-D".to_owned(),
            text(&data),
            "-k".to_owned(),
            text(folder.path()),
        ];
        let port_text = format!("port={port}");
        let all = [
            &port_text,
            "listen_addresses=127.0.0.1",
            "max_connections=200",
        ];
        for setting in all.iter().chain(settings) {
            arguments.extend(["-c".to_owned(), (*setting).to_owned()]);
        }
        let (ready, port_text) = (program("pg_isready"), port.to_string());
        let is_ready = || {
            let mut command = Command::new(&ready);
            let command = command.args(["-q", "-h", "127.0.0.1", "-p", &port_text, "-U", USER]);
            command.status().is_ok_and(|status| status.success())
        };
        let process = Process::start(folder, USER, &program("postgres"), &arguments, is_ready);
        Self {
            process,
            port,
            made: AtomicU32::new(0),
        }
    }

    /// Makes an empty database and returns its URL.
    ///
    /// # Panics
    ///
    /// Fails where the database cannot be made.
    pub fn database(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}_{number}", std::process::id());
        self.sql("postgres", &format!("create database {name}"));
        self.url(&name)
    }

    /// Returns the URL of a database.
    pub fn url(&self, name: &str) -> String {
        format!(
            "postgres://{USER}@127.0.0.1:{}/{name}?sslmode=disable",
            self.port
        )
    }

    /// Runs statements in a database and returns what they print, columns behind a bar.
    ///
    /// # Panics
    ///
    /// A statement that fails fails the test.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let mut command = Command::new(program("psql"));
        command.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-U",
            USER,
        ]);
        command.args(["-p", &self.port.to_string(), "-d", database, "-c", sql]);
        crate::run(&mut command)
    }

    /// Returns the server's process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the server with a signal, such as `QUIT`, which has it end at once and leave the rest to the next start,; its folder and port can be taken up again.
    ///
    /// # Panics
    ///
    /// Fails where the process goes on.
    pub fn stop(self, signal: &str) -> (TempDir, u16) {
        (self.process.stop(signal), self.port)
    }

    /// Ends the server without a word; its folder and port can be taken up again.
    ///
    /// # Panics
    ///
    /// Fails where the process cannot be ended.
    pub fn kill(self) -> (TempDir, u16) {
        (self.process.kill(), self.port)
    }
}

/// Runs a query in the database of a URL and returns what it prints, columns behind a bar.
///
/// # Panics
///
/// A statement that fails fails the test.
pub fn query(url: &str, sql: &str) -> String {
    try_query(url, sql).unwrap_or_else(|said| panic!("{sql}: {said}"))
}

/// Like [`query`], for statements that may fail; the error is what the server said.
pub fn try_query(url: &str, sql: &str) -> Result<String, String> {
    let mut command = Command::new(program("psql"));
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    crate::try_run(command.args(["-d", url, "-c", sql]))
}

/// Finds a program of the server in the folder that `SEKALI_POSTGRES_BIN` names, or else of the newest that is installed;
/// Debian keeps them in folders by version.
#[expect(
    clippy::disallowed_methods,
    reason = "another version is chosen for a whole run"
)]
fn program(name: &str) -> PathBuf {
    let asked = std::env::var_os("SEKALI_POSTGRES_BIN").map(PathBuf::from);
    let entries = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_unstable();
    let newest = versions.iter().rev().map(|(_, folder)| folder.as_path());
    let folders: Vec<&Path> = asked.iter().map(PathBuf::as_path).chain(newest).collect();
    crate::program(name, "postgresql", &folders)
}
