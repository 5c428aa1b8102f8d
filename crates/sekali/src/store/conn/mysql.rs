//! MySQL's and MariaDB's part: new rows as literals, rows to be found or changed as one JSON document.
//!
//! Nothing is used that only one of the two has.

use std::pin::pin;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::TryStreamExt as _;
use sqlx::mysql::{MySqlArguments, MySqlRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Either, Executor as _, MySql, MySqlConnection, SqlSafeStr as _};

use super::{DbError, Row, Value};
use crate::store::rows::{Insert, Kind, Rows};

mod literal;

pub(in crate::store) use literal::rendered;

/// Asks for the time and for the name of the session.
pub(super) const NOW: &str =
    "select cast(unix_timestamp(now(3)) * 1000 as signed), cast(connection_id() as signed)";

type Bound<'q> = Query<'q, MySql, MySqlArguments>;

fn bound<'q>(sql: &str, values: &[Value<'q>]) -> Bound<'q> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    values.iter().fold(query, |query, value| match *value {
        Value::Null(Kind::Int) => query.bind(None::<i64>),
        Value::Null(Kind::Text | Kind::Key) => query.bind(None::<&str>),
        Value::Null(Kind::Bytes) => query.bind(None::<&[u8]>),
        Value::Int(value) => query.bind(value),
        Value::Text(value) => query.bind(value),
        Value::Bytes(value) => query.bind(value),
    })
}

fn bound_all<'q>(sql: &str, rows: &Rows<'_>) -> Bound<'q> {
    sqlx::query(AssertSqlSafe(sql.to_owned())).bind(json(rows))
}

/// Writes rows as a JSON array of arrays; bytes as base64, and integers as text, which keeps all of their digits.
fn json(rows: &Rows<'_>) -> String {
    let mut out = String::with_capacity(rows.len() * 256);
    out.push('[');
    for (index, row) in rows.iter().enumerate() {
        out.push_str(if index == 0 { "[" } else { ",[" });
        for (index, value) in row.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            push_value(&mut out, value);
        }
        out.push(']');
    }
    out.push(']');
    out
}

fn push_value(out: &mut String, value: &Value<'_>) {
    match *value {
        Value::Null(_) => out.push_str("null"),
        Value::Int(value) => out.push_str(&format!("\"{value}\"")),
        // A text always has a JSON form.
        Value::Text(value) => out.push_str(&serde_json::to_string(value).unwrap_or_default()),
        Value::Bytes(value) => {
            out.push('"');
            BASE64_STANDARD.encode_string(value, out);
            out.push('"');
        }
    }
}

pub(super) async fn execute(
    db: &mut MySqlConnection,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64, DbError> {
    let done = bound(sql, values).execute(db).await?;
    Ok(done.rows_affected())
}

pub(super) async fn fetch(
    db: &mut MySqlConnection,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<MySqlRow>, DbError> {
    Ok(bound(sql, values).fetch_all(db).await?)
}

pub(super) async fn execute_all(
    db: &mut MySqlConnection,
    sql: &str,
    rows: &Rows<'_>,
) -> Result<u64, DbError> {
    let done = bound_all(sql, rows).execute(db).await?;
    Ok(done.rows_affected())
}

pub(super) async fn fetch_all(
    db: &mut MySqlConnection,
    sql: &str,
    rows: &Rows<'_>,
) -> Result<Vec<MySqlRow>, DbError> {
    Ok(bound_all(sql, rows).fetch_all(db).await?)
}

/// Inserts rows; the question mark of the statement stands for all of them.
pub(super) async fn insert_all(
    db: &mut MySqlConnection,
    sql: &str,
    rows: &Rows<'_>,
) -> Result<u64, DbError> {
    let sql = sql.replacen('?', &literal::rows(rows), 1);
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(db).await?;
    Ok(done.rows_affected())
}

/// Inserts rows, the last of whose columns is a mark, and finds those that are new by it.
pub(super) async fn insert_new(
    db: &mut MySqlConnection,
    insert: &Insert,
    key: usize,
    rows: &Rows<'_>,
) -> Result<Vec<Option<i64>>, DbError> {
    let sql = insert.texts().mysql.replacen('?', &literal::rows(rows), 1);
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *db).await?;
    // The number of the first that is new; all others of this statement are higher.
    let first = i64::try_from(done.last_insert_id()).unwrap_or(i64::MAX);
    let mark = rows.iter().next().and_then(|row| row.last().copied());
    let (Some(mark), 1..) = (mark, first) else {
        return Ok(vec![None; rows.len()]);
    };
    let len = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let new = fetch(db, &insert.new_rows(), &[first.into(), mark, len.into()]).await?;
    super::numbers(new.iter().map(|row| Row::MySql(row, 0)), key, rows)
}

/// What became of one of several statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Ended {
    /// How many rows it changed, or met.
    pub(in crate::store) changed: u64,
    /// How many rows it gave.
    pub(in crate::store) found: usize,
}

/// Runs several statements without waiting for the answer of each before the next.
pub(in crate::store) async fn run_several(
    db: &mut MySqlConnection,
    statements: Vec<String>,
) -> Result<Vec<Ended>, DbError> {
    /// How much text goes at once, so that no packet is too large.
    const LEN: usize = 1024 * 1024;
    let mut statements = statements.into_iter().peekable();
    let mut all = Vec::with_capacity(statements.size_hint().0);
    while let Some(mut text) = statements.next() {
        while let Some(next) = statements.next_if(|next| text.len() + next.len() < LEN) {
            text.push(';');
            text.push_str(&next);
        }
        let mut answers = pin!(sqlx::raw_sql(AssertSqlSafe(text)).fetch_many(&mut *db));
        let mut found = 0;
        while let Some(answer) = answers.try_next().await? {
            match answer {
                Either::Right(_) => found += 1,
                Either::Left(end) => all.push(Ended {
                    changed: end.rows_affected(),
                    found: std::mem::take(&mut found),
                }),
            }
        }
    }
    Ok(all)
}

pub(super) async fn script(db: &mut MySqlConnection, sql: &str) -> Result<(), DbError> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(db)
        .await?;
    Ok(())
}

pub(super) async fn check(db: &mut MySqlConnection, sql: &str) -> Result<(), DbError> {
    db.prepare(AssertSqlSafe(sql.to_owned()).into_sql_str())
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_one_document() {
        let mut rows = Rows::with_capacity(4, 2);
        rows.push([
            i64::MAX.into(),
            "a\"\u{0}ü".into(),
            Value::Bytes(b"\x00\xff"),
            Value::Null(Kind::Int),
        ]);
        rows.push([0.into(), "".into(), Value::Bytes(b""), 1.into()]);
        assert_eq!(
            json(&rows),
            r#"[["9223372036854775807","a\"\u0000ü","AP8=",null],["0","","","1"]]"#
        );
    }
}
