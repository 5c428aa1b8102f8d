//! How much is pending, for metrics and for the start.

use std::time::Duration;

use serde::Serialize;

use super::{Conn, Transaction};
use crate::error::{Result, Step as _};

/// How much is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// Events that a worker still has to look at.
    pub pending: i64,
    /// When the oldest of them was received, in milliseconds UTC.
    pub oldest_received_at: Option<i64>,
    /// Events in the dead letter.
    pub dead_letters: i64,
}

/// Reads how much is pending; both parts stand in partial indexes, so that a big inbox costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct ReadDepth;

const PENDING: &str = "select count(*), min(received_at) from webhook_inbox \
    where processing_status in ('received', 'failed', 'processing')";

const DEAD: &str = "select count(*) from webhook_inbox where processing_status = 'dead_letter'";

impl Transaction for ReadDepth {
    type Output = Depth;
    const STEP: &'static str = "read the inbox's depth";

    fn within(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Depth> {
        let pending = conn
            .fetch_one(PENDING, &[], |row| Ok((row.int(0)?, row.opt_int(1)?)))
            .await
            .step(Self::STEP)?;
        let dead = conn
            .fetch_one(DEAD, &[], |row| row.int(0))
            .await
            .step(Self::STEP)?;
        let (pending, oldest_received_at) = pending.unwrap_or_default();
        Ok(Depth {
            pending,
            oldest_received_at,
            dead_letters: dead.unwrap_or_default(),
        })
    }
}

/// Lists the sources that still have pending events.
#[derive(Clone, Copy, Debug)]
pub struct PendingSources;

const PENDING_SOURCES: &str = "select distinct source from webhook_inbox where processing_status in ('received', 'failed', 'processing')";

impl Transaction for PendingSources {
    type Output = Vec<String>;
    const STEP: &'static str = "list the sources with pending events";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Vec<String>> {
        conn.fetch(PENDING_SOURCES, &[], |row| row.text(0))
            .await
            .step(Self::STEP)
    }
}

/// Asks the database for nothing, to see that it answers and takes writes.
#[derive(Clone, Copy, Debug)]
pub struct Ping;

const LOOK: &str = "select 1 from webhook_inbox limit 1";

const WRITE: &str = "insert into webhook_rejections (minute, source, outcome, count) \
    select minute, source, outcome, count from webhook_rejections where 1 = 0";

impl Transaction for Ping {
    type Output = ();
    const STEP: &'static str = "reach the database";

    fn within(&self) -> Duration {
        Duration::from_secs(5)
    }

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        let done = match conn.is_local() {
            true => conn.fetch_one(LOOK, &[], |_| Ok(())).await.map(drop),
            // A server that only reads refuses it, although it writes nothing.
            false => conn.execute(WRITE, &[]).await.map(drop),
        };
        done.step(Self::STEP)
    }
}
