//! The private servers of a run, with the durability that each has by default, and the databases in them.
//!
//! Each runs below a process of its own that ends it and removes its folder once this one lets go, however that comes.
//! A slow disk is a library that is preloaded into that process: it makes every wait for the disk 2 ms longer, and nobody
//! but the server waits for the disk there.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sekali_testkit::mariadb::{self, MariaDb};
use sekali_testkit::postgres::{self, Postgres};
use sekali_testkit::redis::Redis;
use sekali_testkit::{Process, program};
use tempfile::TempDir;

use crate::Result;

/// What events are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Sqlite,
    Postgres,
    /// PostgreSQL on a slow disk.
    SlowPostgres,
    MariaDb,
}

/// Where a contender keeps its events.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A file of SQLite in the contender's own folder.
    File,
    Postgres(Database),
    MariaDb(Database),
}

/// A database of a private server.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) url: String,
    admin: String,
    name: String,
    /// The server's process.
    server: u32,
}

/// The servers, each started when it is first asked for.
#[derive(Default)]
pub(crate) struct Servers {
    postgres: Option<Server>,
    slow_postgres: Option<Server>,
    mariadb: Option<Server>,
    redis: Option<Server>,
}

struct Server {
    child: Child,
    /// A URL to make databases by.
    url: String,
    process: u32,
    made: Cell<u32>,
    /// Where the library of a slow disk is.
    _library: Option<TempDir>,
}

impl Servers {
    /// Makes an empty place.
    pub(crate) fn place(&mut self, store: Store) -> Result<Place> {
        let (server, kind) = match store {
            Store::Sqlite => return Ok(Place::File),
            Store::Postgres => (&mut self.postgres, "postgres"),
            Store::SlowPostgres => (&mut self.slow_postgres, "postgres"),
            Store::MariaDb => (&mut self.mariadb, "mariadb"),
        };
        let server = start(server, kind, store == Store::SlowPostgres)?;
        server.made.set(server.made.get() + 1);
        let name = format!("bench{}", server.made.get());
        let (base, rest) = server.url.rsplit_once('/').ok_or("a URL without a name")?;
        let options = rest.split_once('?').map_or("", |(_, options)| options);
        let database = Database {
            url: format!("{base}/{name}?{options}"),
            admin: server.url.clone(),
            server: server.process,
            name,
        };
        let sql = format!("create database {}", database.name);
        if kind == "mariadb" {
            mariadb::query(&database.admin, &sql);
            return Ok(Place::MariaDb(database));
        }
        postgres::query(&database.admin, &sql);
        Ok(Place::Postgres(database))
    }

    /// Returns the URL of the Redis server, and its process.
    pub(crate) fn redis(&mut self) -> Result<(String, u32)> {
        let server = start(&mut self.redis, "redis", false)?;
        Ok((server.url.clone(), server.process))
    }
}

impl Place {
    /// Runs statements on a server's database.
    pub(crate) fn sql(&self, sql: &str) -> String {
        match self {
            Self::File => String::new(),
            Self::Postgres(database) => postgres::query(&database.url, sql),
            Self::MariaDb(database) => mariadb::query(&database.url, sql),
        }
    }

    /// Has what earlier runs left in memory written, so that nobody pays for another's rows.
    pub(crate) fn settle(&self) {
        if let Self::Postgres(_) = self {
            self.sql("checkpoint");
        }
    }

    /// Removes the database with everything in it.
    pub(crate) fn remove(&self) {
        match self {
            Self::File => {}
            Self::Postgres(Database { admin, name, .. }) => {
                postgres::query(admin, &format!("drop database {name} with (force)"));
            }
            Self::MariaDb(Database { admin, name, .. }) => {
                mariadb::query(admin, &format!("drop database {name}"));
            }
        }
    }

    /// Returns the process of the database's server; 0 for a file.
    pub(crate) fn server(&self) -> u32 {
        match self {
            Self::File => 0,
            Self::Postgres(database) | Self::MariaDb(database) => database.server,
        }
    }
}

fn start<'s>(server: &'s mut Option<Server>, kind: &str, is_slow: bool) -> Result<&'s Server> {
    if server.is_none() {
        *server = Some(Server::start(kind, is_slow)?);
    }
    server.as_ref().ok_or_else(|| "no server".into())
}

impl Server {
    fn start(kind: &str, is_slow: bool) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["hold", kind]);
        let library = is_slow.then(slow_disk).transpose()?;
        if let Some((_, file)) = &library {
            command.env("LD_PRELOAD", file);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let (url, process) = line
            .trim()
            .split_once(' ')
            .ok_or_else(|| format!("the server of {kind} did not start"))?;
        let server = Self {
            child,
            url: url.to_owned(),
            process: process.parse()?,
            made: Cell::new(0),
            _library: library.map(|(folder, _)| folder),
        };
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
        match !is_slow || maps.contains("slow-fsync") {
            true => Ok(server),
            false => Err("the slow disk was not preloaded into the server".into()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Compiles the library that makes every wait for the disk longer.
fn slow_disk() -> Result<(TempDir, PathBuf)> {
    let folder = TempDir::new()?;
    // The server runs as a user of its own, and has to read it.
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755))?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/slow-fsync.c");
    let file = folder.path().join("slow-fsync.so");
    let mut command = Command::new(program("cc", "gcc", &[]));
    command.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]);
    sekali_testkit::run(command.arg(&file).arg(source));
    Ok((folder, file))
}

/// Holds a server until the input ends, and prints its URL and its process first.
pub(crate) fn hold(kind: &str) -> Result<()> {
    let until_the_end = |url: String, process: &Process| {
        println!("{url} {}", process.id());
        std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
    };
    match kind {
        "postgres" => {
            let server = Postgres::start(&[]);
            until_the_end(server.url("postgres"), server.process())?;
        }
        "mariadb" => {
            let server = MariaDb::start(&[]);
            until_the_end(server.url("mysql"), server.process())?;
        }
        _ => {
            // Nothing of it is on disk, which is where it is fastest.
            let server = Redis::start(&[]);
            until_the_end(server.url(), server.process())?;
        }
    }
    Ok(())
}
