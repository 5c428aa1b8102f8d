//! PostgreSQL and MySQL: pools of connections, and transactions that are run again where another was in the way.
//!
//! Admission has connections of its own, so that nothing that workers or commands do can keep a delivery waiting for one.
//! Every transaction runs at READ COMMITTED. A deadlock, a serialization failure or a lock that was waited for too long
//! is the database's way to ask for another try: the whole transaction is run again, a bounded number of times.
//!
//! A connection goes back to its pool only from a transaction that came to a clean end. One that was given up half-way,
//! or whose server said that it cannot work (it is shutting down, read-only, full), is closed: the next transaction gets
//! a new one, which may lead to a server that can.

use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::{Connection as _, Pool};

use super::conn::{DbError, DbErrorKind, Wire};
use super::{StoreOptions, Transaction, Turn};
use crate::clock::Clock;
use crate::error::{Error, Result, Step as _};

mod driver;
mod hint;
mod migrate;
mod mysql;
mod postgres;
mod reach;

use driver::{Driver, Session};

/// How often a transaction is run while others are in its way.
const MAX_TRIES: u32 = 10;
/// Connections of admission: with more, batches get smaller and each costs the same.
const FIRST_CONNECTIONS: u32 = 2;
/// Connections of everything else; one of them may be waiting for hints all the time.
const LATER_CONNECTIONS: u32 = 9;
/// How long a transaction waits for a connection.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(5);
/// How long a statement waits for a lock, and how long an admission may idle in its transaction: a node that was stopped
/// there holds the keys that other nodes insert.
const FIRST_WAITS: Duration = Duration::from_secs(4);
/// How long any other statement waits for a lock. MySQL ends only the statement then: the session of a node that was stopped
/// keeps the locks that it had before for as long as it may idle, so that both together are how long others wait for them.
const LATER_WAITS: Duration = Duration::from_secs(3);

/// A database behind two pools.
pub(super) struct NetworkStore<DB: Driver> {
    first: Pool<DB>,
    later: Pool<DB>,
    parts: DB::Parts,
    clock: Clock,
}

/// PostgreSQL.
pub(super) type PostgresStore = NetworkStore<sqlx::Postgres>;
/// MySQL or MariaDB.
pub(super) type MySqlStore = NetworkStore<sqlx::MySql>;

impl<DB: Driver> NetworkStore<DB> {
    pub(super) async fn open(url: &str, options: &StoreOptions) -> Result<Self> {
        let connect = DB::read_url(url)
            .map_err(DbError::Network)
            .step("read store.url")?;
        let first = Session {
            lock_wait: FIRST_WAITS,
            idle: FIRST_WAITS,
            allow_unsafe_durability: options.allow_unsafe_durability,
        };
        let later = Session {
            // A node that was stopped may be waiting with one session for another one of its own: once the database ends
            // that, this one would idle for as long again, with locks that it just got.
            lock_wait: LATER_WAITS.min(options.lease / 2),
            idle: options.lease,
            ..first
        };
        let mut db =
            reach::reach::<DB>(&connect, &options.database, options.connect_within).await?;
        if let Some(problem) = DB::begin_session(&mut db, later)
            .await
            .map_err(DbError::Network)
            .step("begin a session")?
        {
            return Err(Error::config("store.allow_unsafe_durability", problem));
        }
        DB::migrate(&mut db, options.schema).await?;
        // The way a session ends is of no interest.
        let _ = db.close().await;
        Ok(Self {
            first: pool(&connect, FIRST_CONNECTIONS, first),
            later: pool(&connect, LATER_CONNECTIONS, later),
            parts: DB::Parts::default(),
            clock: options.clock.clone(),
        })
    }

    pub(super) async fn run<T: Transaction>(
        &self,
        transaction: &T,
        turn: Turn,
    ) -> Result<T::Output> {
        let pool = match turn {
            Turn::First => &self.first,
            Turn::Later => &self.later,
        };
        let mut tries = Tries::default();
        let end = Instant::now() + transaction.within();
        loop {
            match self.once(pool, transaction).await {
                Err(error) if tries.again_after(&error) && Instant::now() < end => {
                    tries.rest().await;
                }
                result => return result,
            }
        }
    }

    async fn once<T: Transaction>(&self, pool: &Pool<DB>, transaction: &T) -> Result<T::Output> {
        let db = pool.acquire().await.map_err(DbError::Network);
        let mut held = Held(Some(db.step(T::STEP)?));
        let (limit, backend) = (transaction.within(), AtomicI64::new(0));
        let wire = Wire::new(&self.clock, &backend);
        let work = self.inside(held.connection(), wire, transaction);
        let result = match tokio::time::timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => Err(DbError::TooSlow(limit)).step(T::STEP),
        };
        match &result {
            // It still runs, and holds its locks.
            Err(error) if was_given_up(error) => {
                DB::end_session(pool.clone(), backend.into_inner());
            }
            Err(error) if !leaves_usable(error) => {}
            _ => held.give_back(),
        }
        result
    }

    async fn inside<T: Transaction>(
        &self,
        db: &mut DB::Connection,
        wire: Wire<'_>,
        transaction: &T,
    ) -> Result<T::Output> {
        let step = |result: sqlx::Result<()>| result.map_err(DbError::Network).step(T::STEP);
        let mut open = db.begin().await.map_err(DbError::Network).step(T::STEP)?;
        let mut conn = DB::conn(&mut open, wire, &self.parts);
        match transaction.run(&mut conn).await {
            Ok(output) => step(open.commit().await).map(|()| output),
            Err(error) => {
                if leaves_usable(&error) {
                    // What a rollback says is of no interest: the connection is closed where it fails.
                    let _ = open.rollback().await;
                }
                Err(error)
            }
        }
    }
}

fn pool<DB: Driver>(
    connect: &<DB::Connection as sqlx::Connection>::Options,
    connections: u32,
    session: Session,
) -> Pool<DB> {
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_WITHIN)
        .test_before_acquire(true)
        .after_connect(move |db: &mut DB::Connection, _| {
            Box::pin(async move {
                match DB::begin_session(db, session).await? {
                    None => Ok(()),
                    Some(problem) => Err(sqlx::Error::Configuration(problem.into())),
                }
            })
        })
        .connect_lazy_with(connect.clone())
}

/// A connection for one transaction, which is closed unless it is given back.
struct Held<DB: Driver>(Option<PoolConnection<DB>>);

impl<DB: Driver> Held<DB> {
    fn connection(&mut self) -> &mut DB::Connection {
        match &mut self.0 {
            Some(db) => db,
            None => unreachable!("a connection is used before it is given back"),
        }
    }

    fn give_back(mut self) {
        self.0 = None;
    }
}

impl<DB: Driver> Drop for Held<DB> {
    fn drop(&mut self) {
        // In the middle of a statement, in which the pool would wait for its answer.
        if let Some(db) = self.0.take() {
            drop(db.detach());
        }
    }
}

/// Counts how often a transaction was run.
#[derive(Default)]
struct Tries(u32);

impl Tries {
    /// Tells whether the same transaction may be run once more.
    fn again_after(&mut self, error: &Error) -> bool {
        let Error::Store { source, .. } = error else {
            return false;
        };
        self.0 += 1;
        source.kind() == DbErrorKind::Contended && self.0 < MAX_TRIES
    }

    async fn rest(&self) {
        let most = 2_u64 << self.0.min(7);
        tokio::time::sleep(Duration::from_millis(fastrand::u64(1..=most))).await;
    }
}

/// Tells whether a connection can be used again after an error.
fn leaves_usable(error: &Error) -> bool {
    match error {
        Error::Store { source, .. } => {
            !matches!(source, DbError::TooSlow(_)) && source.kind() != DbErrorKind::Unavailable
        }
        _ => !was_given_up(error),
    }
}

/// Tells whether a statement may still run.
fn was_given_up(error: &Error) -> bool {
    let (Error::Effect { failure, .. } | Error::Together { failure }) = error else {
        return matches!(
            error,
            Error::Store {
                source: DbError::TooSlow(_),
                ..
            }
        );
    };
    failure.reason == crate::reason::Reason::EffectTimeout
}
