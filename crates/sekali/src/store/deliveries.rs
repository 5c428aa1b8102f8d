//! Delivery rows: one for every request that arrived. Rejected ones are bounded, so that forged traffic cannot fill the
//! disk: past the bound they are counted by source, outcome and minute.

use super::{Conn, Transaction, Value};
use crate::error::{Result, Step as _};
use crate::event::{Delivery, Receipt, Rejected};
use crate::reason::Reason;

const INSERT: &str = "insert into webhook_deliveries (received_at, source, inbox_seq, outcome, reason, http_status, \
    payload_hash, signature_valid, remote_address, duration_us) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Writes the row of a delivery that went through admission.
pub(super) async fn insert_delivery(
    conn: &mut Conn<'_>,
    delivery: &Delivery,
    receipt: &Receipt,
) -> Result<()> {
    let duration_us = i64::try_from(delivery.started.elapsed().as_micros()).unwrap_or(i64::MAX);
    let values: [Value<'_>; 10] = [
        delivery.received_at.into(),
        Value::Text(&delivery.source.id),
        receipt.seq.into(),
        Value::Text(receipt.outcome.code()),
        receipt.reason.map(Reason::code).into(),
        i64::from(delivery.source.http_status(receipt.outcome)).into(),
        Value::Bytes(&delivery.event.payload_hash),
        delivery.event.signature_valid.map(i64::from).into(),
        delivery.remote_address.as_deref().into(),
        duration_us.into(),
    ];
    conn.execute(INSERT, &values)
        .await
        .step("record a delivery")
        .map(drop)
}

/// Writes rejected deliveries behind the answers: rows up to the bound, counts beyond it.
pub(crate) struct WriteRejected {
    /// Those that get a row.
    pub(crate) rows: Vec<Rejected>,
    /// Those that are only counted.
    pub(crate) counted: Vec<(i64, std::sync::Arc<str>, crate::reason::Outcome, i64)>,
}

const COUNT: &str = "insert into webhook_rejections (minute, source, outcome, count) values (?, ?, ?, ?) \
    on conflict (minute, source, outcome) do update set count = count + excluded.count";

impl Transaction for WriteRejected {
    type Output = ();
    const STEP: &'static str = "record rejected deliveries";

    async fn run(self, conn: &mut Conn<'_>) -> Result<()> {
        for row in &self.rows {
            let values: [Value<'_>; 10] = [
                row.received_at.into(),
                Value::Text(&row.source),
                Value::Null,
                Value::Text(row.outcome.code()),
                Value::Text(row.reason.code()),
                i64::from(row.http_status).into(),
                row.payload_hash.as_ref().map(|hash| &hash[..]).into(),
                row.signature_valid.map(i64::from).into(),
                row.remote_address.as_deref().into(),
                row.duration_us.into(),
            ];
            conn.execute(INSERT, &values).await.step(Self::STEP)?;
        }
        for (minute, source, outcome, count) in &self.counted {
            let values = [
                (*minute).into(),
                Value::Text(source),
                Value::Text(outcome.code()),
                (*count).into(),
            ];
            conn.execute(COUNT, &values).await.step(Self::STEP)?;
        }
        Ok(())
    }
}
