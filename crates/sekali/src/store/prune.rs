//! Retention: old payloads, deliveries, attempts and keys go in small batches, so that admission is never kept waiting.
//!
//! Keys outlive payloads by far: an event whose payload was pruned is still known. Pending events are never touched, and
//! neither are entities and their tombstones.

use super::rows::{Delete, Rows, Select};
use super::{Conn, Kind, Transaction, Value};
use crate::error::{Result, Step as _};

/// How long things are kept, in milliseconds; `None` keeps them for ever.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Bodies and variants of finished events.
    pub payloads_ms: Option<i64>,
    /// Rows of deliveries, attempts, handshakes and rejected requests.
    pub audit_ms: Option<i64>,
    /// Keys of finished events, with everything that is left of them.
    pub keys_ms: Option<i64>,
}

/// Looks at one small batch of each table, from its oldest rows on, and removes what has outlived its retention.
///
/// Rows stand in the order of their times, but for a clock that was set back: a batch that ends with a row that is kept
/// for its age ends the walk, so that a big table of young rows costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct Prune {
    /// How long things are kept.
    pub retention: Retention,
    /// Rows of each table that are looked at.
    pub batch_len: i64,
    /// Where the last batch ended.
    pub from: Cursor,
}

/// How far a walk came; `None` where there is nothing old any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    payloads: Option<i64>,
    keys: Option<i64>,
    deliveries: Option<i64>,
    attempts: Option<i64>,
}

impl Default for Cursor {
    fn default() -> Self {
        let start = Some(0);
        Self {
            payloads: start,
            keys: start,
            deliveries: start,
            attempts: start,
        }
    }
}

impl Cursor {
    /// Tells whether there is nothing old any more.
    pub fn is_done(&self) -> bool {
        [self.payloads, self.keys, self.deliveries, self.attempts]
            .iter()
            .all(Option::is_none)
    }
}

/// How many rows were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pruned {
    /// Bodies.
    pub payloads: u64,
    /// Variants.
    pub variants: u64,
    /// Rows of deliveries, handshakes and rejected requests, and counts.
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

/// Chooses a batch of rows: their numbers, their times, and whether they may go.
const PAYLOADS: &str = "select p.seq, i.received_at, i.processing_status not in ('received', 'processing', 'failed', \
    'dead_letter') from webhook_payloads p join webhook_inbox i on i.seq = p.seq where p.seq > ? order by p.seq limit ?";

const KEYS: &str = "select seq, received_at, processing_status not in ('received', 'processing', 'failed', 'dead_letter') \
    and not exists (select 1 from webhook_payloads p where p.seq = i.seq) from webhook_inbox i where seq > ? \
    order by seq limit ?";

const DELIVERIES: &str =
    "select id, received_at, 1 from webhook_deliveries where id > ? order by id limit ?";

const ATTEMPTS: &str =
    "select id, started_at, 1 from webhook_attempts where id > ? order by id limit ?";

static DELETE_PAYLOAD: Delete = Delete::new("webhook_payloads", "seq = {0}", NUMBER);

static DELETE_VARIANTS: Delete = Delete::new("webhook_variants", "inbox_seq = {0}", NUMBER);

/// Finds the positions of events that go.
static POSITIONS: Select = Select::new(
    "entity_id, entity_type, source, scope, coalesce(source_version, -1), seq",
    "webhook_inbox",
    "seq = {0}",
    NUMBER,
);

static DELETE_POSITIONS: Delete = Delete::new(
    "webhook_positions",
    "entity_id = {0} and entity_type = {1} and source = {2} and scope = {3} and source_version = {4} and seq = {5}",
    &[
        Kind::Key,
        Kind::Key,
        Kind::Key,
        Kind::Key,
        Kind::Int,
        Kind::Int,
    ],
);

static DELETE_KEY: Delete = Delete::new("webhook_inbox", "seq = {0}", NUMBER);

static DELETE_DELIVERY: Delete = Delete::new("webhook_deliveries", "id = {0}", NUMBER);

static DELETE_ATTEMPT: Delete = Delete::new("webhook_attempts", "id = {0}", NUMBER);

const NUMBER: &[Kind] = &[Kind::Int];

const DELETE_COUNTS: &str = "delete from webhook_rejections where minute < ?";

const DELETE_HANDSHAKES: &str = "delete from webhook_handshakes where at_ms < ?";

const DELETE_REJECTED: &str = "delete from webhook_rejected_requests where at_ms < ?";

impl Transaction for Prune {
    /// What was removed, and where the next batch starts.
    type Output = (Pruned, Cursor);
    const STEP: &'static str = "prune";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<(Pruned, Cursor)> {
        let now = conn.now_ms().await.step(Self::STEP)?;
        let before = |keep: Option<i64>| keep.map(|keep| now.saturating_sub(keep));
        let (retention, from) = (self.retention, self.from);
        let (payloads, keys, audit) = (
            before(retention.payloads_ms),
            before(retention.keys_ms),
            before(retention.audit_ms),
        );
        let mut pruned = Pruned::default();
        let mut next = from;
        let (old, end) = self
            .old(conn, PAYLOADS, from.payloads.zip(payloads))
            .await?;
        next.payloads = end;
        pruned.payloads = delete(conn, &DELETE_PAYLOAD, &old).await?;
        pruned.variants = delete(conn, &DELETE_VARIANTS, &old).await?;
        let (old, end) = self.old(conn, KEYS, from.keys.zip(keys)).await?;
        next.keys = end;
        delete_positions(conn, &old).await?;
        // Those of an erased event, which had no payload to go with.
        pruned.variants += delete(conn, &DELETE_VARIANTS, &old).await?;
        pruned.keys = delete(conn, &DELETE_KEY, &old).await?;
        let (old, end) = self
            .old(conn, DELIVERIES, from.deliveries.zip(audit))
            .await?;
        next.deliveries = end;
        pruned.deliveries = delete(conn, &DELETE_DELIVERY, &old).await?;
        let (old, end) = self.old(conn, ATTEMPTS, from.attempts.zip(audit)).await?;
        next.attempts = end;
        pruned.attempts = delete(conn, &DELETE_ATTEMPT, &old).await?;
        if let Some(before) = audit {
            let counts = conn
                .execute(DELETE_COUNTS, &[(before / 60_000).into()])
                .await;
            pruned.deliveries += counts.step(Self::STEP)?;
            // Both are bounded for each source, so that there is never much to delete.
            for sql in [DELETE_HANDSHAKES, DELETE_REJECTED] {
                let gone = conn.execute(sql, &[before.into()]).await;
                pruned.deliveries += gone.step(Self::STEP)?;
            }
        }
        Ok((pruned, next))
    }
}

impl Prune {
    /// Returns what may go of the next batch, and where the batch after it starts, if that may hold anything old.
    async fn old(
        &self,
        conn: &mut Conn<'_>,
        batch: &'static str,
        walk: Option<(i64, i64)>,
    ) -> Result<(Vec<i64>, Option<i64>)> {
        let Some((from, before)) = walk else {
            return Ok((Vec::new(), None));
        };
        let values: [Value<'_>; 2] = [from.into(), self.batch_len.into()];
        let rows = conn.fetch(batch, &values, |row| {
            Ok((row.int(0)?, row.int(1)?, row.int(2)? != 0))
        });
        let rows = rows.await.step(Self::STEP)?;
        let is_whole = i64::try_from(rows.len()).is_ok_and(|len| len == self.batch_len);
        let next = rows
            .last()
            .filter(|(_, at, _)| is_whole && *at < before)
            .map(|(number, ..)| *number);
        let old = rows
            .into_iter()
            .filter(|(_, at, may_go)| *at < before && *may_go);
        Ok((old.map(|(number, ..)| number).collect(), next))
    }
}

async fn delete(conn: &mut Conn<'_>, delete: &Delete, numbers: &[i64]) -> Result<u64> {
    let rows: Rows<'_> = numbers.iter().copied().collect();
    conn.delete_all(delete, &rows).await.step(Prune::STEP)
}

async fn delete_positions(conn: &mut Conn<'_>, numbers: &[i64]) -> Result<()> {
    let rows: Rows<'_> = numbers.iter().copied().collect();
    let found = conn.select_all(&POSITIONS, &rows, |_, row| {
        let key = [row.text(0)?, row.text(1)?, row.text(2)?, row.text(3)?];
        Ok((key, row.int(4)?, row.int(5)?))
    });
    let found = found.await.step(Prune::STEP)?;
    let mut rows = Rows::with_capacity(6, found.len());
    for ([entity_id, entity_type, source, scope], version, seq) in &found {
        rows.push([
            Value::Text(entity_id),
            Value::Text(entity_type),
            Value::Text(source),
            Value::Text(scope),
            (*version).into(),
            (*seq).into(),
        ]);
    }
    let deleted = conn.delete_all(&DELETE_POSITIONS, &rows).await;
    deleted.step(Prune::STEP).map(drop)
}
