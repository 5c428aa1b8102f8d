//! The user's own tables: the statements of `upsert` and `delete` effects, made once from their configuration.
//!
//! A version column carries a guard in the write itself: a row that stands higher than the event is not touched. That
//! cannot happen behind the gate unless somebody else writes the table, and is then an error of its own.

use super::{Conn, DbError, Transaction, Value};
use crate::effect::Effect;
use crate::error::{Error, Result, Step as _};
use crate::source::Source;

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Upsert,
    Delete,
}

/// A statement on one row of a user's table.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    kind: WriteKind,
    guarded: String,
    unguarded: String,
    exists: String,
    keys: usize,
    has_guard: bool,
}

/// The columns of a user's table that an effect writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns<'a> {
    pub(crate) table: &'a str,
    pub(crate) keys: &'a [&'a str],
    /// Other columns; the version column is among them.
    pub(crate) others: &'a [&'a str],
    pub(crate) version: Option<&'a str>,
}

impl Write {
    /// Makes the statement; names are quoted, values are bound.
    pub(crate) fn new(kind: WriteKind, columns: Columns<'_>) -> Self {
        let build = |version| match kind {
            WriteKind::Upsert => upsert(columns, version),
            WriteKind::Delete => delete(columns, version),
        };
        let (table, keys) = (quoted(columns.table), matching(columns.keys));
        Self {
            kind,
            guarded: build(columns.version),
            unguarded: build(None),
            exists: format!("select 1 from {table} where {keys}"),
            keys: columns.keys.len(),
            has_guard: columns.version.is_some(),
        }
    }

    /// Runs the statement and tells whether the guard let it through.
    ///
    /// The values are those of the keys, then of the other columns (upsert) or of the version (delete).
    pub(crate) async fn run(
        &self,
        conn: &mut Conn<'_>,
        values: &[Value<'_>],
        guarded: bool,
    ) -> Result<bool, DbError> {
        let uses_guard = guarded && self.has_guard;
        let sql = if uses_guard {
            &self.guarded
        } else {
            &self.unguarded
        };
        let bound = match self.kind {
            WriteKind::Delete if !uses_guard => &values[..self.keys],
            _ => values,
        };
        let changed = conn.execute(sql, bound).await?;
        if changed > 0 || !uses_guard {
            return Ok(true);
        }
        // An upsert that touched nothing met the guard; a delete may also have found no row.
        match self.kind {
            WriteKind::Upsert => Ok(false),
            WriteKind::Delete => Ok(conn
                .fetch_one(&self.exists, &values[..self.keys], |_| Ok(()))
                .await?
                .is_none()),
        }
    }
}

fn upsert(columns: Columns<'_>, version: Option<&str>) -> String {
    let names: Vec<&str> = columns.keys.iter().chain(columns.others).copied().collect();
    let marks = vec!["?"; names.len()].join(", ");
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|name| quoted(name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let table = quoted(columns.table);
    let head = format!(
        "insert into {table} ({}) values ({marks}) on conflict ({})",
        list(&names),
        list(columns.keys)
    );
    if columns.others.is_empty() {
        return format!("{head} do nothing");
    }
    let set = |name: &&str| format!("{0} = excluded.{0}", quoted(name));
    let sets = columns
        .others
        .iter()
        .map(set)
        .collect::<Vec<_>>()
        .join(", ");
    match version.map(quoted) {
        Some(version) => format!(
            "{head} do update set {sets} where ({table}.{version} > excluded.{version}) is not true"
        ),
        None => format!("{head} do update set {sets}"),
    }
}

fn delete(columns: Columns<'_>, version: Option<&str>) -> String {
    let (table, keys) = (quoted(columns.table), matching(columns.keys));
    match version.map(quoted) {
        Some(version) => {
            format!("delete from {table} where {keys} and ({version} > ?) is not true")
        }
        None => format!("delete from {table} where {keys}"),
    }
}

fn matching(keys: &[&str]) -> String {
    keys.iter()
        .map(|key| format!("{} = ?", quoted(key)))
        .collect::<Vec<_>>()
        .join(" and ")
}

/// Quotes a name that was checked to hold only letters, digits, `_` and one dot.
fn quoted(name: &str) -> String {
    name.split('.')
        .map(|part| format!("\"{part}\""))
        .collect::<Vec<_>>()
        .join(".")
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

    async fn run(self, conn: &mut Conn<'_>) -> Result<()> {
        for sql in [&self.write.guarded, &self.write.unguarded] {
            let checked = conn.check(sql).await;
            checked.map_err(|error| {
                Error::config(
                    &self.field,
                    format!("the database refuses the statement: {error}"),
                )
            })?;
        }
        Ok(())
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

    async fn run(self, conn: &mut Conn<'_>) -> Result<()> {
        conn.script(&self.sql).await.step(Self::STEP)
    }
}
