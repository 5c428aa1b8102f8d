//! Variants: content that came under a known id, or under a second id, kept as evidence and never applied by itself.

use super::{Conn, Value};
use crate::error::{Result, Step as _};
use crate::event::Delivery;
use crate::limits::MAX_VARIANTS;

const LOCK: &str = "select 1 from webhook_inbox where seq = ? for update";

const SEEN_AGAIN: &str = "update webhook_variants set seen = seen + 1, last_at = ? \
    where inbox_seq = ? and payload_hash = ? and event_id = ?";

const COUNT: &str = "select count(*) from webhook_variants where inbox_seq = ?";

const INSERT: &str = "insert into webhook_variants (inbox_seq, event_id, payload_hash, seen, first_at, last_at, headers, \
    body) values (?, ?, ?, 1, ?, ?, ?, ?)";

/// Keeps a delivery's content as evidence beside event `seq`; past the bound it is only counted, by its delivery row.
pub(super) async fn keep_variant(conn: &mut Conn<'_>, seq: i64, delivery: &Delivery) -> Result<()> {
    const STEP: &str = "keep a variant";
    if !conn.is_local() {
        // Another node may be at the same: nothing is kept twice, and no more than may be.
        let locked = conn.fetch_one(LOCK, &[seq.into()], |_| Ok(())).await;
        locked.step(STEP)?;
    }
    let (event, at) = (&delivery.event, delivery.received_at);
    let hash = Value::Bytes(&event.payload_hash);
    let again = [at.into(), seq.into(), hash, Value::Text(&event.event_id)];
    if conn
        .execute(SEEN_AGAIN, &again)
        .await
        .step("count a variant")?
        > 0
    {
        return Ok(());
    }
    let count = conn
        .fetch_one(COUNT, &[seq.into()], |row| row.int(0))
        .await
        .step("count variants")?;
    if count.unwrap_or(0) >= MAX_VARIANTS {
        return Ok(());
    }
    let values = [
        seq.into(),
        Value::Text(&event.event_id),
        hash,
        at.into(),
        at.into(),
        Value::Text(&event.headers),
        Value::Bytes(&event.body),
    ];
    let kept = conn.execute(INSERT, &values).await;
    kept.step(STEP).map(drop)
}
