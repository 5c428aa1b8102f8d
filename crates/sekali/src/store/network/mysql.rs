//! MySQL's and MariaDB's answers.

use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AssertSqlSafe, Executor as _, MySql, MySqlConnection, MySqlPool, Row as _};

use super::driver::{Driver, Session, whole_seconds};
use super::migrate;
use crate::error::Result;
use crate::store::Schema;
use crate::store::conn::{Conn, Wire};

/// What the server is, and settings with which it may lose what it committed, or tear a page, where its machine crashes.
const SERVER: &str = "select version(), @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite, @@log_bin, @@sync_binlog";

impl Driver for MySql {
    type Parts = ();

    fn read_url(url: &str) -> sqlx::Result<MySqlConnectOptions> {
        let url = match url.strip_prefix("mariadb://") {
            Some(rest) => format!("mysql://{rest}"),
            None => url.to_owned(),
        };
        let options: MySqlConnectOptions = url.parse()?;
        Ok(options.statement_cache_capacity(256))
    }

    async fn begin_session(
        db: &mut MySqlConnection,
        session: Session,
    ) -> sqlx::Result<Option<String>> {
        let server = db.fetch_one(SERVER).await?;
        let version: String = server.try_get(0)?;
        // MariaDB limits how long a transaction may idle, MySQL only how long a connection may.
        let idle = match version.contains("MariaDB") {
            true => "idle_transaction_timeout",
            false => "wait_timeout",
        };
        let sql = format!(
            "set session transaction isolation level read committed; \
             set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,NO_ZERO_IN_DATE,\
             ERROR_FOR_DIVISION_BY_ZERO'; set session time_zone = '+00:00'; \
             set session innodb_lock_wait_timeout = {}; set session {idle} = {}",
            whole_seconds(session.lock_wait),
            whole_seconds(session.idle)
        );
        db.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await?;
        if session.allow_unsafe_durability {
            return Ok(None);
        }
        Ok(unsafe_setting(&server)?.map(|setting| {
            format!("the server runs with {setting}, and may lose what it committed when its machine crashes")
        }))
    }

    fn end_session(pool: MySqlPool, backend: i64) {
        if backend == 0 {
            return;
        }
        tokio::spawn(async move {
            let kill = AssertSqlSafe(format!("kill {backend}"));
            if let Err(error) = sqlx::raw_sql(kill).execute(&pool).await {
                tracing::warn!(%error, "a statement that ran too long could not be ended");
            }
        });
    }

    fn conn<'c>(db: &'c mut MySqlConnection, wire: Wire<'c>, (): &'c ()) -> Conn<'c> {
        Conn::MySql { db, wire }
    }

    async fn migrate(db: &mut MySqlConnection, schema: Schema) -> Result<()> {
        migrate::mysql(db, schema).await
    }

    fn may_be_starting(_code: &str, number: Option<u16>) -> bool {
        // It has no connection left, it stops, this node of a cluster is not ready.
        matches!(number, Some(1040 | 1053 | 1047))
    }
}

fn unsafe_setting(server: &sqlx::mysql::MySqlRow) -> sqlx::Result<Option<&'static str>> {
    // Numbers on one of the two servers, words on the other.
    let text = |index: usize| {
        let number = server
            .try_get_unchecked::<i64, _>(index)
            .map(|number| number.to_string());
        number.or_else(|_| server.try_get_unchecked::<String, _>(index))
    };
    let is_off = |text: &str| matches!(text, "0" | "OFF");
    Ok(match (text(1)?, text(2)?, text(3)?, text(4)?) {
        (flush, ..) if flush != "1" => Some("innodb_flush_log_at_trx_commit other than 1"),
        (_, doublewrite, ..) if is_off(&doublewrite) => Some("innodb_doublewrite = OFF"),
        (_, _, log, sync) if !is_off(&log) && sync == "0" => Some("sync_binlog = 0"),
        _ => None,
    })
}
