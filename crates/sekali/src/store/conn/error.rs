//! What a database said, and what that means for whoever ran the statement.

use std::time::Duration;

/// What the database said.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// Comes from SQLite.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// Comes from PostgreSQL or MySQL, or from the way there.
    #[error(transparent)]
    Network(#[from] sqlx::Error),
    /// Says that a statement ran longer than it may and was given up.
    #[error("the statement ran longer than {}", crate::error::seconds(*.0))]
    TooSlow(Duration),
    /// Says that a user's table has no such column, or is not there.
    #[error("there is no column {column} in a table {table}")]
    NoColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// Says that a row that has to be there is not.
    #[error("the database gave no answer where it has to")]
    Gone,
}

/// What a database error means for whoever ran the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbErrorKind {
    /// The row itself is refused; trying again cannot help.
    Constraint,
    /// The statement was interrupted because it ran too long.
    Interrupted,
    /// Another transaction was in the way; the same again will do.
    Contended,
    /// The database cannot work now, or its answer never came: nothing else will go better than this.
    Unavailable,
    /// The role may not do that: another one has to, or it has to be given the right.
    Forbidden,
    /// Anything else: trying again may help.
    Other,
}

impl DbError {
    /// Tells what the error means.
    pub fn kind(&self) -> DbErrorKind {
        match self {
            Self::Sqlite(error) => of_sqlite(error),
            Self::Network(sqlx::Error::Database(error)) => {
                match error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
                    Some(error) => of_mysql(error.number(), error.code().unwrap_or_default()),
                    None => of_postgres(&error.code().unwrap_or_default()),
                }
            }
            Self::Network(error) => of_driver(error),
            Self::TooSlow(_) => DbErrorKind::Interrupted,
            Self::NoColumn { .. } | Self::Gone => DbErrorKind::Other,
        }
    }
}

fn of_sqlite(error: &rusqlite::Error) -> DbErrorKind {
    use rusqlite::ErrorCode as Code;
    match error.sqlite_error_code() {
        Some(Code::ConstraintViolation | Code::TypeMismatch | Code::TooBig) => {
            DbErrorKind::Constraint
        }
        Some(Code::OperationInterrupted) => DbErrorKind::Interrupted,
        Some(
            Code::DatabaseBusy
            | Code::DiskFull
            | Code::ReadOnly
            | Code::CannotOpen
            | Code::SystemIoFailure
            | Code::DatabaseCorrupt
            | Code::NotADatabase,
        ) => DbErrorKind::Unavailable,
        _ => DbErrorKind::Other,
    }
}

/// Reads what is not the word of a server: the way there, or the driver.
fn of_driver(error: &sqlx::Error) -> DbErrorKind {
    use sqlx::Error as E;
    match error {
        E::Io(_)
        | E::Tls(_)
        | E::Protocol(_)
        | E::PoolTimedOut
        | E::PoolClosed
        | E::WorkerCrashed
        | E::Configuration(_)
        | E::BeginFailed => DbErrorKind::Unavailable,
        _ => DbErrorKind::Other,
    }
}

/// Reads an SQLSTATE: classes 22 and 23 are data and integrity, 40 a transaction that was rolled back.
fn of_postgres(code: &str) -> DbErrorKind {
    match code {
        // Serialization, a deadlock, a lock that was waited for too long.
        "40001" | "40P01" | "55P03" => DbErrorKind::Contended,
        "57014" => DbErrorKind::Interrupted,
        "42501" => DbErrorKind::Forbidden,
        // A standby, or a transaction that may only read.
        "25006" => DbErrorKind::Unavailable,
        // Raised by a trigger or a function of the user's, which refuses the row.
        "P0001" => DbErrorKind::Constraint,
        _ => match code.get(..2) {
            Some("22" | "23") => DbErrorKind::Constraint,
            // The connection, authentication, resources (also the disk), an operator, the system, the transaction that a
            // time-out has ended.
            Some("08" | "28" | "53" | "57" | "58" | "25") => DbErrorKind::Unavailable,
            _ => DbErrorKind::Other,
        },
    }
}

fn of_mysql(number: u16, state: &str) -> DbErrorKind {
    match number {
        // A deadlock, a lock that was waited for too long, a certification that failed on another node.
        1213 | 1205 | 1020 => DbErrorKind::Contended,
        // Interrupted, and the two names of the time limit.
        1317 | 3024 | 1969 => DbErrorKind::Interrupted,
        // No connection left, no right to come in, shutting down, killed, no disk or no memory left, read-only, a node of a
        // cluster that is not ready.
        1040 | 1203 | 1045 | 1053 | 1927 | 1021 | 1026 | 1037 | 1041 | 1114 | 1290 | 1792
        | 1836 | 1047 | 4031 => DbErrorKind::Unavailable,
        // No right to the database, the table, its column, or an administrator's right.
        1044 | 1142 | 1143 | 1227 => DbErrorKind::Forbidden,
        // Raised by a trigger of the user's, which refuses the row.
        1644 => DbErrorKind::Constraint,
        // Values that do not fit their column, and checks.
        // Collations that cannot be compared: the text has a character that the column's character set does not know.
        1267 | 1270 | 1271 | 1048 | 1264 | 1265 | 1292 | 1364 | 1366 | 1406 | 3819 | 4025 => {
            DbErrorKind::Constraint
        }
        _ if state.starts_with("22") || state.starts_with("23") => DbErrorKind::Constraint,
        _ => DbErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_a_meaning() {
        assert_eq!(of_postgres("40P01"), DbErrorKind::Contended);
        assert_eq!(of_postgres("55P03"), DbErrorKind::Contended);
        assert_eq!(of_postgres("23505"), DbErrorKind::Constraint);
        assert_eq!(of_postgres("22P02"), DbErrorKind::Constraint);
        assert_eq!(of_postgres("57014"), DbErrorKind::Interrupted);
        assert_eq!(of_postgres("53300"), DbErrorKind::Unavailable);
        assert_eq!(of_postgres("42501"), DbErrorKind::Forbidden);
        assert_eq!(of_postgres("42P01"), DbErrorKind::Other);
        assert_eq!(of_mysql(1213, "40001"), DbErrorKind::Contended);
        assert_eq!(of_mysql(1062, "23000"), DbErrorKind::Constraint);
        assert_eq!(of_mysql(1366, "HY000"), DbErrorKind::Constraint);
        assert_eq!(of_mysql(1267, "HY000"), DbErrorKind::Constraint);
        assert_eq!(of_mysql(1290, "HY000"), DbErrorKind::Unavailable);
        assert_eq!(of_mysql(1142, "42000"), DbErrorKind::Forbidden);
        assert_eq!(of_mysql(1146, "42S02"), DbErrorKind::Other);
    }
}
