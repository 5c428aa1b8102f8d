//! PostgreSQL and MySQL: pools of connections, and transactions that are run again where another was in the way.
//!
//! Admission has connections of its own, so that nothing that workers or commands do can keep a delivery waiting for one.
//! Every transaction runs at READ COMMITTED. A deadlock, a serialization failure or a lock that was waited for too long
//! is the database's way to ask for another try: the whole transaction is run again, a bounded number of times.

use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{
    Connection as _, Executor as _, MySql, MySqlConnection, MySqlPool, PgConnection, PgPool,
    Postgres,
};

use super::conn::{ColumnTypes, Conn, DbError, DbErrorKind};
use super::{StoreOptions, Transaction, Turn};
use crate::clock::Clock;
use crate::error::{Error, Result, Step as _};

mod migrate;

/// How often a transaction is run while others are in its way.
const MAX_TRIES: u32 = 10;
/// Connections of admission: with more, batches get smaller and each costs the same.
const FIRST_CONNECTIONS: u32 = 2;
/// Connections of everything else.
const LATER_CONNECTIONS: u32 = 8;
/// How long a transaction waits for a connection.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(5);
/// How long a statement waits for a lock.
const LOCK_WITHIN_S: u64 = 10;
/// How long a transaction may idle: a process that was stopped in the middle of one must not hold its locks for ever.
const IDLE_WITHIN_S: u64 = 30;

/// PostgreSQL behind two pools.
pub(super) struct PostgresStore {
    first: PgPool,
    later: PgPool,
    types: ColumnTypes,
    clock: Clock,
}

/// MySQL or MariaDB behind two pools.
pub(super) struct MySqlStore {
    first: MySqlPool,
    later: MySqlPool,
    clock: Clock,
}

fn pool<DB: sqlx::Database>(connections: u32) -> PoolOptions<DB> {
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_WITHIN)
        .test_before_acquire(true)
}

impl PostgresStore {
    pub(super) async fn open(url: &str, options: &StoreOptions) -> Result<Self> {
        let connect: PgConnectOptions = url
            .parse()
            .map_err(DbError::Network)
            .step("read store.url")?;
        let connect = connect
            .application_name("sekali")
            .statement_cache_capacity(256);
        let make = |connections| {
            let pool: PgPoolOptions = pool(connections).after_connect(|db: &mut PgConnection, _| {
                Box::pin(async move {
                    // Set by statements and not at connecting, which poolers in between refuse.
                    let sql = format!(
                        "set default_transaction_isolation = 'read committed'; set timezone = 'UTC'; \
                         set client_min_messages = 'warning'; set lock_timeout = '{LOCK_WITHIN_S}s'; \
                         set idle_in_transaction_session_timeout = '{IDLE_WITHIN_S}s'"
                    );
                    db.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await?;
                    Ok(())
                })
            });
            pool.connect_lazy_with(connect.clone())
        };
        let store = Self {
            first: make(FIRST_CONNECTIONS),
            later: make(LATER_CONNECTIONS),
            types: ColumnTypes::default(),
            clock: options.clock.clone(),
        };
        migrate::postgres(&store.later, options.schema).await?;
        Ok(store)
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
        loop {
            let result = self.once(pool, transaction).await;
            match result {
                Err(error) if tries.again_after(&error) => tries.rest().await,
                result => return result,
            }
        }
    }

    async fn once<T: Transaction>(&self, pool: &PgPool, transaction: &T) -> Result<T::Output> {
        let mut open: sqlx::Transaction<'_, Postgres> =
            pool.begin().await.map_err(DbError::Network).step(T::STEP)?;
        let output = transaction
            .run(&mut Conn::Postgres {
                db: &mut open,
                clock: &self.clock,
                types: &self.types,
            })
            .await;
        match output {
            Ok(output) => {
                open.commit()
                    .await
                    .map_err(DbError::Network)
                    .step(T::STEP)?;
                Ok(output)
            }
            Err(error) => {
                // What a rollback says is of no interest: the connection is closed where it fails.
                let _ = open.rollback().await;
                Err(error)
            }
        }
    }
}

impl MySqlStore {
    pub(super) async fn open(url: &str, options: &StoreOptions) -> Result<Self> {
        let url = match url.strip_prefix("mariadb://") {
            Some(rest) => format!("mysql://{rest}"),
            None => url.to_owned(),
        };
        let connect: MySqlConnectOptions = url
            .parse()
            .map_err(DbError::Network)
            .step("read store.url")?;
        let connect = connect.statement_cache_capacity(256);
        let make = |connections| {
            let pool: MySqlPoolOptions = pool(connections).after_connect(|db: &mut MySqlConnection, _| {
                Box::pin(async move {
                    let sql = format!(
                        "set session transaction isolation level read committed; \
                         set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,NO_ZERO_IN_DATE,\
                         ERROR_FOR_DIVISION_BY_ZERO'; set session time_zone = '+00:00'; \
                         set session innodb_lock_wait_timeout = {LOCK_WITHIN_S}"
                    );
                    db.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql))).await?;
                    Ok(())
                })
            });
            pool.connect_lazy_with(connect.clone())
        };
        let store = Self {
            first: make(FIRST_CONNECTIONS),
            later: make(LATER_CONNECTIONS),
            clock: options.clock.clone(),
        };
        migrate::mysql(&store.later, options.schema).await?;
        Ok(store)
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
        loop {
            let result = self.once(pool, transaction).await;
            match result {
                Err(error) if tries.again_after(&error) => tries.rest().await,
                result => return result,
            }
        }
    }

    async fn once<T: Transaction>(&self, pool: &MySqlPool, transaction: &T) -> Result<T::Output> {
        let step = |result: sqlx::Result<_>| result.map_err(DbError::Network).step(T::STEP);
        let mut db = step(pool.acquire().await)?;
        let mut open: sqlx::Transaction<'_, MySql> =
            db.begin().await.map_err(DbError::Network).step(T::STEP)?;
        let output = transaction
            .run(&mut Conn::MySql {
                db: &mut open,
                clock: &self.clock,
                deadline: None,
            })
            .await;
        match output {
            Ok(output) => {
                open.commit()
                    .await
                    .map_err(DbError::Network)
                    .step(T::STEP)?;
                Ok(output)
            }
            Err(error) if was_given_up(&error) => {
                // The statement still runs: the server ends it with the connection.
                drop(open);
                drop(db.detach());
                Err(error)
            }
            Err(error) => {
                let _ = open.rollback().await;
                Err(error)
            }
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

fn was_given_up(error: &Error) -> bool {
    match error {
        Error::Store { source, .. } => matches!(source, DbError::TooSlow(_)),
        Error::Effect { failure, .. } => failure.reason == crate::reason::Reason::EffectTimeout,
        _ => false,
    }
}
