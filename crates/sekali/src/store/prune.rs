//! Retention: old payloads, deliveries, attempts and keys go in small batches, so that admission is never kept waiting.
//!
//! Keys outlive payloads by far: an event whose payload was pruned is still known. Pending events are never touched, and
//! neither are entities and their tombstones.

use super::{Conn, Transaction, Value};
use crate::error::{Result, Step as _};

/// How long things are kept, in milliseconds; `None` keeps them for ever.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Bodies and variants of finished events.
    pub payloads_ms: Option<i64>,
    /// Delivery and attempt rows.
    pub audit_ms: Option<i64>,
    /// Keys of finished events, with everything that is left of them.
    pub keys_ms: Option<i64>,
}

/// Removes one small batch of what has outlived its retention.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// How long things are kept.
    pub retention: Retention,
    /// Rows of each table that are removed at once.
    pub batch_len: i64,
}

/// How many rows were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pruned {
    /// Bodies.
    pub payloads: u64,
    /// Variants.
    pub variants: u64,
    /// Delivery rows and counts.
    pub deliveries: u64,
    /// Attempt rows.
    pub attempts: u64,
    /// Keys.
    pub keys: u64,
}

impl Pruned {
    /// Returns the number of all rows.
    pub fn total(&self) -> u64 {
        self.payloads + self.variants + self.deliveries + self.attempts + self.keys
    }

    /// Adds what another batch removed.
    pub fn add(&mut self, other: Self) {
        self.payloads += other.payloads;
        self.variants += other.variants;
        self.deliveries += other.deliveries;
        self.attempts += other.attempts;
        self.keys += other.keys;
    }
}

// The inbox is walked in the order of its numbers, which is the order of its times but for a clock that was set back.
const PAYLOADS: &str = "delete from webhook_payloads where seq in (select p.seq from webhook_payloads p \
    join webhook_inbox i on i.seq = p.seq where i.received_at < ? \
    and i.processing_status not in ('received', 'processing', 'failed', 'dead_letter') order by p.seq limit ?)";

const VARIANTS: &str = "delete from webhook_variants where id in (select id from webhook_variants where last_at < ? limit ?)";

const DELIVERIES: &str = "delete from webhook_deliveries where id in (select id from webhook_deliveries where received_at < ? order by id limit ?)";

const COUNTS: &str = "delete from webhook_rejections where minute < ?";

const ATTEMPTS: &str = "delete from webhook_attempts where id in (select id from webhook_attempts where started_at < ? order by id limit ?)";

/// Chooses the keys of a batch: finished, and with nothing left but their row.
macro_rules! old_keys {
    () => {
        "select i.seq from webhook_inbox i where i.received_at < ? \
         and i.processing_status not in ('received', 'processing', 'failed', 'dead_letter') \
         and not exists (select 1 from webhook_payloads p where p.seq = i.seq) order by i.seq limit ?"
    };
}

const POSITIONS: &str = concat!(
    "delete from webhook_positions where (entity_id, entity_type, source, scope, source_version, seq) in \
     (select entity_id, entity_type, source, scope, coalesce(source_version, -1), seq from webhook_inbox where seq in (",
    old_keys!(),
    "))"
);

const KEYS: &str = concat!("delete from webhook_inbox where seq in (", old_keys!(), ")");

impl Transaction for Prune {
    type Output = Pruned;
    const STEP: &'static str = "prune";

    async fn run(self, conn: &mut Conn<'_>) -> Result<Pruned> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let mut pruned = Pruned::default();
        if let Some(before) = self
            .retention
            .payloads_ms
            .map(|keep| now.saturating_sub(keep))
        {
            pruned.payloads = self.delete(conn, PAYLOADS, before).await?;
            pruned.variants = self.delete(conn, VARIANTS, before).await?;
        }
        if let Some(before) = self.retention.audit_ms.map(|keep| now.saturating_sub(keep)) {
            pruned.deliveries = self.delete(conn, DELIVERIES, before).await?;
            pruned.deliveries += conn
                .execute(COUNTS, &[(before / 60_000).into()])
                .await
                .step(Self::STEP)?;
            pruned.attempts = self.delete(conn, ATTEMPTS, before).await?;
        }
        if let Some(before) = self.retention.keys_ms.map(|keep| now.saturating_sub(keep)) {
            self.delete(conn, POSITIONS, before).await?;
            pruned.keys = self.delete(conn, KEYS, before).await?;
        }
        Ok(pruned)
    }
}

impl Prune {
    async fn delete(&self, conn: &mut Conn<'_>, sql: &'static str, before: i64) -> Result<u64> {
        let values: [Value<'_>; 2] = [before.into(), self.batch_len.into()];
        conn.execute(sql, &values).await.step(Self::STEP)
    }
}
