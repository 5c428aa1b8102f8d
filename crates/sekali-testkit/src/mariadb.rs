//! A private MariaDB server.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::process::{Process, as_user, folder};

const USER: &str = "mysql";

/// A MariaDB server with databases for tests.
pub struct MariaDb {
    process: Process,
    port: u16,
    made: AtomicU32,
}

/// Returns the server of this process, which it starts when it is first asked for.
///
/// # Panics
///
/// A server that cannot be started fails the test.
pub fn server() -> &'static MariaDb {
    static SERVER: OnceLock<MariaDb> = OnceLock::new();
    // Nothing here outlives the process, so that the disk is not waited for.
    SERVER.get_or_init(|| {
        MariaDb::start(&[
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=0",
        ])
    })
}

impl MariaDb {
    /// Starts a server with arguments of its own.
    ///
    /// # Panics
    ///
    /// A server that cannot be started fails the test.
    pub fn start(arguments: &[&str]) -> Self {
        Self::resume(Self::prepare(), crate::free_port(), arguments)
    }

    /// Makes a folder with the data of a new server.
    pub(crate) fn prepare() -> TempDir {
        let folder = folder(USER);
        let data = folder.path().join("data");
        let mut init = as_user(
            USER,
            &crate::program("mariadb-install-db", "mariadb-server", &[]),
        );
        init.args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]);
        // Two of them at once would take each other's temporary tables for their own.
        init.arg(format!("--datadir={}", data.display()))
            .env("TMPDIR", folder.path())
            .current_dir("/");
        crate::run(&mut init);
        folder
    }

    /// Starts a server in the folder of an earlier one.
    ///
    /// # Panics
    ///
    /// A server that cannot be started fails the test.
    pub fn resume(folder: TempDir, port: u16, arguments: &[&str]) -> Self {
        let place = |name: &str| folder.path().join(name).display().to_string();
        let socket = place("sock");
        let mut all = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", place("data")),
            format!("--socket={socket}"),
            format!("--port={port}"),
            format!("--pid-file={}", place("pid")),
            format!("--tmpdir={}", folder.path().display()),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-name-resolve".to_owned(),
            "--max-connections=400".to_owned(),
            "--table-open-cache=8000".to_owned(),
            "--table-definition-cache=8000".to_owned(),
            "--open-files-limit=32000".to_owned(),
        ];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let is_ready = || client(Path::new(&socket), "", "select 1").status.success();
        let program = crate::program("mariadbd", "mariadb-server", &[]);
        let process = Process::start(folder, USER, &program, &all, is_ready);
        let server = Self {
            process,
            port,
            made: AtomicU32::new(0),
        };
        server.sql(
            "",
            "create user if not exists 'sekali'@'127.0.0.1' identified by 'fake-password'; \
            grant all on *.* to 'sekali'@'127.0.0.1' with grant option",
        );
        server
    }

    /// Makes an empty database and returns its URL.
    ///
    /// # Panics
    ///
    /// Fails where the database cannot be made.
    pub fn database(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}_{number}", std::process::id());
        self.sql("", &format!("create database {name}"));
        self.url(&name)
    }

    /// Returns the URL of a database.
    pub fn url(&self, name: &str) -> String {
        format!(
            "mysql://sekali:fake-password@127.0.0.1:{}/{name}?ssl-mode=disabled",
            self.port
        )
    }

    /// Runs statements in a database and returns what they print, columns behind a tabulator.
    ///
    /// # Panics
    ///
    /// A statement that fails fails the test.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let done = client(&self.process.folder().join("sock"), database, sql);
        let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(done.status.success(), "{sql}: {out}{err}");
        out.into_owned()
    }

    /// Returns the server's process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the server with a signal, such as `TERM`; its folder and port can be taken up again.
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

/// Runs a query in the database of a URL and returns what it prints, columns behind a tabulator.
///
/// # Panics
///
/// A statement that fails fails the test.
pub fn query(url: &str, sql: &str) -> String {
    try_query(url, sql).unwrap_or_else(|said| panic!("{sql}: {said}"))
}

/// Like [`query`], for statements that may fail; the error is what the server said.
pub fn try_query(url: &str, sql: &str) -> Result<String, String> {
    let (who, place) = url.rsplit_once('@').unwrap_or(("", url));
    let who = who.rsplit('/').next().unwrap_or_default();
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    let place = place.split('?').next().unwrap_or_default();
    let (address, name) = place.split_once('/').unwrap_or((place, ""));
    let port = address.rsplit(':').next().unwrap_or_default();
    let mut command = Command::new(crate::program("mariadb", "mariadb-client", &[]));
    command.args(["--no-defaults", "-N", "-B", "-h", "127.0.0.1", "-P", port]);
    command.args([format!("-u{user}"), format!("-p{password}")]);
    crate::try_run(command.args(["-e", sql, name]))
}

fn client(socket: &Path, database: &str, sql: &str) -> std::process::Output {
    let mut command = Command::new(crate::program("mariadb", "mariadb-client", &[]));
    command.args(["--no-defaults", "-uroot", "-N", "-B"]);
    command.arg(format!("--socket={}", socket.display()));
    command
        .args(["-e", sql])
        .args((!database.is_empty()).then_some(database));
    command.output().unwrap()
}
