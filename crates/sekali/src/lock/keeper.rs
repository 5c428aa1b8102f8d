//! The connection: made in the background, given up at the first command that fails, and used by nobody in between.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, RedisError};
use tokio::time::sleep;

use super::{LockOptions, LockStats};

/// How often Redis is asked whether it works.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Renews a lock that is still the caller's.
const RENEW: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
/// Takes a lock away that is still the caller's.
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// Says that Redis cannot say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Away;

/// The way to Redis.
pub(super) struct Keeper {
    client: Client,
    pub(super) options: LockOptions,
    state: Mutex<State>,
    held: AtomicU64,
    busy: AtomicU64,
    unavailable: AtomicU64,
    lost: AtomicU64,
}

#[derive(Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// What was last said in the log, so that it is said once.
    said: Option<bool>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Keeper {
    pub(super) fn new(client: Client, options: LockOptions) -> Self {
        Self {
            client,
            options,
            state: Mutex::default(),
            held: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            unavailable: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Looks after the connection for as long as somebody has the lock.
    pub(super) async fn run(keeper: Weak<Self>) {
        while let Some(keeper) = keeper.upgrade() {
            keeper.look().await;
            drop(keeper);
            sleep(LOOK_EVERY).await;
        }
    }

    /// Connects where that is needed, and sees whether Redis would take a lock: one that is full or only reads does not.
    async fn look(&self) {
        let connection = match self.connection() {
            Some(connection) => Ok(connection),
            None => self.connect().await,
        };
        let checked = match connection {
            Ok(connection) => self.try_out(connection.clone()).await.map(|()| connection),
            Err(error) => Err(error),
        };
        match checked {
            Ok(connection) => self.came_up(connection),
            Err(error) => self.went_down(&error),
        }
    }

    async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        let limit = Some(self.options.timeout);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(limit)
            .set_response_timeout(limit);
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        // The limits of the client do not cover what it says to a server that took the connection and is silent.
        match tokio::time::timeout(self.options.timeout * 2, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(RedisError::from((ErrorKind::Io, "no answer in time"))),
        }
    }

    async fn try_out(&self, mut connection: MultiplexedConnection) -> Result<(), RedisError> {
        let mut set = Cmd::new();
        set.arg("SET").arg(format!("{}up", self.options.prefix));
        set.arg(1).arg("PX").arg(1000);
        set.query_async(&mut connection).await
    }

    fn connection(&self) -> Option<MultiplexedConnection> {
        self.state().connection.clone()
    }

    fn came_up(&self, connection: MultiplexedConnection) {
        let mut state = self.state();
        state.connection = Some(connection);
        if state.said.replace(true) == Some(false) {
            tracing::info!("Redis is back; the lock is used again");
        }
    }

    fn went_down(&self, error: &RedisError) {
        let mut state = self.state();
        state.connection = None;
        if state.said.replace(false) != Some(false) {
            tracing::warn!(%error, "Redis cannot be used; events are applied without the lock, once as always");
        }
    }

    /// Takes a lock unless somebody has it.
    pub(super) async fn set(&self, name: &str, token: &str) -> Result<bool, Away> {
        let mut set = Cmd::new();
        set.arg("SET").arg(name).arg(token).arg("NX");
        set.arg("PX").arg(self.ttl_ms());
        let taken = self.ask::<Option<String>>(&set).await;
        let counter = match &taken {
            Ok(Some(_)) => &self.held,
            Ok(None) => &self.busy,
            Err(Away) => &self.unavailable,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        taken.map(|taken| taken.is_some())
    }

    /// Has a lock last its whole time from now; tells whether it was still the caller's.
    pub(super) async fn renew(&self, name: &str, token: &str) -> Result<bool, Away> {
        let mut renew = script(RENEW, name, token);
        renew.arg(self.ttl_ms());
        self.ask::<i64>(&renew).await.map(|renewed| renewed == 1)
    }

    /// Takes a lock away; tells whether it was still the caller's.
    pub(super) async fn release(&self, name: &str, token: &str) -> Result<bool, Away> {
        let release = script(RELEASE, name, token);
        self.ask::<i64>(&release).await.map(|taken| taken == 1)
    }

    /// Counts a lock that was lost while it was held.
    pub(super) fn count_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Away> {
        let mut connection = self.connection().ok_or(Away)?;
        command.query_async(&mut connection).await.map_err(|error| {
            self.went_down(&error);
            Away
        })
    }

    fn ttl_ms(&self) -> u64 {
        self.options.ttl.as_millis().try_into().unwrap_or(u64::MAX)
    }

    pub(super) fn stats(&self) -> LockStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LockStats {
            held: count(&self.held),
            busy: count(&self.busy),
            unavailable: count(&self.unavailable),
            lost: count(&self.lost),
            is_up: self.state().connection.is_some(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn script(script: &str, name: &str, token: &str) -> Cmd {
    let mut command = Cmd::new();
    command.arg("EVAL").arg(script).arg(1).arg(name).arg(token);
    command
}
