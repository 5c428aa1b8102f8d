//! PostgreSQL's part: placeholders, arrays for many rows, and the types of the user's columns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Postgres, SqlSafeStr as _};

use super::{DbError, Row, Value};
use crate::store::rows::{Insert, Kind, Rows};

/// Asks for the time and for the name of the session.
pub(super) const NOW: &str =
    "select (extract(epoch from clock_timestamp()) * 1000)::bigint, pg_backend_pid()::bigint";

type Bound<'q> = Query<'q, Postgres, PgArguments>;

/// Numbers the placeholders; a `?` inside of a text stays.
fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 16);
    let (mut number, mut is_quoted) = (0, false);
    for character in sql.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            '?' if !is_quoted => {
                number += 1;
                out.push_str(&format!("${number}"));
                continue;
            }
            _ => {}
        }
        out.push(character);
    }
    out
}

fn bound<'q>(sql: &str, values: &[Value<'q>]) -> Bound<'q> {
    let query = sqlx::query(AssertSqlSafe(numbered(sql)));
    values.iter().fold(query, |query, value| match *value {
        Value::Null(Kind::Int) => query.bind(None::<i64>),
        Value::Null(Kind::Text | Kind::Key) => query.bind(None::<&str>),
        Value::Null(Kind::Bytes) => query.bind(None::<&[u8]>),
        Value::Int(value) => query.bind(value),
        Value::Text(value) => query.bind(value),
        Value::Bytes(value) => query.bind(value),
    })
}

/// Binds one array for each column.
fn bound_all<'q>(sql: &str, kinds: impl Iterator<Item = Kind>, rows: &Rows<'q>) -> Bound<'q> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    kinds.enumerate().fold(query, |query, (index, kind)| {
        let column = rows.column(index);
        match kind {
            Kind::Int => query.bind(column.map(as_int).collect::<Vec<_>>()),
            Kind::Text | Kind::Key => query.bind(column.map(as_text).collect::<Vec<_>>()),
            Kind::Bytes => query.bind(column.map(as_bytes).collect::<Vec<_>>()),
        }
    })
}

fn as_int(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int(value) => Some(value),
        _ => None,
    }
}

fn as_text(value: Value<'_>) -> Option<&str> {
    match value {
        Value::Text(value) => Some(value),
        _ => None,
    }
}

fn as_bytes(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Bytes(value) => Some(value),
        _ => None,
    }
}

pub(super) async fn execute(
    db: &mut PgConnection,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64, DbError> {
    Ok(bound(sql, values).execute(db).await?.rows_affected())
}

pub(super) async fn fetch(
    db: &mut PgConnection,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<PgRow>, DbError> {
    Ok(bound(sql, values).fetch_all(db).await?)
}

pub(super) async fn execute_all(
    db: &mut PgConnection,
    sql: &str,
    kinds: impl Iterator<Item = Kind>,
    rows: &Rows<'_>,
) -> Result<u64, DbError> {
    let bound = bound_all(sql, kinds, rows);
    Ok(bound.execute(db).await?.rows_affected())
}

pub(super) async fn fetch_all(
    db: &mut PgConnection,
    sql: &str,
    kinds: impl Iterator<Item = Kind>,
    rows: &Rows<'_>,
) -> Result<Vec<PgRow>, DbError> {
    Ok(bound_all(sql, kinds, rows).fetch_all(db).await?)
}

/// Inserts rows; what is told of a new one is its number and then its key.
pub(super) async fn insert_new(
    db: &mut PgConnection,
    insert: &Insert,
    key: usize,
    rows: &Rows<'_>,
) -> Result<Vec<Option<i64>>, DbError> {
    let sql = &insert.texts().postgres;
    let answer = fetch_all(db, sql, insert.kinds(), rows).await?;
    super::numbers(answer.iter().map(|row| Row::Postgres(row, 0)), key, rows)
}

pub(super) async fn script(db: &mut PgConnection, sql: &str) -> Result<(), DbError> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(db)
        .await?;
    Ok(())
}

pub(super) async fn check(db: &mut PgConnection, sql: &str) -> Result<(), DbError> {
    db.prepare(AssertSqlSafe(numbered(sql)).into_sql_str())
        .await?;
    Ok(())
}

/// The types of the columns of the user's tables, by table: a value is written as text and cast to its column's type.
#[derive(Debug, Default)]
pub struct ColumnTypes {
    known: Mutex<HashMap<String, Arc<HashMap<String, String>>>>,
}

const COLUMNS: &str = "select a.attname::text, format('%I.%I', n.nspname, t.typname) from pg_attribute a \
    join pg_type t on t.oid = a.atttypid join pg_namespace n on n.oid = t.typnamespace \
    where a.attrelid = to_regclass(?) and a.attnum > 0 and not a.attisdropped";

impl ColumnTypes {
    /// Finds the types of a table's columns; empty where there is no such table.
    pub(crate) async fn of(
        &self,
        db: &mut PgConnection,
        table: &str,
    ) -> Result<Arc<HashMap<String, String>>, DbError> {
        if let Some(known) = self.lock().get(table) {
            return Ok(known.clone());
        }
        let rows = fetch(db, COLUMNS, &[Value::Text(table)]).await?;
        let pair = |row| {
            let row = Row::Postgres(row, 0);
            Ok((row.text(0)?, row.text(1)?))
        };
        let columns: Result<HashMap<_, _>, DbError> = rows.iter().map(pair).collect();
        let columns = Arc::new(columns?);
        if !columns.is_empty() {
            self.lock().insert(table.to_owned(), columns.clone());
        }
        Ok(columns)
    }

    /// Forgets everything, since a table may have been changed.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<HashMap<String, String>>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_outside_of_texts() {
        assert_eq!(
            numbered("a = ? and b = '?''?' and c = ?"),
            "a = $1 and b = '?''?' and c = $2"
        );
    }
}
