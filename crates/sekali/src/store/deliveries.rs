//! Delivery rows: one for every request that arrived. Rejected ones are bounded, so that forged traffic cannot fill the
//! disk: past the bound they are counted by source, outcome and minute.

use super::rows::{Insert, Known, Rows};
use super::{Conn, Kind, Transaction, Value};
use crate::error::{Result, Step as _};
use crate::event::{Delivery, Receipt, Rejected};
use crate::reason::Reason;

static DELIVERIES: Insert = Insert::new(
    "webhook_deliveries",
    &[
        ("received_at", Kind::Int),
        ("source", Kind::Key),
        ("inbox_seq", Kind::Int),
        ("outcome", Kind::Key),
        ("reason", Kind::Key),
        ("http_status", Kind::Int),
        ("payload_hash", Kind::Bytes),
        ("signature_valid", Kind::Int),
        ("remote_address", Kind::Text),
        ("duration_us", Kind::Int),
    ],
    Known::Fails,
);

/// Writes the rows of deliveries that went through admission.
pub(super) async fn insert_deliveries<'d>(
    conn: &mut Conn<'_>,
    admitted: impl ExactSizeIterator<Item = (&'d Delivery, &'d Receipt)>,
) -> Result<()> {
    let mut rows = Rows::with_capacity(10, admitted.len());
    for (delivery, receipt) in admitted {
        let duration_us = i64::try_from(delivery.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        rows.push([
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
        ]);
    }
    conn.insert_all(&DELIVERIES, &rows)
        .await
        .step("record deliveries")
        .map(drop)
}

/// Writes rejected deliveries behind the answers: rows up to the bound, counts beyond it.
pub(crate) struct WriteRejected {
    /// Those that get a row.
    pub(crate) rows: Vec<Rejected>,
    /// Those that are only counted.
    pub(crate) counted: Vec<(i64, std::sync::Arc<str>, crate::reason::Outcome, i64)>,
}

static COUNTS: Insert = Insert::new(
    "webhook_rejections",
    &[
        ("minute", Kind::Int),
        ("source", Kind::Key),
        ("outcome", Kind::Key),
        ("count", Kind::Int),
    ],
    Known::Adds {
        key: "minute, source, outcome",
        column: "count",
    },
);

impl Transaction for WriteRejected {
    type Output = ();
    const STEP: &'static str = "record rejected deliveries";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        let mut rows = Rows::with_capacity(10, self.rows.len());
        for row in &self.rows {
            rows.push([
                row.received_at.into(),
                Value::Text(&row.source),
                Value::Null(Kind::Int),
                Value::Text(row.outcome.code()),
                Value::Text(row.reason.code()),
                i64::from(row.http_status).into(),
                row.payload_hash.as_ref().map(|hash| &hash[..]).into(),
                row.signature_valid.map(i64::from).into(),
                row.remote_address.as_deref().into(),
                row.duration_us.into(),
            ]);
        }
        conn.insert_all(&DELIVERIES, &rows).await.step(Self::STEP)?;
        // A row is met once in a statement: nothing in front says that no two counts have one key.
        for (minute, source, outcome, count) in &self.counted {
            let mut row = Rows::with_capacity(4, 1);
            row.push([
                (*minute).into(),
                Value::Text(source),
                Value::Text(outcome.code()),
                (*count).into(),
            ]);
            conn.insert_all(&COUNTS, &row).await.step(Self::STEP)?;
        }
        Ok(())
    }
}
