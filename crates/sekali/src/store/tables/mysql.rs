//! MySQL: a row is changed where it is there, and inserted where it is not.
//!
//! `on duplicate key update` is not used: it changes whatever row any unique key of the table meets, not only the one
//! that the effect names. The rows of an entity are written under its lock, so that nobody comes in between; whoever
//! else writes the table may, and is met as a constraint. Each row has statements of its own, which compare and convert
//! as those of a person would; they go to the server together.

use super::{Columns, Ran, Write, WriteKind, equal, list, quoted};
use sqlx::MySqlConnection;

use crate::store::conn::{rendered, run_several};
use crate::store::{DbError, Value};

/// The statements of one effect.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    /// Changes the row that is there, or deletes it; with the guard and without.
    guarded: String,
    unguarded: String,
    /// Inserts the row.
    insert: Option<String>,
    exists: String,
}

impl Texts {
    pub(super) fn new(kind: WriteKind, columns: &Columns) -> Self {
        let (table, keys) = (
            quoted(&columns.table, '`'),
            equal(&columns.keys, '`', " and "),
        );
        let head = match kind {
            WriteKind::Delete => format!("delete from {table}"),
            WriteKind::Upsert => {
                format!("update {table} set {}", equal(&columns.others, '`', ", "))
            }
        };
        let guard = |version: &String| format!(" and ({} > ?) is not true", quoted(version, '`'));
        let names = [&columns.keys[..], &columns.others].concat();
        let marks = vec!["?"; names.len()].join(", ");
        let insert = || {
            format!(
                "insert into {table} ({}) values ({marks})",
                list(&names, '`')
            )
        };
        Self {
            guarded: format!(
                "{head} where {keys}{}",
                columns.version.as_ref().map(guard).unwrap_or_default()
            ),
            unguarded: format!("{head} where {keys}"),
            insert: (kind == WriteKind::Upsert).then(insert),
            exists: format!("select 1 from {table} where {keys} for update"),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let changes = [&self.guarded, &self.unguarded];
        let changes = changes
            .into_iter()
            .filter(|sql| !sql.contains(" set  where "));
        changes.chain(&self.insert).map(String::as_str)
    }

    /// Writes rows: those that are there are changed, and those that are missing inserted.
    pub(super) async fn run(
        &self,
        write: &Write,
        db: &mut MySqlConnection,
        rows: &[Vec<Value<'_>>],
        uses_guard: bool,
    ) -> Result<Ran, DbError> {
        let untouched = self.change(write, db, rows, uses_guard).await?;
        if untouched.is_empty() || (self.insert.is_none() && !uses_guard) {
            return Ok(Ran::Done);
        }
        let mut exists = Vec::with_capacity(untouched.len());
        for row in &untouched {
            exists.push(rendered(&self.exists, write.key_of(row)));
        }
        let there = run_several(db, exists).await?;
        if uses_guard && there.iter().any(|end| end.found > 0) {
            return Ok(Ran::MetGuard);
        }
        if let Some(insert) = &self.insert {
            let mut inserts = Vec::with_capacity(untouched.len());
            for (row, end) in untouched.iter().zip(&there) {
                if end.found == 0 {
                    inserts.push(rendered(insert, row.iter()));
                }
            }
            run_several(db, inserts).await?;
        }
        Ok(Ran::Done)
    }

    /// Changes or deletes the rows that are there, and returns those that were not touched.
    async fn change<'r, 'v>(
        &self,
        write: &Write,
        db: &mut MySqlConnection,
        rows: &'r [Vec<Value<'v>>],
        uses_guard: bool,
    ) -> Result<Vec<&'r Vec<Value<'v>>>, DbError> {
        let sql = match uses_guard {
            true => &self.guarded,
            false => &self.unguarded,
        };
        let statement = |row: &Vec<Value<'_>>| {
            let (key, others) = row.split_at(write.columns.keys.len());
            match write.kind {
                WriteKind::Delete => rendered(sql, write.bound(row, uses_guard)),
                WriteKind::Upsert => {
                    let version = others.last().filter(|_| uses_guard);
                    rendered(sql, others.iter().chain(key).chain(version))
                }
            }
        };
        if write.kind == WriteKind::Upsert && write.columns.others.is_empty() {
            // An update of nothing but keys would change nothing.
            return Ok(rows.iter().collect());
        }
        let changes = rows.iter().map(statement).collect();
        let ends = run_several(db, changes).await?;
        let mut untouched = Vec::new();
        for (row, end) in rows.iter().zip(&ends) {
            if end.changed == 0 {
                untouched.push(row);
            }
        }
        Ok(untouched)
    }
}
