//! The store: where events live, and the one door to the database.
//!
//! Every unit of work is a [`Transaction`]: a value with a name that runs against a [`Conn`] and commits or rolls back
//! as a whole. SQLite has one writer on its own thread, so that a whole transaction costs one hop; admission goes first,
//! and after each of its transactions one of the others has its turn. Reads have connections of their own.
//!
//! What always holds: a row is only changed by a statement whose condition names the state it expects, and whose row
//! count is checked; nothing here calls upwards; there is no state in memory that matters after a crash.

use std::fs::{File, TryLockError};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::clock::Clock;
use crate::error::{Error, Result, Step as _};

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
mod positions;
mod prune;
mod rejected;
mod sqlite;
mod tables;
mod variants;
mod work;

pub use admin::{AcceptVariant, Erase, Redrive, ResetEntity};
pub(crate) use attempts::{Attempt, insert_attempts};
pub use conn::{Conn, DbError, DbErrorKind, Row, Value};
pub(crate) use deliveries::WriteRejected;
pub use depth::{Depth, PendingSources, Ping, ReadDepth};
pub(crate) use entities::{EntityState, lock_entities, save_entity};
pub use guard::Interruption;
pub use handshakes::{HandshakeOutcome, HandshakeRow, ListHandshakes, NoteHandshake};
pub use history::{
    AttemptRow, DeliveryRow, EntityHistory, EventFilter, EventRow, GapRow, ListEvents, ShowEntity,
    ShowEvent, Story, VariantRow,
};
pub(crate) use inbox::Admit;
pub(crate) use positions::{
    conflicting_seq, is_any_waiting, missing_versions, note_position, waiting_since, wake_followers,
};
pub use prune::{Cursor, Prune, Pruned, Retention};
pub use rejected::{FindRejected, KeepRejected, ListRejected, RejectedRow};
pub use tables::{CheckEffects, Setup};
pub(crate) use tables::{Columns, Write, WriteKind};
pub(crate) use work::{Claim, Claimed, Fail, GiveBack, Renew, Settlement, settle, take_over_all};

/// One unit of work against the database; it commits or rolls back as a whole.
pub trait Transaction: Send + 'static {
    /// What it returns.
    type Output: Send + 'static;
    /// What is being done; reads after "could not".
    const STEP: &'static str;

    /// Runs the statements; an error rolls everything back.
    fn run(self, conn: &mut Conn<'_>) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The database file.
    pub path: PathBuf,
    /// The clock that stands for the database's.
    pub clock: Clock,
    /// Whether this process is the one that serves; only one may be.
    pub exclusive: bool,
}

/// A handle on the database; clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    // Closed before the writer: the last connection removes the log, and a reader cannot.
    readers: Mutex<Vec<rusqlite::Connection>>,
    writer: sqlite::Writer,
    options: StoreOptions,
    // Held as long as the store: the operating system frees it when the process ends, however it ends.
    _lock: Option<File>,
}

impl Store {
    /// Opens the database, creates what is missing and takes the lock of the serving process if asked to.
    pub async fn open(options: StoreOptions) -> Result<Self> {
        let lock = options.exclusive.then(|| lock(&options.path)).transpose()?;
        let writer = sqlite::Writer::start(&options)?;
        let inner = Inner {
            writer,
            readers: Mutex::new(Vec::new()),
            options,
            _lock: lock,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Runs a transaction that writes.
    pub async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Output> {
        self.inner
            .writer
            .run(transaction, sqlite::Turn::Later)
            .await
    }

    /// Runs a transaction that writes, before all others that wait.
    pub(crate) async fn write_first<T: Transaction>(&self, transaction: T) -> Result<T::Output> {
        self.inner
            .writer
            .run(transaction, sqlite::Turn::First)
            .await
    }

    /// Runs a transaction that only reads, beside the writer.
    pub async fn read<T: Transaction>(&self, transaction: T) -> Result<T::Output> {
        let inner = self.inner.clone();
        let task = tokio::task::spawn_blocking(move || {
            let idle = inner
                .readers
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .pop();
            let mut db = match idle {
                Some(db) => db,
                None => {
                    sqlite::open_reader(&inner.options).step("open the database for reading")?
                }
            };
            let output = sqlite::run_read(&mut db, &inner.options.clock, transaction);
            inner
                .readers
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .push(db);
            output
        });
        task.await.map_err(|_| Error::Closed)?
    }

    /// Returns the database's file.
    pub fn path(&self) -> &Path {
        &self.inner.options.path
    }
}

/// Takes the lock of the serving process.
fn lock(path: &Path) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push("-serve.lock");
    let problem = |what: String| Error::Conflict { problem: what };
    let file =
        File::create(&name).map_err(|error| problem(format!("{}: {error}", name.display())))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(problem(format!(
            "{} is already served by another process; SQLite is for one node, more of them need PostgreSQL or MySQL",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(problem(format!("{}: {error}", name.display()))),
    }
}
