//! SQLite: one writer on its own thread, and connections for readers.
//!
//! The thread takes transactions from two lines. Admission's line goes first; after each of its transactions one of the
//! other line has its turn, so that a flood of deliveries does not keep the worker from applying them.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use super::conn::{Conn, DbError};
use super::guard::Guard;
use super::{StoreOptions, Transaction, Turn};
use crate::clock::Clock;
use crate::error::{Error, Result, Step as _};

mod checkpoint;

use checkpoint::Progress;

const MIGRATIONS: &[&str] = &[include_str!("../../migrations/sqlite/0001_inbox.sql")];
/// Transactions that may wait in one line.
const MAX_WAITING: usize = 64;
/// How long a statement waits for another process that writes, such as `sekali prune`.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// How many steps of a statement pass between two questions to the guard.
const GUARD_STEPS: i32 = 4000;

/// Memory for pages, negative because that is how SQLite knows kibibytes from pages: with 32 MiB, random ids missed it.
const CACHE_KIB: i64 = -64_000;

type Job = Box<dyn FnOnce(&mut Conn<'_>) + Send>;

/// The writer, and the connections of readers.
pub(super) struct SqliteStore {
    // Closed before the writer: the last connection removes the log, and a reader cannot.
    readers: Arc<Mutex<Vec<Connection>>>,
    writer: Writer,
    path: PathBuf,
    clock: Clock,
    // Held as long as the store: the operating system frees it when the process ends, however it ends.
    _lock: Option<File>,
}

impl SqliteStore {
    pub(super) fn open(path: &Path, options: &StoreOptions) -> Result<Self> {
        let lock = options.exclusive.then(|| lock(path)).transpose()?;
        Ok(Self {
            writer: Writer::start(path, options)?,
            readers: Arc::default(),
            path: path.to_owned(),
            clock: options.clock.clone(),
            _lock: lock,
        })
    }

    pub(super) async fn run<T: Transaction>(
        &self,
        transaction: T,
        turn: Turn,
    ) -> Result<T::Output> {
        self.writer.run(transaction, turn).await
    }

    /// Runs a transaction that only reads, beside the writer.
    pub(super) async fn read<T: Transaction>(&self, transaction: T) -> Result<T::Output> {
        let (readers, path, clock) = (self.readers.clone(), self.path.clone(), self.clock.clone());
        let task = tokio::task::spawn_blocking(move || {
            let all = || readers.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = all().pop();
            let mut db = match idle {
                Some(db) => db,
                None => open_reader(&path).step("open the database for reading")?,
            };
            let output = run_read(&mut db, &clock, &transaction);
            all().push(db);
            output
        });
        task.await.map_err(|_| Error::Closed)?
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

/// The thread that owns the writing connection.
struct Writer {
    lines: Arc<Lines>,
    checkpoints: Arc<Progress>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Lines {
    state: Mutex<LinesState>,
    arrived: Condvar,
    guard: Arc<Guard>,
}

#[derive(Default)]
struct LinesState {
    first: VecDeque<Job>,
    later: VecDeque<Job>,
    is_closed: bool,
    served_first: bool,
}

impl Writer {
    fn start(path: &Path, options: &StoreOptions) -> Result<Self> {
        let mut db = open_writer(path).step("open the database")?;
        migrate(&mut db)?;
        let lines = Arc::new(Lines::default());
        let guard = lines.guard.clone();
        db.progress_handler(GUARD_STEPS, Some(move || guard.interrupts()))
            .map_err(DbError::from)
            .step("set up the database")?;
        let no_thread = |error: std::io::Error| Error::Conflict {
            problem: format!("no thread for the database: {error}"),
        };
        let checkpoints = Arc::new(Progress::default());
        let mut threads = Vec::new();
        // A command beside a server makes none: the server's thread sees to the log, SQLite to that of a short command.
        if options.exclusive {
            db.pragma_update(None, "wal_autocheckpoint", 0)
                .map_err(DbError::from)
                .step("set up the database")?;
            threads.push(checkpoint::start(path, &checkpoints).map_err(no_thread)?);
        }
        let (shared, options, progress) = (lines.clone(), options.clone(), checkpoints.clone());
        let writer = std::thread::Builder::new().name("sekali-sqlite".into());
        let writer = writer.spawn(move || serve(&mut db, &shared, &progress, &options));
        threads.push(writer.map_err(no_thread)?);
        Ok(Self {
            lines,
            checkpoints,
            threads,
        })
    }

    async fn run<T: Transaction>(&self, transaction: T, turn: Turn) -> Result<T::Output> {
        let (answer, waiting) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            // A caller that went away does not undo what was committed.
            let _ = answer.send(transact(conn, &transaction));
        });
        self.lines.push(job, turn)?;
        waiting.await.map_err(|_| Error::Closed)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.lines.lock().is_closed = true;
        self.lines.arrived.notify_all();
        self.checkpoints.end();
        // The last handle may be dropped on a thread of ours, by a job that held it.
        let own = std::thread::current().id();
        for thread in self.threads.drain(..) {
            if thread.thread().id() != own {
                let _ = thread.join();
            }
        }
    }
}

impl Lines {
    fn lock(&self) -> std::sync::MutexGuard<'_, LinesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job, turn: Turn) -> Result<()> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        let line = if turn == Turn::First {
            &mut state.first
        } else {
            &mut state.later
        };
        if line.len() >= MAX_WAITING {
            return Err(Error::Busy { queue: "database" });
        }
        line.push_back(job);
        self.guard.set_waiting(state.first.len());
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for the next job; `None` once the store is closed and everything that waited is done.
    fn next(&self, progress: &Progress) -> Option<Job> {
        let mut state = self.lock();
        loop {
            let job = if state.served_first && !state.later.is_empty() {
                state.served_first = false;
                state.later.pop_front()
            } else {
                state.served_first = !state.first.is_empty();
                state.first.pop_front().or_else(|| state.later.pop_front())
            };
            self.guard.set_waiting(state.first.len());
            if job.is_some() || state.is_closed {
                return job;
            }
            progress.set_idle(true);
            state = self
                .arrived
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            progress.set_idle(false);
        }
    }
}

fn serve(db: &mut Connection, lines: &Lines, progress: &Progress, options: &StoreOptions) {
    let clock = &options.clock;
    while let Some(job) = lines.next(progress) {
        let run = AssertUnwindSafe(|| {
            job(&mut Conn::Sqlite {
                db,
                clock,
                guard: &lines.guard,
            })
        });
        // A panic ends its transaction and not the store: whoever waits for it sees its answer dropped.
        if catch_unwind(run).is_err() {
            lines.guard.disarm();
            let _ = db.execute_batch("rollback");
        }
        progress.committed(db);
    }
    if options.exclusive {
        // Leaves one file behind; a failure only means that the log stays beside it.
        let _ = db.execute_batch("pragma optimize; pragma wal_checkpoint(truncate);");
    }
}

/// Runs one transaction: what it did is committed as a whole, or not at all.
fn transact<T: Transaction>(conn: &mut Conn<'_>, transaction: &T) -> Result<T::Output> {
    writer(conn)
        .execute_batch("begin immediate")
        .map_err(DbError::from)
        .step(T::STEP)?;
    let output = ready(transaction.run(conn));
    conn.unguard();
    let db = writer(conn);
    let finished = match output {
        Ok(output) => db
            .execute_batch("commit")
            .map_err(DbError::from)
            .step(T::STEP)
            .map(|()| output),
        Err(error) => Err(error),
    };
    if finished.is_err() && !db.is_autocommit() {
        // Fails only where SQLite has rolled back by itself already.
        let _ = db.execute_batch("rollback");
    }
    finished
}

fn writer<'c>(conn: &'c mut Conn<'_>) -> &'c mut Connection {
    match conn {
        Conn::Sqlite { db, .. } => db,
        Conn::Postgres { .. } | Conn::MySql { .. } => {
            unreachable!("SQLite's thread is handed SQLite's connection")
        }
    }
}

/// Runs a transaction that only reads, on a reader's connection.
fn run_read<T: Transaction>(
    db: &mut Connection,
    clock: &Clock,
    transaction: &T,
) -> Result<T::Output> {
    db.execute_batch("begin")
        .map_err(DbError::from)
        .step(T::STEP)?;
    let guard = Arc::new(Guard::default());
    let output = ready(transaction.run(&mut Conn::Sqlite {
        db,
        clock,
        guard: &guard,
    }));
    db.execute_batch("rollback")
        .map_err(DbError::from)
        .step(T::STEP)?;
    output
}

/// Takes the result of a future that never waits, as SQLite's do not.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a transaction on SQLite has nothing to wait for"),
    }
}

fn open_writer(path: &Path) -> Result<Connection, DbError> {
    let db = Connection::open(path)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(128);
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "full")?;
    db.pragma_update(None, "cache_size", CACHE_KIB)?;
    db.pragma_update(None, "temp_store", "memory")?;
    db.pragma_update(None, "foreign_keys", "on")?;
    Ok(db)
}

/// Opens a connection that cannot write.
fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    Ok(db)
}

/// Brings the schema up to date; a newer one than this program knows is refused.
fn migrate(db: &mut Connection) -> Result<()> {
    const STEP: &str = "bring the schema up to date";
    let transaction = db
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(DbError::from)
        .step(STEP)?;
    let version: i64 = transaction
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(DbError::from)
        .step(STEP)?;
    let version = usize::try_from(version).unwrap_or(usize::MAX);
    if version > MIGRATIONS.len() {
        return Err(Error::Conflict {
            problem: format!(
                "the schema has version {version}, this program knows {}; it is too old",
                MIGRATIONS.len()
            ),
        });
    }
    for (index, sql) in MIGRATIONS.iter().enumerate().skip(version) {
        transaction
            .execute_batch(sql)
            .map_err(DbError::from)
            .step(STEP)?;
        transaction
            .pragma_update(
                None,
                "user_version",
                i64::try_from(index + 1).unwrap_or(i64::MAX),
            )
            .map_err(DbError::from)
            .step(STEP)?;
    }
    transaction.commit().map_err(DbError::from).step(STEP)
}
