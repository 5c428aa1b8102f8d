//! One connection over the databases: with its parts, the only file that names a driver.
//!
//! Statements are written with `?` and run through [`Conn`], so that each stands in the code once; those about many rows
//! are described in [`super::rows`]. The functions are `async` because a networked database waits; SQLite's part never
//! does, and runs on the store's own thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sqlx::{MySqlConnection, PgConnection};

use super::guard::{Guard, Interruption};
use super::rows::{Delete, Insert, Rows, Select, Update};
use crate::clock::Clock;

mod error;
mod mysql;
mod postgres;
mod row;
mod value;
mod wire;

pub use error::{DbError, DbErrorKind};
pub use row::Row;
pub use value::Value;
pub(super) use wire::Wire;

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
    /// PostgreSQL.
    Postgres {
        /// The connection.
        db: &'c mut PgConnection,
        /// What is known about it.
        wire: Wire<'c>,
        /// What the columns of the user's tables are.
        types: &'c postgres::ColumnTypes,
    },
    /// MySQL or MariaDB.
    MySql {
        /// The connection.
        db: &'c mut MySqlConnection,
        /// What is known about it.
        wire: Wire<'c>,
    },
}

pub(super) use mysql::{rendered, run_several};
pub(super) use postgres::ColumnTypes;

impl Conn<'_> {
    /// Returns the database's time in milliseconds UTC; SQLite has no clock but the process's.
    pub async fn now_ms(&mut self) -> Result<i64, DbError> {
        let (clock, sql) = match self {
            Self::Sqlite { clock, .. } => return Ok(clock.now_ms()),
            Self::Postgres { wire, .. } => (wire.clock, postgres::NOW),
            Self::MySql { wire, .. } => (wire.clock, mysql::NOW),
        };
        let told = self.fetch_one(sql, &[], |row| Ok((row.int(0)?, row.int(1)?)));
        let (now, backend) = told.await?.ok_or(DbError::Gone)?;
        if let Self::Postgres { wire, .. } | Self::MySql { wire, .. } = self {
            wire.backend.store(backend, Ordering::Relaxed);
        }
        Ok(match clock {
            Clock::Manual(_) => clock.now_ms(),
            Clock::System => now,
        })
    }

    /// Tells whether the database says which rows of an insert are new.
    pub(crate) fn names_new_rows(&self) -> bool {
        !matches!(self, Self::MySql { .. })
    }

    /// Tells whether a statement costs no round trip, and holds everybody else up instead.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Sqlite { .. })
    }

    /// Runs a statement and returns how many rows it changed.
    pub async fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, DbError> {
        match self {
            Self::Sqlite { db, .. } => {
                let changed = db
                    .prepare_cached(sql)?
                    .execute(rusqlite::params_from_iter(values))?;
                Ok(changed as u64)
            }
            Self::Postgres { db, wire, .. } => {
                wire.within(postgres::execute(db, sql, values)).await
            }
            Self::MySql { db, wire } => wire.within(mysql::execute(db, sql, values)).await,
        }
    }

    /// Runs a query and maps its rows.
    pub async fn fetch<T: Send>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T, DbError> + Send,
    ) -> Result<Vec<T>, DbError> {
        match self {
            Self::Sqlite { db, .. } => {
                let mut statement = db.prepare_cached(sql)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                let mut found = Vec::new();
                while let Some(row) = rows.next()? {
                    found.push(map(&Row::Sqlite(row))?);
                }
                Ok(found)
            }
            Self::Postgres { db, wire, .. } => {
                let rows = wire.within(postgres::fetch(db, sql, values)).await?;
                rows.iter().map(|row| map(&Row::Postgres(row, 0))).collect()
            }
            Self::MySql { db, wire } => {
                let rows = wire.within(mysql::fetch(db, sql, values)).await?;
                rows.iter().map(|row| map(&Row::MySql(row, 0))).collect()
            }
        }
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

    /// Inserts rows and returns how many it inserted, or met where that is allowed.
    pub(crate) async fn insert_all(
        &mut self,
        insert: &Insert,
        rows: &Rows<'_>,
    ) -> Result<u64, DbError> {
        let texts = insert.texts();
        match self {
            _ if rows.is_empty() => Ok(0),
            Self::Sqlite { db, .. } => for_each(db, &texts.sqlite, rows),
            Self::Postgres { db, .. } => {
                postgres::execute_all(db, &texts.postgres, insert.kinds(), rows).await
            }
            Self::MySql { db, .. } => mysql::insert_all(db, &texts.mysql, rows).await,
        }
    }

    /// Inserts rows unless they are known, and returns for each the number it was given.
    ///
    /// The first `key` columns are what the rows are told apart by. Where the database does not name those that are new, the
    /// last column has to hold a mark of this insert.
    pub(crate) async fn insert_new(
        &mut self,
        insert: &Insert,
        key: usize,
        rows: &Rows<'_>,
    ) -> Result<Vec<Option<i64>>, DbError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Self::Sqlite { db, .. } => {
                let mut statement = db.prepare_cached(&insert.texts().sqlite)?;
                let mut numbers = Vec::with_capacity(rows.len());
                for row in rows.iter() {
                    let changed = statement.execute(rusqlite::params_from_iter(row))?;
                    numbers.push((changed == 1).then(|| db.last_insert_rowid()));
                }
                Ok(numbers)
            }
            Self::Postgres { db, .. } => postgres::insert_new(db, insert, key, rows).await,
            Self::MySql { db, .. } => mysql::insert_new(db, insert, key, rows).await,
        }
    }

    /// Changes rows and returns how many matched.
    pub(crate) async fn update_all(
        &mut self,
        update: &Update,
        rows: &Rows<'_>,
    ) -> Result<u64, DbError> {
        let texts = update.texts();
        match self {
            _ if rows.is_empty() => Ok(0),
            Self::Sqlite { db, .. } => for_each(db, &texts.sqlite, rows),
            Self::Postgres { db, .. } => {
                postgres::execute_all(db, &texts.postgres, update.kinds(), rows).await
            }
            Self::MySql { db, .. } => mysql::execute_all(db, &texts.mysql, rows).await,
        }
    }

    /// Deletes rows and returns how many.
    pub(crate) async fn delete_all(
        &mut self,
        delete: &Delete,
        rows: &Rows<'_>,
    ) -> Result<u64, DbError> {
        let texts = delete.texts();
        match self {
            _ if rows.is_empty() => Ok(0),
            Self::Sqlite { db, .. } => for_each(db, &texts.sqlite, rows),
            Self::Postgres { db, .. } => {
                postgres::execute_all(db, &texts.postgres, delete.kinds(), rows).await
            }
            Self::MySql { db, .. } => mysql::execute_all(db, &texts.mysql, rows).await,
        }
    }

    /// Finds what matches each of the rows; `map` is also given the row's place.
    pub(crate) async fn select_all<T: Send>(
        &mut self,
        select: &Select,
        rows: &Rows<'_>,
        mut map: impl FnMut(usize, &Row<'_>) -> Result<T, DbError> + Send,
    ) -> Result<Vec<T>, DbError> {
        let texts = select.texts();
        let place = |number: i64| usize::try_from(number - 1).unwrap_or_default();
        match self {
            _ if rows.is_empty() => Ok(Vec::new()),
            Self::Sqlite { db, .. } => {
                let mut statement = db.prepare_cached(&texts.sqlite)?;
                let mut found = Vec::with_capacity(rows.len());
                for (index, row) in rows.iter().enumerate() {
                    let mut answer = statement.query(rusqlite::params_from_iter(row))?;
                    while let Some(row) = answer.next()? {
                        found.push(map(index, &Row::Sqlite(row))?);
                    }
                }
                Ok(found)
            }
            Self::Postgres { db, .. } => {
                let answer = postgres::fetch_all(db, &texts.postgres, select.kinds(), rows).await?;
                let found = answer.iter().map(|row| {
                    let number = Row::Postgres(row, 0).int(0)?;
                    map(place(number), &Row::Postgres(row, 1))
                });
                found.collect()
            }
            Self::MySql { db, .. } => {
                let answer = mysql::fetch_all(db, &texts.mysql, rows).await?;
                let found = answer.iter().map(|row| {
                    let number = Row::MySql(row, 0).int(0)?;
                    map(place(number), &Row::MySql(row, 1))
                });
                found.collect()
            }
        }
    }

    /// Runs statements that are not bound and give no rows.
    pub async fn script(&mut self, sql: &str) -> Result<(), DbError> {
        match self {
            Self::Sqlite { db, .. } => Ok(db.execute_batch(sql)?),
            Self::Postgres { db, .. } => postgres::script(db, sql).await,
            Self::MySql { db, .. } => mysql::script(db, sql).await,
        }
    }

    /// Checks a statement against the schema without running it.
    pub async fn check(&mut self, sql: &str) -> Result<(), DbError> {
        match self {
            Self::Sqlite { db, .. } => {
                db.prepare(sql)?;
                Ok(())
            }
            Self::Postgres { db, .. } => postgres::check(db, sql).await,
            Self::MySql { db, .. } => mysql::check(db, sql).await,
        }
    }

    /// Has the statements that follow interrupted after `timeout`; on SQLite, where there is one writer, also after
    /// `give_way_after` while deliveries wait.
    pub fn guard(&mut self, timeout: Duration, give_way_after: Duration) {
        let now = Instant::now();
        match self {
            Self::Sqlite { guard, .. } => guard.arm(now + timeout, now + give_way_after),
            Self::Postgres { wire, .. } | Self::MySql { wire, .. } => {
                wire.deadline = Some(now + timeout);
            }
        }
    }

    /// Lifts the guard, and tells what it interrupted.
    pub fn unguard(&mut self) -> Option<Interruption> {
        match self {
            Self::Sqlite { guard, .. } => guard.disarm(),
            Self::Postgres { wire, .. } | Self::MySql { wire, .. } => {
                wire.deadline = None;
                None
            }
        }
    }
}

/// Tells which of the rows are new, by what the database says of those: their number and then their key.
fn numbers<'r>(
    new: impl ExactSizeIterator<Item = Row<'r>>,
    key: usize,
    rows: &Rows<'_>,
) -> Result<Vec<Option<i64>>, DbError> {
    let mut known: HashMap<Vec<String>, i64> = HashMap::with_capacity(new.len());
    for row in new {
        let key: Result<Vec<String>, DbError> = (1..=key).map(|index| row.text(index)).collect();
        known.insert(key?, row.int(0)?);
    }
    let number = |row: &[Value<'_>]| {
        let text = |value: &Value<'_>| match *value {
            Value::Text(text) => Some(text.to_owned()),
            _ => None,
        };
        let key: Option<Vec<String>> = row.iter().take(key).map(text).collect();
        known.get(&key?).copied()
    };
    Ok(rows.iter().map(number).collect())
}

/// Runs a statement for one row after the other, and returns how many rows it changed.
fn for_each(db: &mut rusqlite::Connection, sql: &str, rows: &Rows<'_>) -> Result<u64, DbError> {
    let mut statement = db.prepare_cached(sql)?;
    let mut changed = 0;
    for row in rows.iter() {
        changed += statement.execute(rusqlite::params_from_iter(row))?;
    }
    Ok(changed as u64)
}
