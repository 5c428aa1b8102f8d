//! The user's own tables: the statements of `upsert` and `delete` effects, made from their configuration.
//!
//! A version column carries a guard in the write itself: a row that stands higher than the event is not touched. That
//! cannot happen behind the gate unless somebody else writes the table, and is then an error of its own.
//!
//! SQLite writes row by row, and so does MySQL, in one round trip. PostgreSQL writes all rows at once; values come as text and are cast to the types
//! of their columns, without the length of those, so that a text that is too long is refused and not cut.

use std::time::Duration;

use super::{Conn, DbError, Transaction, Value};
use crate::effect::Effect;
use crate::error::{Error, Result, Step as _};
use crate::source::Source;

mod mysql;
mod postgres;
mod sqlite;

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Upsert,
    Delete,
}

/// Whether a write touched its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// It did, or there was nothing to delete.
    Done,
    /// A row stood higher than its event.
    MetGuard,
}

/// A write to a user's table.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    kind: WriteKind,
    columns: Columns,
    sqlite: sqlite::Texts,
    mysql: mysql::Texts,
}

/// The columns of a user's table that an effect writes.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    pub(crate) table: String,
    pub(crate) keys: Vec<String>,
    /// Other columns; the version column is among them, and the last.
    pub(crate) others: Vec<String>,
    pub(crate) version: Option<String>,
}

impl Write {
    /// Makes the statements; names are quoted, values are bound.
    pub(crate) fn new(kind: WriteKind, columns: Columns) -> Self {
        Self {
            sqlite: sqlite::Texts::new(kind, &columns),
            mysql: mysql::Texts::new(kind, &columns),
            kind,
            columns,
        }
    }

    /// Writes rows, no two of them with one key, and tells whether a guard was met.
    ///
    /// The values of a row are those of the keys, then of the other columns (upsert) or of the version (delete).
    pub(crate) async fn run(
        &self,
        conn: &mut Conn<'_>,
        rows: &[Vec<Value<'_>>],
        guarded: bool,
    ) -> Result<Ran, DbError> {
        let uses_guard = guarded && self.columns.version.is_some();
        if let Conn::Postgres { db, types, wire } = conn {
            let write = postgres::Statement::new(self, uses_guard);
            let ran = wire.within(write.run(db, types, rows)).await;
            if ran.is_err() {
                // A table may have been changed since its types were read.
                types.forget();
            }
            return ran;
        }
        if let Conn::MySql { db, wire } = conn {
            return wire
                .within(self.mysql.run(self, db, rows, uses_guard))
                .await;
        }
        for row in rows {
            if self.sqlite.run(self, conn, row, uses_guard).await? == Ran::MetGuard {
                return Ok(Ran::MetGuard);
            }
        }
        Ok(Ran::Done)
    }

    /// Returns the values that a statement binds.
    fn bound<'r, 'v>(&self, row: &'r [Value<'v>], uses_guard: bool) -> &'r [Value<'v>] {
        match self.kind {
            WriteKind::Delete if !uses_guard => self.key_of(row),
            _ => row,
        }
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> &str {
        &self.columns.table
    }

    /// Returns the values of a row's key.
    pub(crate) fn key_of<'r, 'v>(&self, row: &'r [Value<'v>]) -> &'r [Value<'v>] {
        &row[..self.columns.keys.len()]
    }

    async fn check(&self, conn: &mut Conn<'_>) -> Result<(), DbError> {
        match conn {
            Conn::Sqlite { .. } => {
                for sql in self.sqlite.all() {
                    conn.check(sql).await?;
                }
            }
            Conn::MySql { .. } => {
                for sql in self.mysql.all() {
                    conn.check(sql).await?;
                }
            }
            Conn::Postgres { db, types, .. } => {
                for uses_guard in [true, false] {
                    let write = postgres::Statement::new(self, uses_guard);
                    write.check(db, types).await?;
                }
            }
        }
        Ok(())
    }
}

/// Quotes a name that was checked to hold only letters, digits, `_` and one dot.
fn quoted(name: &str, quote: char) -> String {
    let parts: Vec<String> = name
        .split('.')
        .map(|part| format!("{quote}{part}{quote}"))
        .collect();
    parts.join(".")
}

/// Writes names behind one another.
fn list(names: &[String], quote: char) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name, quote)).collect();
    names.join(", ")
}

/// Writes `name = ?` for each name, joined.
fn equal(names: &[String], quote: char, joint: &str) -> String {
    let pairs: Vec<String> = names
        .iter()
        .map(|name| format!("{} = ?", quoted(name, quote)))
        .collect();
    pairs.join(joint)
}

/// Checks the statements of one effect against the schema.
pub struct CheckEffects {
    field: String,
    write: Write,
}

impl CheckEffects {
    /// Makes a check for each effect of a source.
    pub fn of(source: &Source) -> impl Iterator<Item = Self> {
        let check = |(index, effect): (usize, &Effect)| Self {
            field: format!("source.{}.effect[{index}]", source.id),
            write: effect.write().clone(),
        };
        source.effects.iter().enumerate().map(check)
    }
}

impl Transaction for CheckEffects {
    type Output = ();
    const STEP: &'static str = "check an effect";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        self.write.check(conn).await.map_err(|error| {
            let problem = format!("the database refuses the statement: {error}");
            Error::config(&self.field, problem)
        })
    }
}

/// Runs the user's own set-up statements, such as `create table if not exists`.
pub struct Setup {
    /// The statements.
    pub sql: String,
}

impl Transaction for Setup {
    type Output = ();
    const STEP: &'static str = "run the set-up statements";

    fn within(&self) -> Duration {
        // They may make an index on a big table.
        Duration::from_secs(3600)
    }

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        conn.script(&self.sql).await.step(Self::STEP)
    }
}
