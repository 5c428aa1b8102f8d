//! The schema on PostgreSQL and MySQL: brought up to date by whichever node comes first, while the others wait for it.
//!
//! Nothing but a look is done where the schema is up to date, so that a role without the right to change it can serve.

use sqlx::{Executor as _, MySqlConnection, PgConnection, Row as _};

use crate::error::{Error, Result, Step as _};
use crate::store::Schema;
use crate::store::conn::{DbError, DbErrorKind};

const POSTGRES: &[&str] = &[include_str!("../../../migrations/postgres/0001_inbox.sql")];
const MYSQL: &[&str] = &[include_str!("../../../migrations/mysql/0001_inbox.sql")];
const STEP: &str = "bring the schema up to date";
/// How long a node waits for another one that is at it.
const WAIT_S: i64 = 60;

/// Names the lock that a node holds while it changes the schema.
const LOCK: i64 = 0x5e6a_11b0;

pub(super) async fn postgres(db: &mut PgConnection, schema: Schema) -> Result<()> {
    let known = version_of_postgres(db).await.step(STEP)?;
    if !is_to_be_made(schema, known, POSTGRES.len())? {
        return Ok(());
    }
    let migrated = migrate_postgres(db).await;
    migrated.map_err(|error| not_made(error, known, POSTGRES.len()))
}

async fn version_of_postgres(db: &mut PgConnection) -> Result<Option<i64>, DbError> {
    let there = sqlx::query("select to_regclass('webhook_schema') is not null").fetch_one(&mut *db);
    if !there.await?.try_get::<bool, _>(0)? {
        return Ok(None);
    }
    let version = sqlx::query("select max(version) from webhook_schema").fetch_one(db);
    Ok(version.await?.try_get(0)?)
}

async fn migrate_postgres(db: &mut PgConnection) -> Result<(), DbError> {
    let mut open = sqlx::Connection::begin(db).await?;
    let wait = format!("set local lock_timeout = '{WAIT_S}s'");
    open.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(wait)))
        .await?;
    // It is let go with the transaction.
    sqlx::query("select pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *open)
        .await?;
    open.execute("create table if not exists webhook_schema (version bigint primary key)")
        .await?;
    let known = version_of_postgres(&mut open).await?.unwrap_or(0);
    for (index, sql) in POSTGRES
        .iter()
        .enumerate()
        .skip(usize::try_from(known).unwrap_or(0))
    {
        open.execute(sqlx::raw_sql(*sql)).await?;
        let version = i64::try_from(index + 1).unwrap_or(i64::MAX);
        let noted = sqlx::query("insert into webhook_schema (version) values ($1)").bind(version);
        noted.execute(&mut *open).await?;
    }
    Ok(open.commit().await?)
}

pub(super) async fn mysql(db: &mut MySqlConnection, schema: Schema) -> Result<()> {
    let known = version_of_mysql(db).await.step(STEP)?;
    if !is_to_be_made(schema, known, MYSQL.len())? {
        return Ok(());
    }
    let name = "sekali_schema";
    let taken = sqlx::query("select get_lock(?, ?)")
        .bind(name)
        .bind(WAIT_S)
        .fetch_one(&mut *db);
    let taken: Option<i64> = taken
        .await
        .and_then(|row| row.try_get(0))
        .map_err(DbError::Network)
        .step(STEP)?;
    if taken != Some(1) {
        return Err(Error::Conflict {
            problem: format!("another node has been changing the schema for {WAIT_S} seconds"),
        });
    }
    let migrated = migrate_mysql(db).await;
    // It is let go with the connection at the latest.
    let _ = sqlx::query("select release_lock(?)")
        .bind(name)
        .execute(&mut *db)
        .await;
    migrated.map_err(|error| not_made(error, known, MYSQL.len()))
}

async fn version_of_mysql(db: &mut MySqlConnection) -> Result<Option<i64>, DbError> {
    const THERE: &str = "select count(*) from information_schema.tables \
        where table_schema = database() and table_name = 'webhook_schema'";
    if sqlx::query(THERE)
        .fetch_one(&mut *db)
        .await?
        .try_get::<i64, _>(0)?
        == 0
    {
        return Ok(None);
    }
    let version = sqlx::query("select max(version) from webhook_schema").fetch_one(db);
    Ok(version.await?.try_get(0)?)
}

/// Each statement commits by itself there, and each can be run again: one that was cut off is finished by the next start.
async fn migrate_mysql(db: &mut MySqlConnection) -> Result<(), DbError> {
    db.execute(
        "create table if not exists webhook_schema (version bigint primary key) engine = innodb",
    )
    .await?;
    let known = version_of_mysql(db).await?.unwrap_or(0);
    for (index, sql) in MYSQL
        .iter()
        .enumerate()
        .skip(usize::try_from(known).unwrap_or(0))
    {
        db.execute(sqlx::raw_sql(*sql)).await?;
        let version = i64::try_from(index + 1).unwrap_or(i64::MAX);
        let noted =
            sqlx::query("insert ignore into webhook_schema (version) values (?)").bind(version);
        noted.execute(&mut *db).await?;
    }
    Ok(())
}

/// Tells whether there is something to do; a schema that is newer than this program is refused.
fn is_to_be_made(schema: Schema, known: Option<i64>, newest: usize) -> Result<bool> {
    let known = usize::try_from(known.unwrap_or(0)).unwrap_or(0);
    let problem = match schema {
        _ if known > newest => {
            format!("the schema has version {known}, this program knows {newest}; it is too old")
        }
        Schema::Expect if known == 0 => {
            "there are no tables yet; `sekali serve` or `sekali migrate` makes them".to_owned()
        }
        Schema::Expect if known < newest => format!(
            "the schema has version {known}, this program needs {newest}; run `sekali migrate`"
        ),
        _ => return Ok(schema == Schema::Make && known < newest),
    };
    Err(Error::Conflict { problem })
}

/// Says why the schema was not made; a role that serves need not have the right to do so.
fn not_made(error: DbError, known: Option<i64>, newest: usize) -> Error {
    if error.kind() != DbErrorKind::Forbidden {
        return Error::Store {
            step: STEP,
            source: error,
        };
    }
    let has = match known {
        None | Some(0) => "there are no tables yet".to_owned(),
        Some(known) => format!("the schema has version {known}, this program needs {newest}"),
    };
    Error::Conflict {
        problem: format!(
            "{has}, and this role may not change that ({error}); run `sekali migrate` with one that may"
        ),
    }
}
