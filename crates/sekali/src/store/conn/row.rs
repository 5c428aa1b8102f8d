//! One row of an answer, read in the few types that the tables have.

use rusqlite::types::ValueRef;
use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::{Row as _, TypeInfo as _, ValueRef as _};

use super::DbError;

/// One row of an answer; the number is where its first column stands.
pub enum Row<'r> {
    /// A row of SQLite.
    Sqlite(&'r rusqlite::Row<'r>),
    /// A row of PostgreSQL.
    Postgres(&'r PgRow, usize),
    /// A row of MySQL.
    MySql(&'r MySqlRow, usize),
}

impl Row<'_> {
    /// Returns how many columns there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Sqlite(row) => row.as_ref().column_count(),
            Self::Postgres(row, start) => row.len().saturating_sub(*start),
            Self::MySql(row, start) => row.len().saturating_sub(*start),
        }
    }

    /// Tells whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an integer; a truth value counts as 0 or 1.
    pub fn int(&self, index: usize) -> Result<i64, DbError> {
        self.opt_int(index)?.ok_or_else(|| null(index))
    }

    /// Returns an integer or null.
    pub fn opt_int(&self, index: usize) -> Result<Option<i64>, DbError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row, start) => {
                let index = index + start;
                match row.try_get_raw(index)?.type_info().name() {
                    "BOOL" => row.try_get::<Option<bool>, _>(index)?.map(i64::from),
                    "INT4" => row.try_get::<Option<i32>, _>(index)?.map(i64::from),
                    "INT2" => row.try_get::<Option<i16>, _>(index)?.map(i64::from),
                    _ => row.try_get(index)?,
                }
            }
            Self::MySql(row, start) => row.try_get(index + start)?,
        })
    }

    /// Returns text.
    pub fn text(&self, index: usize) -> Result<String, DbError> {
        self.opt_text(index)?.ok_or_else(|| null(index))
    }

    /// Returns text or null.
    pub fn opt_text(&self, index: usize) -> Result<Option<String>, DbError> {
        Ok(match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row, start) => row.try_get(index + start)?,
            // Keys are binary there, so that no collation takes two of them for one.
            Self::MySql(row, start) => {
                let bytes: Option<Vec<u8>> = row.try_get_unchecked(index + start)?;
                let text = bytes.map(String::from_utf8).transpose();
                text.map_err(|error| sqlx::Error::Decode(Box::new(error)))?
            }
        })
    }

    /// Returns bytes or null; a column that somebody filled with another type counts as null.
    pub fn opt_bytes(&self, index: usize) -> Result<Option<Vec<u8>>, DbError> {
        Ok(match self {
            Self::Sqlite(row) => match row.get_ref(index)? {
                ValueRef::Blob(bytes) => Some(bytes.to_vec()),
                _ => None,
            },
            Self::Postgres(row, start) => row.try_get(index + start)?,
            Self::MySql(row, start) => row.try_get_unchecked(index + start)?,
        })
    }
}

fn null(index: usize) -> DbError {
    let unexpected = sqlx::error::UnexpectedNullError;
    DbError::Network(sqlx::Error::ColumnDecode {
        index: index.to_string(),
        source: Box::new(unexpected),
    })
}
