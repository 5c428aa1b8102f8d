//! Receiving a body: raw bytes under a size limit, a time limit and a budget of bytes in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use sekali::{Outcome, Reason};

/// How much of a body that is too large is still read, so that its sender reads the answer.
const MAX_DISCARDED: usize = 64 << 20;
/// How long that may take.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// How many bytes of bodies are held at once.
#[derive(Clone)]
pub(crate) struct Budget {
    free: Arc<AtomicUsize>,
}

/// Bytes that were taken out of the budget; dropping gives them back.
pub(crate) struct Held {
    free: Arc<AtomicUsize>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            free: Arc::new(AtomicUsize::new(bytes)),
        }
    }

    fn hold(&self) -> Held {
        Held {
            free: self.free.clone(),
            bytes: 0,
        }
    }
}

impl Held {
    /// Takes more; tells whether there was as much.
    fn take(&mut self, bytes: usize) -> bool {
        let taken = self
            .free
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| {
                free.checked_sub(bytes)
            });
        if taken.is_ok() {
            self.bytes += bytes;
        }
        taken.is_ok()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.free.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// A body that arrived whole, and its share of the budget.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    _held: Held,
}

/// Why a body was not taken.
pub(crate) type Refused = (Outcome, Reason);

/// The limits on a body.
pub(crate) struct Limits<'a> {
    pub(crate) max_bytes: usize,
    pub(crate) within: Duration,
    pub(crate) budget: &'a Budget,
}

/// Reads a body to its end, exactly as it was sent.
pub(crate) async fn receive(
    headers: &HeaderMap,
    mut body: Body,
    limits: Limits<'_>,
) -> Result<Received, Refused> {
    let announced = body.size_hint().exact();
    if announced.is_some_and(|bytes| bytes > limits.max_bytes as u64) {
        // A sender that waits for "100 Continue" gets its answer instead; one that does not is still sending.
        if !headers.contains_key(http::header::EXPECT) {
            discard(body).await;
        }
        return Err((Outcome::TooLarge, Reason::BodyTooLarge));
    }
    let read = tokio::time::timeout(limits.within, collect(&mut body, &limits)).await;
    match read {
        Ok(Err((Outcome::TooLarge, reason))) => {
            discard(body).await;
            Err((Outcome::TooLarge, reason))
        }
        Ok(received) => received,
        Err(_) => Err((Outcome::Timeout, Reason::BodyTooSlow)),
    }
}

async fn collect(body: &mut Body, limits: &Limits<'_>) -> Result<Received, Refused> {
    let mut held = limits.budget.hold();
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| (Outcome::Malformed, Reason::BodyIncomplete))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first.len() + more.len() + data.len() > limits.max_bytes {
            return Err((Outcome::TooLarge, Reason::BodyTooLarge));
        }
        if !held.take(data.len()) {
            return Err((Outcome::Unavailable, Reason::MemoryFull));
        }
        // Most bodies are one piece, which needs no copy.
        match (first.is_empty(), more.is_empty()) {
            (true, true) => first = data,
            (false, true) => {
                more.extend_from_slice(&std::mem::take(&mut first));
                more.extend_from_slice(&data);
            }
            _ => more.extend_from_slice(&data),
        }
    }
    let bytes = if more.is_empty() {
        first
    } else {
        more.freeze()
    };
    Ok(Received { bytes, _held: held })
}

/// Reads on without keeping anything: a connection that is closed on a sender in mid-sentence loses the answer.
async fn discard(mut body: Body) {
    let read = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > MAX_DISCARDED {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME, read).await;
}
