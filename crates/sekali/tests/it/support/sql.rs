//! Raw SQL beside the engine.

use sekali::Result;
use sekali::Store;
use sekali::store::{Conn, DbError, Row, Setup, Transaction};

use super::Rig;

impl Rig {
    /// Runs statements beside the engine.
    pub(crate) async fn script(&self, sql: &str) -> Result<()> {
        for sql in super::dialect::translated(sql) {
            self.engine.store().write(Setup { sql }).await?;
        }
        Ok(())
    }

    /// Runs a query; every value comes as text, null as `-`.
    pub(crate) async fn query(&self, sql: &str) -> Vec<Vec<String>> {
        query(self.engine.store(), sql).await
    }

    /// Runs a query of one column and joins its rows by blanks.
    pub(crate) async fn column(&self, sql: &str) -> String {
        let rows = self.query(sql).await;
        rows.concat().join(" ")
    }
}

/// Runs a query; every value comes as text, null as `-`.
pub(crate) async fn query(store: &Store, sql: &str) -> Vec<Vec<String>> {
    let sql = super::dialect::query(sql);
    store.read(Query { sql }).await.unwrap()
}

/// Runs statements.
pub(crate) async fn script(store: &Store, sql: &str) {
    for sql in super::dialect::translated(sql) {
        store.write(Setup { sql }).await.unwrap();
    }
}

struct Query {
    sql: String,
}

impl Transaction for Query {
    type Output = Vec<Vec<String>>;
    const STEP: &'static str = "run a test's query";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Self::Output> {
        if let Conn::Postgres { .. } = conn {
            // The engine finds rows by their keys; a test looks at all of them.
            let all = "set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on";
            conn.script(all).await.unwrap();
        }
        let rows = conn.fetch(&self.sql, &[], |row| Ok(texts(row))).await;
        rows.map_err(|source: DbError| sekali::Error::Store {
            step: Self::STEP,
            source,
        })
    }
}

fn texts(row: &Row<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for index in 0..row.len() {
        texts.push(match (row.opt_int(index), row.opt_text(index)) {
            (Ok(number), _) => number.map_or_else(|| "-".to_owned(), |number| number.to_string()),
            (_, Ok(text)) => text.unwrap_or_else(|| "-".to_owned()),
            _ => "(bytes)".to_owned(),
        });
    }
    texts
}
