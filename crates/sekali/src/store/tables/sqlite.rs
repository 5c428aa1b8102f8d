//! SQLite: one row a statement, which costs nothing but its work.

use super::{Columns, Ran, Write, WriteKind, equal, list, quoted};
use crate::store::{Conn, DbError, Value};

/// The statements of one effect.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    guarded: String,
    unguarded: String,
    exists: String,
}

impl Texts {
    pub(super) fn new(kind: WriteKind, columns: &Columns) -> Self {
        let build = |version: Option<&str>| match kind {
            WriteKind::Upsert => upsert(columns, version),
            WriteKind::Delete => delete(columns, version),
        };
        let (table, keys) = (
            quoted(&columns.table, '"'),
            equal(&columns.keys, '"', " and "),
        );
        Self {
            guarded: build(columns.version.as_deref()),
            unguarded: build(None),
            exists: format!("select 1 from {table} where {keys}"),
        }
    }

    pub(super) fn all(&self) -> [&str; 2] {
        [&self.guarded, &self.unguarded]
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
        let changed = conn.execute(sql, write.bound(row, uses_guard)).await?;
        if changed > 0 || !uses_guard {
            return Ok(Ran::Done);
        }
        // An upsert that touched nothing met the guard; a delete may also have found no row.
        let is_there = match write.kind {
            WriteKind::Upsert => true,
            WriteKind::Delete => {
                let row = conn.fetch_one(&self.exists, write.key_of(row), |_| Ok(()));
                row.await?.is_some()
            }
        };
        Ok(match is_there {
            true => Ran::MetGuard,
            false => Ran::Done,
        })
    }
}

fn upsert(columns: &Columns, version: Option<&str>) -> String {
    let names = [&columns.keys[..], &columns.others].concat();
    let marks = vec!["?"; names.len()].join(", ");
    let table = quoted(&columns.table, '"');
    let head = format!(
        "insert into {table} ({}) values ({marks}) on conflict ({})",
        list(&names, '"'),
        list(&columns.keys, '"')
    );
    if columns.others.is_empty() {
        return format!("{head} do nothing");
    }
    let set = |name: &String| format!("{0} = excluded.{0}", quoted(name, '"'));
    let sets: Vec<String> = columns.others.iter().map(set).collect();
    let sets = sets.join(", ");
    match version.map(|name| quoted(name, '"')) {
        Some(version) => format!(
            "{head} do update set {sets} where ({table}.{version} > excluded.{version}) is not true"
        ),
        None => format!("{head} do update set {sets}"),
    }
}

fn delete(columns: &Columns, version: Option<&str>) -> String {
    let (table, keys) = (
        quoted(&columns.table, '"'),
        equal(&columns.keys, '"', " and "),
    );
    match version.map(|name| quoted(name, '"')) {
        Some(version) => {
            format!("delete from {table} where {keys} and ({version} > ?) is not true")
        }
        None => format!("delete from {table} where {keys}"),
    }
}
