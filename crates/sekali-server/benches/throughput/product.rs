//! The product: the real binary with the example's configuration, in a folder of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use sekali_testkit::mariadb::{self, MariaDb};
use sekali_testkit::postgres::{self, Postgres};
use tempfile::TempDir;

use crate::START_WITHIN;
use crate::load::SECRET;

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
}

/// Where the product keeps its events.
pub(crate) enum Place {
    /// A file of SQLite.
    File,
    /// A database of a private server.
    Postgres(String),
    /// A database of a private server.
    MariaDb(String),
}

static POSTGRES: OnceLock<Postgres> = OnceLock::new();
static MARIADB: OnceLock<MariaDb> = OnceLock::new();

impl Place {
    /// Makes one on a store, with the durability that its server has by default.
    pub(crate) fn new(store: &str) -> Self {
        match store {
            "postgres" => Self::Postgres(POSTGRES.get_or_init(|| Postgres::start(&[])).database()),
            "mariadb" => Self::MariaDb(MARIADB.get_or_init(|| MariaDb::start(&[])).database()),
            _ => Self::File,
        }
    }

    fn url(&self) -> &str {
        match self {
            Self::File => "sqlite:research.db",
            Self::Postgres(url) | Self::MariaDb(url) => url,
        }
    }
}

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

impl Product {
    /// Starts a server whose inbox holds `keys` events already.
    pub(crate) fn start(mode: Mode, keys: u64, place: Place) -> Result<Self> {
        let folder = TempDir::new_in(option_env!("CARGO_TARGET_TMPDIR").unwrap_or("."))?;
        let example =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-sync");
        std::fs::copy(example.join("schema.sql"), folder.path().join("schema.sql"))?;
        let workers = if mode == Mode::Apply { 2 } else { 0 };
        let config = std::fs::read_to_string(example.join("sekali.toml"))?
            .replace(
                "127.0.0.1:8686\"",
                "127.0.0.1:0\"\ninternal_listen = \"127.0.0.1:0\"",
            )
            .replace("sqlite:research.db", place.url())
            .replace(
                "[store]",
                &format!("[worker]\ncount = {workers}\n\n[log]\nlevel = \"info\"\n\n[store]"),
            );
        std::fs::write(folder.path().join("sekali.toml"), config)?;
        if keys > 0 {
            sekali(&folder)
                .arg("migrate")
                .arg("--config")
                .arg(folder.path().join("sekali.toml"))
                .output()?;
            let path = folder.path().join("research.db");
            fill(&Connection::open(&path)?, keys)?;
            // What was written without waiting for the disk must not be waited for by the first deliveries.
            std::fs::File::open(path)?.sync_all()?;
        }
        let mut serve = sekali(&folder);
        serve
            .arg("serve")
            .arg("--config")
            .arg(folder.path().join("sekali.toml"))
            .stderr(Stdio::piped());
        let mut child = serve.spawn()?;
        let address = ready(child.stderr.take().ok_or("no log")?)?;
        Ok(Self {
            child,
            address,
            mode,
            folder,
            place,
        })
    }

    /// Runs a query that gives one number.
    fn number(&self, sql: &str) -> Result<i64> {
        let text = match &self.place {
            Place::File => {
                let db = Connection::open(self.folder.path().join("research.db"))?;
                return Ok(db.query_row(sql, [], |row| row.get(0))?);
            }
            Place::Postgres(url) => postgres::query(url, sql),
            Place::MariaDb(url) => mariadb::query(url, sql),
        };
        Ok(text.trim().parse()?)
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

    /// Checks that every event is there once, with its payload and its delivery, and applied where it is to be.
    pub(crate) fn count(&self, events: usize) -> Result<()> {
        let mut tables = vec!["webhook_inbox", "webhook_payloads", "webhook_deliveries"];
        if self.mode == Mode::Apply {
            tables.push("webhook_attempts");
        }
        for table in tables {
            let rows = self.number(&format!("select count(*) from {table}"))?;
            if rows != events as i64 {
                return Err(format!("{table} has {rows} rows instead of {events}").into());
            }
        }
        Ok(())
    }

    /// Returns how much memory the server holds.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .ok_or("no figure")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }
}

impl Product {
    /// Returns the seconds of processor time that the server has used, and those of its database's server.
    pub(crate) fn processor_seconds(&self) -> [f64; 2] {
        let store = match &self.place {
            Place::File => None,
            Place::Postgres(_) => POSTGRES.get().map(|server| server.process().id()),
            Place::MariaDb(_) => MARIADB.get().map(|server| server.process().id()),
        };
        [self.child.id(), store.unwrap_or(0)]
            .map(ticks_of)
            .map(|ticks| ticks as f64 / 100.0)
    }
}

/// Sums the processor time of a process and its children, in hundredths of a second.
fn ticks_of(id: u32) -> u64 {
    let stat = |id: &str| {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let fields: Vec<u64> = text
            .rsplit(')')
            .next()?
            .split_ascii_whitespace()
            .skip(1)
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        // Behind the name: the state, the parent, and as 14th to 17th field of all the times, those of children last.
        Some((*fields.first()?, fields.get(10..14)?.iter().sum::<u64>()))
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = processes.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (parent, ticks) = stat(&name)?;
        (name == id.to_string() || parent == u64::from(id)).then_some(ticks)
    });
    match id {
        0 => 0,
        _ => all.sum(),
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sekali(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sekali"));
    command
        .current_dir(folder.path())
        .env("RESEARCH_WEBHOOK_SECRET", SECRET);
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

/// Fills the inbox by SQL, without payloads; half of the ids rise and half are random.
fn fill(db: &Connection, keys: u64) -> Result<()> {
    db.execute_batch(
        "pragma journal_mode = wal; pragma synchronous = off; pragma cache_size = -1000000;",
    )?;
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1)
        insert into webhook_inbox (source, scope, event_id, event_type, entity_type, entity_id, source_version, occurred_at,
            type_rank, payload_hash, fingerprint, signature_valid, received_at, processed_at, processing_status, attempts)
        select 'research', '', case i % 2 when 0 then printf('evt_%s', lower(hex(randomblob(12)))) else printf('evs_%020d', i) end,
            'research.document.updated', 'research_document', printf('doc_%06d', i % 10000), -i, 1756116930000000000, 0,
            randomblob(32), randomblob(36), 1, ?2, ?2, 'processed', 1 from n";
    // Received now: what is older than its retention would be removed meanwhile.
    db.execute(sql, [keys as i64, sekali::Clock::System.now_ms()])?;
    db.execute_batch(
        "insert into webhook_positions (entity_id, entity_type, source, scope, source_version, seq)
            select entity_id, entity_type, source, scope, source_version, seq from webhook_inbox order by 1, 2, 3, 4, 5, 6;
        pragma wal_checkpoint(truncate)",
    )?;
    Ok(())
}
