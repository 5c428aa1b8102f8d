//! Attempt rows: one for every try at applying an event, with the decision of each effect.

use super::rows::{Insert, Known, Rows};
use super::{Conn, Kind, Value};
use crate::error::{Result, Step as _};
use crate::reason::{Reason, Status};

/// One try at applying an event.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// The event's number in the inbox.
    pub(crate) seq: i64,
    /// Which attempt it was, from 1; 0 for what an operator did.
    pub(crate) attempt: i64,
    /// When it started, in milliseconds UTC.
    pub(crate) started_at: i64,
    /// How long it took, in microseconds.
    pub(crate) duration_us: i64,
    /// Where the event stands afterwards.
    pub(crate) status: Status,
    /// Why.
    pub(crate) reason: Option<Reason>,
    /// What happened, for a person.
    pub(crate) message: Option<String>,
    /// The decision of each effect, as a JSON array.
    pub(crate) decisions: String,
}

static ATTEMPTS: Insert = Insert::new(
    "webhook_attempts",
    &[
        ("inbox_seq", Kind::Int),
        ("attempt", Kind::Int),
        ("started_at", Kind::Int),
        ("duration_us", Kind::Int),
        ("status", Kind::Key),
        ("reason", Kind::Key),
        ("message", Kind::Text),
        ("decisions", Kind::Text),
    ],
    Known::Fails,
);

/// Writes attempt rows.
pub(crate) async fn insert_attempts(conn: &mut Conn<'_>, attempts: &[Attempt]) -> Result<()> {
    let mut rows = Rows::with_capacity(8, attempts.len());
    for attempt in attempts {
        rows.push([
            attempt.seq.into(),
            attempt.attempt.into(),
            attempt.started_at.into(),
            attempt.duration_us.into(),
            Value::Text(attempt.status.code()),
            attempt.reason.map(Reason::code).into(),
            attempt.message.as_deref().into(),
            Value::Text(&attempt.decisions),
        ]);
    }
    conn.insert_all(&ATTEMPTS, &rows)
        .await
        .step("record attempts")
        .map(drop)
}
