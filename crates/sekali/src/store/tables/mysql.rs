//! MySQL: a row is changed where it is there, and inserted where it is not.
//!
//! `on duplicate key update` is not used: it changes whatever row any unique key of the table meets, not only the one
//! that the effect names. The rows of an entity are written under its lock, so that nobody comes in between; whoever
//! else writes the table may, and is met as a constraint.

use super::{Columns, Ran, Write, WriteKind, equal, list, quoted};
use crate::store::{Conn, DbError, Value};

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

    pub(super) async fn run(
        &self,
        write: &Write,
        conn: &mut Conn<'_>,
        row: &[Value<'_>],
        uses_guard: bool,
    ) -> Result<Ran, DbError> {
        let sql = match uses_guard {
            true => &self.guarded,
            false => &self.unguarded,
        };
        let (key, others) = row.split_at(write.columns.keys.len());
        let values = match write.kind {
            WriteKind::Delete => write.bound(row, uses_guard).to_vec(),
            WriteKind::Upsert => {
                let version = others.last().filter(|_| uses_guard);
                others.iter().chain(key).chain(version).copied().collect()
            }
        };
        // An update of nothing but keys would change nothing.
        let has_change = write.kind == WriteKind::Delete || !others.is_empty();
        if has_change && conn.execute(sql, &values).await? > 0 {
            return Ok(Ran::Done);
        }
        if self.insert.is_some() || uses_guard {
            let is_there = conn
                .fetch_one(&self.exists, key, |_| Ok(()))
                .await?
                .is_some();
            match (is_there, &self.insert) {
                (true, _) if uses_guard => return Ok(Ran::MetGuard),
                (false, Some(insert)) => {
                    conn.execute(insert, row).await?;
                }
                _ => {}
            }
        }
        Ok(Ran::Done)
    }
}
