//! The product: the real binary with the example's configuration, in a folder of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::request::SECRET;
use crate::servers::Place;
use crate::{Result, START_WITHIN, fill};

/// What the product does with events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Stores them.
    Admit,
    /// Stores and applies them.
    Apply,
}

/// A running server.
pub(crate) struct Product {
    child: Child,
    pub(crate) address: SocketAddr,
    mode: Mode,
    folder: TempDir,
    place: Place,
    /// The last row of each counted table before the first delivery.
    before: Vec<(&'static str, &'static str, i64)>,
}

impl Product {
    /// Starts a server, whose inbox holds `keys` events already where that is not 0.
    pub(crate) fn start(mode: Mode, place: Place, keys: u64) -> Result<Self> {
        let folder = folder(mode, &place)?;
        if keys > 0 {
            sekali_testkit::run(&mut sekali(&folder, &["migrate"]));
            match &place {
                Place::File => fill::sqlite(&folder.path().join("research.db"), keys)?,
                Place::Postgres(_) => fill::postgres(&place, keys),
                Place::MariaDb(_) => return Err("MariaDB's inbox is not filled".into()),
            }
        }
        place.settle();
        let mut serve = sekali(&folder, &["serve"]);
        let mut child = serve.stderr(Stdio::piped()).spawn()?;
        let address = ready(child.stderr.take().ok_or("no log")?)?;
        let mut product = Self {
            child,
            address,
            mode,
            folder,
            place,
            before: Vec::new(),
        };
        product.before = product.last_rows()?;
        Ok(product)
    }

    /// Runs a query that gives one number.
    fn number(&self, sql: &str) -> Result<i64> {
        if let Place::File = self.place {
            let db = Connection::open(self.folder.path().join("research.db"))?;
            return Ok(db.query_row(sql, [], |row| row.get(0))?);
        }
        Ok(self.place.sql(sql).trim().parse()?)
    }

    /// Waits until everything is applied, where it is to be.
    pub(crate) fn wait_until_done(&self) -> Result<()> {
        if self.mode == Mode::Admit {
            return Ok(());
        }
        let started = Instant::now();
        let pending = "select count(*) from (select 1 from webhook_inbox \
            where processing_status in ('received', 'failed', 'processing') limit 1) as pending";
        while self.number(pending)? == 1 {
            if started.elapsed() > START_WITHIN {
                return Err("events were still waiting".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Returns the tables that are counted, each with its rising number and the last of it.
    fn last_rows(&self) -> Result<Vec<(&'static str, &'static str, i64)>> {
        let mut tables = vec![
            ("webhook_inbox", "seq"),
            ("webhook_payloads", "seq"),
            ("webhook_deliveries", "id"),
        ];
        if self.mode == Mode::Apply {
            tables.push(("webhook_attempts", "id"));
        }
        let last = |(table, id): (&'static str, &'static str)| {
            let last = self.number(&format!("select coalesce(max({id}), 0) from {table}"))?;
            Ok((table, id, last))
        };
        tables.into_iter().map(last).collect()
    }

    /// Checks that every event came in once, with its payload, and applied where it is to be, and every delivery.
    pub(crate) fn count(&self, events: usize, deliveries: Option<usize>) -> Result<()> {
        for (table, id, last) in &self.before {
            let rows = self.number(&format!("select count(*) from {table} where {id} > {last}"))?;
            let expected = match *table {
                "webhook_deliveries" => deliveries.unwrap_or(rows as usize),
                _ => events,
            };
            if rows != expected as i64 {
                return Err(format!("{table} has {rows} new rows instead of {expected}").into());
            }
        }
        Ok(())
    }

    /// Returns the process of the server.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns how long a command takes beside the server, from its start to its end.
    pub(crate) fn time_of(&self, words: &[&str]) -> Duration {
        let mut command = sekali(&self.folder, words);
        let started = Instant::now();
        sekali_testkit::run(&mut command);
        started.elapsed()
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a folder with the example's configuration.
fn folder(mode: Mode, place: &Place) -> Result<TempDir> {
    let folder = TempDir::new_in(option_env!("CARGO_TARGET_TMPDIR").unwrap_or("."))?;
    let example = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-sync");
    std::fs::copy(example.join("schema.sql"), folder.path().join("schema.sql"))?;
    let workers = if mode == Mode::Apply { 2 } else { 0 };
    let url = match place {
        Place::File => "sqlite:research.db",
        Place::Postgres(database) | Place::MariaDb(database) => &database.url,
    };
    let config = std::fs::read_to_string(example.join("sekali.toml"))?
        .replace(
            "127.0.0.1:8686\"",
            "127.0.0.1:0\"\ninternal_listen = \"127.0.0.1:0\"",
        )
        .replace("sqlite:research.db", url)
        .replace(
            "[store]",
            &format!("[worker]\ncount = {workers}\n\n[log]\nlevel = \"info\"\n\n[store]"),
        );
    std::fs::write(folder.path().join("sekali.toml"), config)?;
    Ok(folder)
}

fn sekali(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sekali"));
    command
        .current_dir(folder.path())
        .env("RESEARCH_WEBHOOK_SECRET", SECRET)
        .args(words)
        .arg("--config")
        .arg(folder.path().join("sekali.toml"));
    command
}

/// Waits for the line that names the address, and leaves the rest of the log to a thread.
fn ready(log: std::process::ChildStderr) -> Result<SocketAddr> {
    let mut lines = BufReader::new(log).lines();
    let mut seen = String::new();
    for line in lines.by_ref() {
        let line: String = line?
            .chars()
            .filter(|character| !character.is_control())
            .collect();
        if let Some((_, rest)) = line.split_once("127.0.0.1:") {
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(SocketAddr::from(([127, 0, 0, 1], port.parse()?)));
        }
        seen.push_str(&line);
    }
    Err(format!("the server did not start: {seen}").into())
}
