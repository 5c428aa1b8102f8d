//! PostgreSQL: all rows in one statement.

use std::collections::HashMap;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, SqlSafeStr as _};

use super::{Ran, Write, WriteKind, list, quoted};
use crate::store::conn::ColumnTypes;
use crate::store::{DbError, Value};

/// A write, with its guard or without.
pub(super) struct Statement<'w> {
    write: &'w Write,
    uses_guard: bool,
}

impl<'w> Statement<'w> {
    pub(super) fn new(write: &'w Write, uses_guard: bool) -> Self {
        Self {
            uses_guard: uses_guard && write.columns.version.is_some(),
            write,
        }
    }

    pub(super) async fn run(
        &self,
        db: &mut PgConnection,
        types: &ColumnTypes,
        rows: &[Vec<Value<'_>>],
    ) -> Result<Ran, DbError> {
        let names = self.names();
        let known = types.of(db, &self.write.columns.table).await?;
        let changed = bound(&self.text(&names, &known)?, names.len(), rows)
            .execute(&mut *db)
            .await?
            .rows_affected();
        let is_all = usize::try_from(changed).is_ok_and(|changed| changed == rows.len());
        if is_all || !self.uses_guard {
            return Ok(Ran::Done);
        }
        let is_there = match self.write.kind {
            WriteKind::Upsert => true,
            // A delete may also have found no row.
            WriteKind::Delete => {
                let keys = &names[..self.write.columns.keys.len()];
                let left = bound(&self.left(keys, &known)?, keys.len(), rows);
                left.fetch_optional(db).await?.is_some()
            }
        };
        Ok(match is_there {
            true => Ran::MetGuard,
            false => Ran::Done,
        })
    }

    /// Prepares the statement without running it.
    pub(super) async fn check(
        &self,
        db: &mut PgConnection,
        types: &ColumnTypes,
    ) -> Result<(), DbError> {
        let known = types.of(db, &self.write.columns.table).await?;
        let sql = self.text(&self.names(), &known)?;
        db.prepare(AssertSqlSafe(sql).into_sql_str()).await?;
        Ok(())
    }

    /// Lists the columns whose values are bound.
    fn names(&self) -> Vec<&'w String> {
        let columns = &self.write.columns;
        let others: Vec<&String> = match self.write.kind {
            WriteKind::Upsert => columns.others.iter().collect(),
            WriteKind::Delete => columns.version.iter().filter(|_| self.uses_guard).collect(),
        };
        columns.keys.iter().chain(others).collect()
    }

    fn text(&self, names: &[&String], types: &HashMap<String, String>) -> Result<String, DbError> {
        let columns = &self.write.columns;
        let (table, keys) = (quoted(&columns.table, '"'), &names[..columns.keys.len()]);
        let rows = rows_of(names.len());
        let version = columns.version.as_ref().filter(|_| self.uses_guard);
        let version = version.map(|name| quoted(name, '"'));
        if self.write.kind == WriteKind::Delete {
            let guard = match (&version, names.last()) {
                (Some(version), Some(name)) => {
                    let value = self.value(keys.len(), name, types)?;
                    format!(" and ({table}.{version} > {value}) is not true")
                }
                _ => String::new(),
            };
            let matching = self.matching(keys, types)?;
            return Ok(format!(
                "delete from {table} using {rows} where {matching}{guard}"
            ));
        }
        let values: Result<Vec<String>, DbError> = names
            .iter()
            .enumerate()
            .map(|(index, name)| self.value(index, name, types))
            .collect();
        let all: Vec<String> = names.iter().map(|name| (*name).clone()).collect();
        let head = format!(
            "insert into {table} ({}) select {} from {rows} on conflict ({})",
            list(&all, '"'),
            values?.join(", "),
            list(&columns.keys, '"')
        );
        if columns.others.is_empty() {
            return Ok(format!("{head} do nothing"));
        }
        let set = |name: &String| format!("{0} = excluded.{0}", quoted(name, '"'));
        let sets: Vec<String> = columns.others.iter().map(set).collect();
        let guard = match version {
            Some(version) => format!(" where ({table}.{version} > excluded.{version}) is not true"),
            None => String::new(),
        };
        Ok(format!("{head} do update set {}{guard}", sets.join(", ")))
    }

    /// Asks whether one of the rows is still there.
    fn left(&self, keys: &[&String], types: &HashMap<String, String>) -> Result<String, DbError> {
        let table = quoted(&self.write.columns.table, '"');
        let (rows, matching) = (rows_of(keys.len()), self.matching(keys, types)?);
        Ok(format!(
            "select 1 from {table} join {rows} on {matching} limit 1"
        ))
    }

    fn matching(
        &self,
        keys: &[&String],
        types: &HashMap<String, String>,
    ) -> Result<String, DbError> {
        let table = quoted(&self.write.columns.table, '"');
        let pair = |(index, name): (usize, &&String)| {
            let value = self.value(index, name, types)?;
            Ok(format!("{table}.{} = {value}", quoted(name, '"')))
        };
        let pairs: Result<Vec<String>, DbError> = keys.iter().enumerate().map(pair).collect();
        Ok(pairs?.join(" and "))
    }

    /// Casts a value to the type of its column.
    fn value(
        &self,
        index: usize,
        name: &str,
        types: &HashMap<String, String>,
    ) -> Result<String, DbError> {
        match types.get(name) {
            Some(kind) => Ok(format!("v.c{index}::{kind}")),
            None => Err(DbError::NoColumn {
                table: self.write.columns.table.clone(),
                column: name.to_owned(),
            }),
        }
    }
}

fn rows_of(width: usize) -> String {
    let arrays: Vec<String> = (1..=width)
        .map(|number| format!("${number}::text[]"))
        .collect();
    let names: Vec<String> = (0..width).map(|index| format!("c{index}")).collect();
    format!("unnest({}) as v({})", arrays.join(", "), names.join(", "))
}

fn bound<'q>(
    sql: &str,
    width: usize,
    rows: &[Vec<Value<'_>>],
) -> sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments> {
    let text = |value: &Value<'_>| match *value {
        Value::Int(value) => Some(value.to_string()),
        Value::Text(value) => Some(value.to_owned()),
        Value::Null(_) | Value::Bytes(_) => None,
    };
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    (0..width).fold(query, |query, index| {
        let column = rows.iter().map(|row| text(&row[index]));
        query.bind(column.collect::<Vec<Option<String>>>())
    })
}
