//! The first connection: a database that is starting, or not there yet, is waited for, with a bound and with words.

use std::time::Duration;

use sqlx::Connection;
use tokio::time::{Instant, sleep, timeout_at};

use super::driver::Driver;
use crate::error::{Error, Result, Step as _, chain, seconds};
use crate::store::Database;
use crate::store::conn::DbError;

/// How long one try may take.
const TRY_WITHIN: Duration = Duration::from_secs(5);
/// How long it rests between two tries.
const REST: Duration = Duration::from_millis(250);

/// Connects, and waits for a database that cannot be reached yet for at most `within`.
///
/// What waiting cannot mend, such as a wrong password or a database that does not exist, is an error at once.
pub(super) async fn reach<DB: Driver>(
    connect: &<DB::Connection as Connection>::Options,
    database: &Database,
    within: Duration,
) -> Result<DB::Connection> {
    let end = Instant::now() + within;
    let mut has_spoken = false;
    loop {
        let connected = timeout_at(
            Instant::now() + TRY_WITHIN,
            DB::Connection::connect_with(connect),
        );
        let error = match connected.await {
            Ok(Ok(db)) => return Ok(db),
            Ok(Err(error)) if !may_pass::<DB>(&error) => {
                return Err(DbError::Network(error)).step("connect to the database");
            }
            Ok(Err(error)) => DbError::Network(error),
            Err(_) => DbError::TooSlow(TRY_WITHIN),
        };
        if Instant::now() + REST >= end {
            let problem = match within.is_zero() {
                true => format!(
                    "the database {database} cannot be reached: {}",
                    chain(&error)
                ),
                false => format!(
                    "the database {database} could not be reached within {}: {}",
                    seconds(within),
                    chain(&error)
                ),
            };
            return Err(Error::Unreachable { problem });
        }
        if !has_spoken {
            has_spoken = true;
            tracing::warn!(%database, error = chain(&error), within = seconds(within), "waiting for the database");
        }
        sleep(REST).await;
    }
}

/// Tells whether the same may go well a moment later.
fn may_pass<DB: Driver>(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
        sqlx::Error::Database(error) => {
            let number = error
                .try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()
                .map(sqlx::mysql::MySqlDatabaseError::number);
            DB::may_be_starting(&error.code().unwrap_or_default(), number)
        }
        _ => false,
    }
}
