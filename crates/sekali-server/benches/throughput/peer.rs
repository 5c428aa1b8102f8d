//! The peers: handlers that somebody would write by hand, in `bench/peers`, each run by its `start` script.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::request::{Connection, SECRET};
use crate::servers::{Place, Servers, Store};
use crate::{Result, START_WITHIN};

const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/peers");
/// How long a peer may take to end when it is told to.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Which peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ExpressInsert,
    ExpressApply,
    FastApiInsert,
    Php,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [
        Self::ExpressInsert,
        Self::ExpressApply,
        Self::FastApiInsert,
        Self::Php,
    ];

    /// Returns the name of its files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ExpressInsert => "express-insert",
            Self::ExpressApply => "express-apply",
            Self::FastApiInsert => "fastapi-insert",
            Self::Php => "php",
        }
    }

    /// Returns what it keeps its rows in.
    pub(crate) fn store(self) -> Store {
        match self {
            Self::Php => Store::MariaDb,
            _ => Store::Postgres,
        }
    }

    /// Tells whether it applies an event before it answers.
    pub(crate) fn applies(self) -> bool {
        matches!(self, Self::ExpressApply | Self::Php)
    }

    fn schema(self) -> &'static str {
        match self {
            Self::ExpressInsert | Self::FastApiInsert => "insert.sql",
            Self::ExpressApply => "apply.sql",
            Self::Php => "php.sql",
        }
    }
}

/// A running peer.
pub(crate) struct Peer {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) kind: Kind,
    place: Place,
}

impl Peer {
    /// Starts a peer on an empty database, and waits until it refuses what nobody signed.
    pub(crate) async fn start(kind: Kind, place: Place, servers: &mut Servers) -> Result<Self> {
        place.sql(&std::fs::read_to_string(
            Path::new(PEERS).join(kind.schema()),
        )?);
        place.settle();
        let (Place::Postgres(database) | Place::MariaDb(database)) = &place else {
            return Err("a peer needs a server".into());
        };
        let port = sekali_testkit::free_port();
        let mut command = Command::new(Path::new(PEERS).join("start"));
        command
            .arg(kind.name())
            .env("PORT", port.to_string())
            .env("DATABASE_URL", &database.url)
            .env("WEBHOOK_SECRET", SECRET);
        if kind == Kind::ExpressApply {
            command.env("REDIS_URL", servers.redis()?.0);
        }
        let child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
        let mut peer = Self {
            child,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            kind,
            place,
        };
        peer.wait_until_ready().await?;
        Ok(peer)
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        let unsigned =
            b"POST /hooks/research HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
        loop {
            if let Ok(mut connection) = Connection::open(self.address).await
                && let Ok(401) = connection.exchange(unsigned).await
            {
                return Ok(());
            }
            if started.elapsed() > START_WITHIN || self.child.try_wait()?.is_some() {
                return Err(format!("{} did not start", self.kind.name()).into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Checks that every event is there once.
    pub(crate) fn count(&self, events: usize) -> Result<()> {
        let sql = match self.kind {
            Kind::ExpressInsert | Kind::FastApiInsert => "select count(*) from events",
            Kind::ExpressApply => "select count(*) from processed_webhooks",
            Kind::Php => "select count(*) from webhook_idempotency_keys where status = 'completed'",
        };
        let rows: usize = self.place.sql(sql).trim().parse()?;
        match rows == events {
            true => Ok(()),
            false => {
                Err(format!("{} has {rows} rows instead of {events}", self.kind.name()).into())
            }
        }
    }

    /// Returns the process below which all of it runs.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let told = Instant::now();
        while let Ok(None) = self.child.try_wait() {
            if told.elapsed() > END_WITHIN {
                // It leads its group, so that nothing of it is left.
                let group = format!("-{}", self.child.id());
                let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
