//! The store: where events live, and the one door to the database.
//!
//! Every unit of work is a [`Transaction`]: a value with a name that runs against a [`Conn`] and commits or rolls back
//! as a whole. SQLite has one writer on its own thread, so that a whole transaction costs one hop; admission goes first,
//! and after each of its transactions one of the others has its turn. Reads have connections of their own. PostgreSQL and
//! MySQL have pools, and a transaction that met another one is run again.
//!
//! What always holds: a row is only changed by a statement whose condition names the state it expects, and whose row
//! count is checked; nothing here calls upwards; there is no state in memory that matters after a crash.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::Result;
use crate::limits::Limits;

mod admin;
mod attempts;
mod conn;
mod deliveries;
mod depth;
mod entities;
mod guard;
mod handshakes;
mod history;
mod inbox;
mod network;
mod positions;
mod prune;
mod rejected;
mod rows;
mod sqlite;
mod tables;
mod variants;
mod work;

pub use admin::{AcceptVariant, Erase, Redrive, ResetEntity};
pub(crate) use attempts::{Attempt, insert_attempts};
pub use conn::{Conn, DbError, DbErrorKind, Row, Value};
pub(crate) use deliveries::WriteRejected;
pub use depth::{Depth, PendingSources, Ping, ReadDepth};
pub(crate) use entities::{EntityState, lock_entities, save_entities};
pub use guard::Interruption;
pub use handshakes::{HandshakeOutcome, HandshakeRow, ListHandshakes, NoteHandshake};
pub use history::{
    AttemptRow, DeliveryRow, EntityHistory, EventFilter, EventRow, GapRow, ListEvents, ShowEntity,
    ShowEvent, Story, VariantRow,
};
pub(crate) use inbox::Admit;
pub(crate) use positions::{
    conflicting, is_any_waiting, missing_versions, note_positions, waiting_since, wake_followers,
};
pub use prune::{Cursor, Prune, Pruned, Retention};
pub use rejected::{FindRejected, KeepRejected, ListRejected, RejectedRow};
pub use rows::Kind;
pub use tables::{CheckEffects, Setup};
pub(crate) use tables::{Columns, Ran, Write, WriteKind};
pub(crate) use work::{Claim, Claimed, Fail, GiveBack, Renew, Settlement, settle, take_over_all};

/// One unit of work against the database; it commits or rolls back as a whole.
///
/// It may be run more than once: where another transaction was in its way, everything it did is rolled back first.
pub trait Transaction: Send + Sync + 'static {
    /// What it returns.
    type Output: Send + 'static;
    /// What is being done; reads after "could not".
    const STEP: &'static str;

    /// How long it may take before a server that does not answer is given up.
    fn within(&self) -> Duration {
        Duration::from_secs(120)
    }

    /// Runs the statements; an error rolls everything back.
    fn run(&self, conn: &mut Conn<'_>) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// A database, as it is named in the configuration.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// The URL of a PostgreSQL database.
    Postgres(String),
    /// The URL of a MySQL or MariaDB database.
    MySql(String),
}

impl Database {
    /// Reads the database out of a URL; the error says what can be written.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        match scheme {
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                match path {
                    "" => Err("a file is missing behind sqlite:".to_owned()),
                    path => Ok(Self::Sqlite(path.into())),
                }
            }
            "postgres" | "postgresql" => Ok(Self::Postgres(url.to_owned())),
            "mysql" | "mariadb" => Ok(Self::MySql(url.to_owned())),
            _ => Err(
                "write it like sqlite:sekali.db, postgres://user@host/name or mysql://user@host/name"
                    .to_owned(),
            ),
        }
    }
}

/// Shows where the database is, without a password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = match self {
            Self::Sqlite(path) => return write!(f, "{}", path.display()),
            Self::Postgres(url) | Self::MySql(url) => url,
        };
        let url = url.split('?').next().unwrap_or_default();
        match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, place))) => write!(f, "{scheme}://{place}"),
            _ => f.write_str(url),
        }
    }
}

// A URL may hold a password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({self})")
    }
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The database.
    pub database: Database,
    /// The clock that stands for SQLite's, and for that of every database where a test moves it.
    pub clock: Clock,
    /// Whether this process is the one that serves a file of SQLite; only one may be.
    pub exclusive: bool,
    /// What is done about the schema of a database that is not a file.
    pub schema: Schema,
    /// How long a database is waited for that cannot be reached yet.
    pub connect_within: Duration,
    /// How long a transaction may idle before the database ends it; as long as a claim holds, since what is done later
    /// than that may not commit.
    pub lease: Duration,
    /// Whether a server is used that may lose what it committed when its machine crashes.
    pub allow_unsafe_durability: bool,
}

impl StoreOptions {
    /// Opens a database as the process that serves it.
    pub fn serving(database: Database) -> Self {
        Self {
            database,
            clock: Clock::System,
            exclusive: true,
            schema: Schema::Make,
            connect_within: Duration::from_secs(30),
            lease: Limits::default().lease,
            allow_unsafe_durability: false,
        }
    }

    /// Opens a database beside the process that serves it.
    pub fn beside(database: Database) -> Self {
        Self {
            exclusive: false,
            schema: Schema::Expect,
            connect_within: Duration::ZERO,
            ..Self::serving(database)
        }
    }
}

/// What opening a store does about its schema; that of a file is always brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// Brings it up to date.
    Make,
    /// Refuses one that is not up to date.
    Expect,
    /// Takes it as it is.
    Any,
}

/// A handle on the database; clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    options: StoreOptions,
}

enum Backend {
    Sqlite(sqlite::SqliteStore),
    Postgres(network::PostgresStore),
    MySql(network::MySqlStore),
}

/// Which line a transaction stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    First,
    Later,
}

impl Store {
    /// Opens the database, creates what is missing and takes the lock of the serving process if asked to.
    pub async fn open(options: StoreOptions) -> Result<Self> {
        let backend = match &options.database {
            Database::Sqlite(path) => Backend::Sqlite(sqlite::SqliteStore::open(path, &options)?),
            Database::Postgres(url) => {
                Backend::Postgres(network::PostgresStore::open(url, &options).await?)
            }
            Database::MySql(url) => Backend::MySql(network::MySqlStore::open(url, &options).await?),
        };
        Ok(Self {
            inner: Arc::new(Inner { backend, options }),
        })
    }

    /// Runs a transaction that writes.
    pub async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Output> {
        self.run(transaction, Turn::Later).await
    }

    /// Runs a transaction that writes, before all others that wait.
    pub(crate) async fn write_first<T: Transaction>(&self, transaction: T) -> Result<T::Output> {
        self.run(transaction, Turn::First).await
    }

    async fn run<T: Transaction>(&self, transaction: T, turn: Turn) -> Result<T::Output> {
        match &self.inner.backend {
            Backend::Sqlite(store) => store.run(transaction, turn).await,
            Backend::Postgres(store) => store.run(&transaction, turn).await,
            Backend::MySql(store) => store.run(&transaction, turn).await,
        }
    }

    /// Runs a transaction that only reads, beside those that write.
    pub async fn read<T: Transaction>(&self, transaction: T) -> Result<T::Output> {
        match &self.inner.backend {
            Backend::Sqlite(store) => store.read(transaction).await,
            Backend::Postgres(_) | Backend::MySql(_) => self.run(transaction, Turn::Later).await,
        }
    }

    /// Tells whether processes on the database can give each other hints.
    pub(crate) fn carries_hints(&self) -> bool {
        matches!(self.inner.backend, Backend::Postgres(_))
    }

    /// Tells the other processes that there are events to work on.
    pub(crate) async fn give_hint(&self) -> Result<()> {
        match &self.inner.backend {
            Backend::Postgres(store) => store.give_hint().await,
            Backend::Sqlite(_) | Backend::MySql(_) => Ok(()),
        }
    }

    /// Calls back for each hint; ends at once where the database carries none.
    pub(crate) async fn hear_hints(&self, heard: impl FnMut() + Send) {
        if let Backend::Postgres(store) = &self.inner.backend {
            store.hear_hints(heard).await;
        }
    }

    /// Returns the database.
    pub fn database(&self) -> &Database {
        &self.inner.options.database
    }

    /// Tells whether this process is the only one that works on the database.
    pub fn is_alone(&self) -> bool {
        matches!(self.inner.backend, Backend::Sqlite(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_read_and_shown_without_their_password() {
        for (url, shown) in [
            ("sqlite:a/b.db", "a/b.db"),
            ("sqlite:///tmp/b.db", "/tmp/b.db"),
            (
                "postgres://me:fake@h:1/name?sslmode=require",
                "postgres://h:1/name",
            ),
            ("postgresql://h/name", "postgresql://h/name"),
            ("mysql://me:f@ke@h/name", "mysql://h/name"),
            ("mariadb://h/name", "mariadb://h/name"),
        ] {
            let database = Database::parse(url).unwrap();
            assert_eq!(database.to_string(), shown);
            assert!(!format!("{database:?}").contains("fake"));
        }
        for url in ["", "sqlite:", "oracle://h", "sekali.db"] {
            assert!(Database::parse(url).is_err(), "{url}");
        }
    }
}
