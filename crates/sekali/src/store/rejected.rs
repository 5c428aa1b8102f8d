//! Requests with a wrong signature, kept to be looked at: a ring of a few for each source that wants it.
//!
//! They come from anybody, so that their number is bounded where they are written.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::{Conn, Row, Transaction, Value};
use crate::error::{Result, Step as _};
use crate::reason::Reason;
use crate::store::DbError;

/// Keeps a request, and forgets the oldest beyond the bound.
#[derive(Clone, Debug)]
pub struct KeepRejected {
    /// The source's stable id.
    pub source: Arc<str>,
    /// When it arrived, in milliseconds UTC.
    pub at_ms: i64,
    /// Why it was refused.
    pub reason: Reason,
    /// The method.
    pub method: String,
    /// The URL as its sender called it.
    pub url: String,
    /// All headers, as a JSON list of pairs.
    pub headers: String,
    /// The raw body.
    pub body: Bytes,
    /// How many are kept.
    pub keep: u32,
}

const INSERT: &str = "insert into webhook_rejected_requests (source, at_ms, reason, method, url, headers, body) \
    values (?, ?, ?, ?, ?, ?, ?)";

const FORGET: &str = "delete from webhook_rejected_requests where source = ? and id <= \
    (select id from (select id from webhook_rejected_requests where source = ? order by id desc limit 1 offset ?) as last)";

impl Transaction for KeepRejected {
    type Output = ();
    const STEP: &'static str = "keep a rejected request";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        let source = Value::Text(&self.source);
        let values = [
            source,
            self.at_ms.into(),
            Value::Text(self.reason.code()),
            Value::Text(&self.method),
            Value::Text(&self.url),
            Value::Text(&self.headers),
            Value::Bytes(&self.body),
        ];
        conn.execute(INSERT, &values).await.step(Self::STEP)?;
        let bound = [source, source, i64::from(self.keep).into()];
        conn.execute(FORGET, &bound)
            .await
            .step(Self::STEP)
            .map(drop)
    }
}

/// A request that was kept.
#[derive(Clone, Debug, Serialize)]
pub struct RejectedRow {
    /// Its number.
    pub id: i64,
    /// The source's stable id.
    pub source: String,
    /// When it arrived, in milliseconds UTC.
    pub at_ms: i64,
    /// Why it was refused.
    pub reason: String,
    /// The method.
    pub method: String,
    /// The URL as its sender called it.
    #[serde(skip)]
    pub url: String,
    /// All headers, as a JSON list of pairs.
    #[serde(skip)]
    pub headers: String,
    /// How many bytes the body has.
    pub bytes: i64,
    /// The raw body; a list leaves it out.
    #[serde(skip)]
    pub body: Vec<u8>,
}

macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "select id, source, at_ms, reason, method, url, headers, length(body), ",
            $rest
        )
    };
}

fn read(row: &Row<'_>) -> Result<RejectedRow, DbError> {
    Ok(RejectedRow {
        id: row.int(0)?,
        source: row.text(1)?,
        at_ms: row.int(2)?,
        reason: row.text(3)?,
        method: row.text(4)?,
        url: row.text(5)?,
        headers: row.text(6)?,
        bytes: row.int(7)?,
        body: row.opt_bytes(8)?.unwrap_or_default(),
    })
}

/// Lists the newest of them, of one source or of all.
#[derive(Clone, Debug)]
pub struct ListRejected {
    /// The source's stable id.
    pub source: Option<String>,
    /// How many at most.
    pub limit: i64,
}

impl Transaction for ListRejected {
    type Output = Vec<RejectedRow>;
    const STEP: &'static str = "list rejected requests";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Vec<RejectedRow>> {
        const LIST: &str = columns!(
            "null from webhook_rejected_requests where (? is null or source = ?) order by id desc limit ?"
        );
        let source = self.source.as_deref();
        let values = [source.into(), source.into(), self.limit.into()];
        conn.fetch(LIST, &values, read).await.step(Self::STEP)
    }
}

/// Finds one of them.
#[derive(Clone, Copy, Debug)]
pub struct FindRejected {
    /// Its number.
    pub id: i64,
}

impl Transaction for FindRejected {
    type Output = Option<RejectedRow>;
    const STEP: &'static str = "find a rejected request";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Option<RejectedRow>> {
        const FIND: &str = columns!("body from webhook_rejected_requests where id = ?");
        conn.fetch_one(FIND, &[self.id.into()], read)
            .await
            .step(Self::STEP)
    }
}
