//! Hints between the processes on one PostgreSQL: NOTIFY by whoever admitted events, LISTEN by whoever works.

use std::time::Duration;

use sqlx::postgres::PgListener;

use super::PostgresStore;
use crate::error::{Result, Step as _, chain};
use crate::store::conn::DbError;

const CHANNEL: &str = "sekali_events";
/// How long it rests after the connection was lost.
const REST: Duration = Duration::from_secs(1);

impl PostgresStore {
    /// Tells the other processes that there are events to work on.
    pub(in crate::store) async fn give_hint(&self) -> Result<()> {
        let told = sqlx::query("select pg_notify($1, '')").bind(CHANNEL);
        let told = told.execute(&self.later).await;
        told.map_err(DbError::Network).step("give a hint").map(drop)
    }

    /// Calls back for each hint; without an end, and over a new connection where one is lost.
    pub(in crate::store) async fn hear_hints(&self, mut heard: impl FnMut() + Send) {
        loop {
            if let Err(error) = self.hear(&mut heard).await {
                tracing::debug!(
                    error = chain(&error),
                    "hints are not heard; workers look by themselves"
                );
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn hear(&self, heard: &mut (impl FnMut() + Send)) -> sqlx::Result<()> {
        let mut listener = PgListener::connect_with(&self.later).await?;
        listener.listen(CHANNEL).await?;
        // What was told before.
        heard();
        while listener.try_recv().await?.is_some() {
            heard();
        }
        Ok(())
    }
}
