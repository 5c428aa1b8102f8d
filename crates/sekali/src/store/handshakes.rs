//! Handshakes: what providers asked beside sending events, when, and what became of it.
//!
//! Some bring a secret for the operator, which is kept here and shown only to somebody who asks for it. The newest
//! thousand of a source are kept. Not all are verified, so that what they bring has a bound.

use std::sync::Arc;

use sekali_verify::Secret;
use serde::Serialize;

use super::{Conn, Transaction, Value};
use crate::error::{Result, Step as _};
use crate::limits::MAX_DETAIL_BYTES;

/// How many are kept for each source.
const MAX_HANDSHAKES: i64 = 1000;

/// What became of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeOutcome {
    /// It was answered as the provider wants it.
    Answered,
    /// What it must show did not hold.
    Refused,
    /// The address that it named was called.
    Confirmed,
    /// The address that it named could not be called.
    Failed,
}

impl HandshakeOutcome {
    /// Returns the stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Confirmed => "confirmed",
            Self::Failed => "failed",
        }
    }
}

/// Records a handshake.
#[derive(Clone, Debug)]
pub struct NoteHandshake {
    /// The source's stable id.
    pub source: Arc<str>,
    /// When it was asked, in milliseconds UTC.
    pub at_ms: i64,
    /// The handshake's name.
    pub kind: String,
    /// What became of it.
    pub outcome: HandshakeOutcome,
    /// Who asked.
    pub remote_address: Option<String>,
    /// The address that was called, or the error; it is cut at [`MAX_DETAIL_BYTES`].
    pub detail: Option<String>,
    /// A secret for the operator; a longer one than [`MAX_DETAIL_BYTES`] is not kept, as a part of it is of no use.
    pub secret: Option<Secret>,
}

const INSERT: &str = "insert into webhook_handshakes (source, at_ms, kind, outcome, remote_address, detail, secret) \
    values (?, ?, ?, ?, ?, ?, ?)";

const FORGET: &str = "delete from webhook_handshakes where source = ? and id <= \
    (select id from (select id from webhook_handshakes where source = ? order by id desc limit 1 offset ?) as last)";

impl Transaction for NoteHandshake {
    type Output = ();
    const STEP: &'static str = "record a handshake";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        let detail = self.detail.as_deref();
        let detail = detail.map(|text| &text[..text.floor_char_boundary(MAX_DETAIL_BYTES)]);
        let secret = self.secret.as_ref().map(Secret::reveal);
        let secret = secret.filter(|secret| secret.len() <= MAX_DETAIL_BYTES);
        let secret = secret.map(String::from_utf8_lossy);
        let values = [
            Value::Text(&self.source),
            self.at_ms.into(),
            Value::Text(&self.kind),
            Value::Text(self.outcome.code()),
            self.remote_address.as_deref().into(),
            detail.into(),
            secret.as_deref().into(),
        ];
        conn.execute(INSERT, &values).await.step(Self::STEP)?;
        let source = Value::Text(&self.source);
        let bound = [source, source, MAX_HANDSHAKES.into()];
        conn.execute(FORGET, &bound)
            .await
            .step(Self::STEP)
            .map(drop)
    }
}

/// A recorded handshake.
#[derive(Clone, Debug, Serialize)]
pub struct HandshakeRow {
    /// The source's stable id.
    pub source: String,
    /// When it was asked, in milliseconds UTC.
    pub at_ms: i64,
    /// The handshake's name.
    pub kind: String,
    /// What became of it.
    pub outcome: String,
    /// Who asked.
    pub remote_address: Option<String>,
    /// The address that was called, or the error.
    pub detail: Option<String>,
    /// A secret for the operator; it is not part of what is written out.
    #[serde(skip)]
    pub secret: Option<Secret>,
}

/// Lists the newest handshakes, of one source or of all.
#[derive(Clone, Debug)]
pub struct ListHandshakes {
    /// The source's stable id.
    pub source: Option<String>,
    /// How many at most.
    pub limit: i64,
}

const LIST: &str = "select source, at_ms, kind, outcome, remote_address, detail, secret from webhook_handshakes \
    where (? is null or source = ?) order by id desc limit ?";

impl Transaction for ListHandshakes {
    type Output = Vec<HandshakeRow>;
    const STEP: &'static str = "list handshakes";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<Vec<HandshakeRow>> {
        let source = self.source.as_deref();
        let values = [source.into(), source.into(), self.limit.into()];
        let rows = conn.fetch(LIST, &values, |row| {
            Ok(HandshakeRow {
                source: row.text(0)?,
                at_ms: row.int(1)?,
                kind: row.text(2)?,
                outcome: row.text(3)?,
                remote_address: row.opt_text(4)?,
                detail: row.opt_text(5)?,
                secret: row
                    .opt_text(6)?
                    .map(|text| Secret::of_any_length(text.as_bytes())),
            })
        });
        rows.await.step(Self::STEP)
    }
}
