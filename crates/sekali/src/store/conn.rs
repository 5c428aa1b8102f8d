//! One connection over the databases: the only file that names a driver.
//!
//! Statements are written with `?` and run through [`Conn`], so that each stands in the code once. The functions are
//! `async` because a networked database waits; SQLite's part never does, and runs on the store's own thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};

use super::guard::{Guard, Interruption};
use crate::clock::Clock;

/// What the database said.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DbError(#[from] rusqlite::Error);

/// What a database error means for whoever ran the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbErrorKind {
    /// The row itself is refused; trying again cannot help.
    Constraint,
    /// The statement was interrupted by the store's guard.
    Interrupted,
    /// Anything else: trying again may help.
    Other,
}

impl DbError {
    /// Tells what the error means.
    pub fn kind(&self) -> DbErrorKind {
        use rusqlite::ErrorCode as Code;
        match self.0.sqlite_error_code() {
            Some(Code::ConstraintViolation | Code::TypeMismatch | Code::TooBig) => {
                DbErrorKind::Constraint
            }
            Some(Code::OperationInterrupted) => DbErrorKind::Interrupted,
            _ => DbErrorKind::Other,
        }
    }
}

/// A value to bind.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// An integer.
    Int(i64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Integer(value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

/// One row of an answer.
pub enum Row<'r> {
    /// A row of SQLite.
    Sqlite(&'r rusqlite::Row<'r>),
}

impl Row<'_> {
    /// Returns an integer.
    pub fn int(&self, index: usize) -> Result<i64, DbError> {
        let Self::Sqlite(row) = self;
        Ok(row.get(index)?)
    }

    /// Returns an integer or null.
    pub fn opt_int(&self, index: usize) -> Result<Option<i64>, DbError> {
        let Self::Sqlite(row) = self;
        Ok(row.get(index)?)
    }

    /// Returns text.
    pub fn text(&self, index: usize) -> Result<String, DbError> {
        let Self::Sqlite(row) = self;
        Ok(row.get(index)?)
    }

    /// Returns text or null.
    pub fn opt_text(&self, index: usize) -> Result<Option<String>, DbError> {
        let Self::Sqlite(row) = self;
        Ok(row.get(index)?)
    }

    /// Returns bytes or null; a column that somebody filled with another type counts as null.
    pub fn opt_bytes(&self, index: usize) -> Result<Option<Vec<u8>>, DbError> {
        let Self::Sqlite(row) = self;
        Ok(match row.get_ref(index)? {
            ValueRef::Blob(bytes) => Some(bytes.to_vec()),
            _ => None,
        })
    }
}

/// A connection inside a transaction.
pub enum Conn<'c> {
    /// SQLite, on the thread that owns the connection.
    Sqlite {
        /// The connection.
        db: &'c mut rusqlite::Connection,
        /// The clock that stands for the database's.
        clock: &'c Clock,
        /// What interrupts a statement that runs too long.
        guard: &'c Arc<Guard>,
    },
}

impl Conn<'_> {
    /// Returns the database's time in milliseconds UTC; SQLite has no clock but the process's.
    pub async fn now_ms(&mut self) -> Result<i64, DbError> {
        let Self::Sqlite { clock, .. } = self;
        Ok(clock.now_ms())
    }

    /// Runs a statement and returns how many rows it changed.
    pub async fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, DbError> {
        let Self::Sqlite { db, .. } = self;
        let changed = db
            .prepare_cached(sql)?
            .execute(rusqlite::params_from_iter(values))?;
        Ok(changed as u64)
    }

    /// Inserts one row unless it conflicts, and returns the number it was given.
    pub async fn insert(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Option<i64>, DbError> {
        let changed = self.execute(sql, values).await?;
        let Self::Sqlite { db, .. } = self;
        Ok((changed == 1).then(|| db.last_insert_rowid()))
    }

    /// Runs a query and maps its rows.
    pub async fn fetch<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T, DbError> + Send,
    ) -> Result<Vec<T>, DbError> {
        let Self::Sqlite { db, .. } = self;
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(map(&Row::Sqlite(row))?);
        }
        Ok(found)
    }

    /// Runs a query and maps its first row.
    pub async fn fetch_one<T: Send>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T, DbError> + Send,
    ) -> Result<Option<T>, DbError> {
        Ok(self.fetch(sql, values, map).await?.into_iter().next())
    }

    /// Runs statements that are not bound and give no rows.
    pub async fn script(&mut self, sql: &str) -> Result<(), DbError> {
        let Self::Sqlite { db, .. } = self;
        Ok(db.execute_batch(sql)?)
    }

    /// Checks a statement against the schema without running it.
    pub async fn check(&mut self, sql: &str) -> Result<(), DbError> {
        let Self::Sqlite { db, .. } = self;
        db.prepare(sql)?;
        Ok(())
    }

    /// Has the statements that follow interrupted after `timeout`, and after `give_way_after` while deliveries wait.
    pub fn guard(&mut self, timeout: Duration, give_way_after: Duration) {
        let Self::Sqlite { guard, .. } = self;
        let now = Instant::now();
        guard.arm(now + timeout, now + give_way_after);
    }

    /// Lifts the guard, and tells what it interrupted, if anything.
    pub fn unguard(&mut self) -> Option<Interruption> {
        let Self::Sqlite { guard, .. } = self;
        guard.disarm()
    }
}
