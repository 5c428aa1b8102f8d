//! PostgreSQL's answers.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, PgPool, Postgres, Row as _};

use super::driver::{Driver, Session};
use super::migrate;
use crate::error::Result;
use crate::store::Schema;
use crate::store::conn::{ColumnTypes, Conn, Wire};

/// Settings of a server that may lose what it committed, or tear a page, where it or its machine crashes.
const UNSAFE: &str =
    "select name from pg_settings where name in ('fsync', 'full_page_writes') and setting = 'off'";

/// Every statement finds its rows by their keys, a batch at a time. Of a young table the planner does not know yet that it
/// has grown, and keeps a plan that reads all of it.
const BY_KEY: &str =
    "set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off";

impl Driver for Postgres {
    type Parts = ColumnTypes;

    fn read_url(url: &str) -> sqlx::Result<PgConnectOptions> {
        let options: PgConnectOptions = url.parse()?;
        Ok(options
            .application_name("sekali")
            .statement_cache_capacity(256))
    }

    async fn begin_session(
        db: &mut PgConnection,
        session: Session,
    ) -> sqlx::Result<Option<String>> {
        // Set by statements and not at connecting, which poolers in between refuse.
        let sql = format!(
            "set default_transaction_isolation = 'read committed'; set timezone = 'UTC'; \
             set client_min_messages = 'warning'; {BY_KEY}; set lock_timeout = {}; \
             set idle_in_transaction_session_timeout = {}",
            session.lock_wait.as_millis(),
            session.idle.as_millis()
        );
        db.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await?;
        if session.allow_unsafe_durability {
            return Ok(None);
        }
        // A role or a database may have switched it off, or have it end at this machine although there is a standby.
        const DURABLE: &str = "select set_config('synchronous_commit', 'on', false) \
            where current_setting('synchronous_commit') in ('off', 'local')";
        db.execute(DURABLE).await?;
        let lacking = db.fetch_optional(UNSAFE).await?;
        let name: Option<String> = lacking.map(|row| row.try_get(0)).transpose()?;
        Ok(name.map(|name| {
            format!("the server runs with {name} = off, and may lose what it committed when its machine crashes")
        }))
    }

    fn end_session(pool: PgPool, backend: i64) {
        if backend == 0 {
            return;
        }
        tokio::spawn(async move {
            let ended = sqlx::query("select pg_terminate_backend($1::int)").bind(backend);
            if let Err(error) = ended.execute(&pool).await {
                tracing::warn!(%error, "a statement that ran too long could not be ended");
            }
        });
    }

    fn conn<'c>(db: &'c mut PgConnection, wire: Wire<'c>, types: &'c ColumnTypes) -> Conn<'c> {
        Conn::Postgres { db, wire, types }
    }

    async fn migrate(db: &mut PgConnection, schema: Schema) -> Result<()> {
        migrate::postgres(db, schema).await
    }

    fn may_be_starting(code: &str, _number: Option<u16>) -> bool {
        // It starts, it stops, it has no connection left.
        matches!(code, "57P03" | "57P01" | "57P02" | "53300")
    }
}
