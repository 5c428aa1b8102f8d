//! Every limit of the engine, with its default and its reason.

use std::time::Duration;

/// The longest event id, scope, event type, entity type and entity id, in bytes.
pub const MAX_KEY_BYTES: usize = 255;
/// The longest source URL, in bytes.
pub const MAX_URL_BYTES: usize = 2048;
/// The longest content hash and producer, in bytes.
pub const MAX_TEXT_BYTES: usize = 255;
/// The longest error message that is stored, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 1000;
/// The longest detail and the longest secret of a handshake, in bytes.
pub const MAX_DETAIL_BYTES: usize = 2048;
/// How many variants of an event are kept as evidence; more are only counted.
pub const MAX_VARIANTS: i64 = 16;
/// How long an event may be held until the time it says it happened at, in milliseconds (24 h).
pub const MAX_HOLD_MS: i64 = 24 * 3600 * 1000;

/// Bounds on queues, batches and times of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that may wait for admission, whatever number of events each carries; one more is answered 503.
    pub admission_queue_len: usize,
    /// Events of one admission transaction; a request that carries more has one of its own.
    pub admission_batch_len: usize,
    /// Body bytes of one admission transaction; a request that carries more has one of its own.
    pub admission_batch_bytes: usize,
    /// Admission transactions that are open at once, where the store has more than one writer.
    pub admission_batches_at_once: usize,
    /// Rejected deliveries that may wait to be written; more are only counted.
    pub rejected_queue_len: usize,
    /// Rejected deliveries that get a row of their own per source and minute; more are only counted.
    pub rejected_rows_per_minute: u32,
    /// Events that a worker claims at once.
    pub claim_len: usize,
    /// Events of one apply transaction.
    pub apply_len: usize,
    /// Body bytes that a worker claims at once.
    pub claim_bytes: usize,
    /// How long a claim holds without being renewed.
    pub lease: Duration,
    /// After how long an apply transaction gives way to waiting deliveries.
    pub apply_budget: Duration,
    /// After how long the statements of one event are interrupted.
    pub effect_timeout: Duration,
    /// How long a worker sleeps when nothing is due and nobody wakes it.
    pub poll: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            admission_queue_len: 4096,
            admission_batch_len: 256,
            admission_batch_bytes: 1024 * 1024,
            admission_batches_at_once: 2,
            rejected_queue_len: 1024,
            rejected_rows_per_minute: 600,
            claim_len: 256,
            apply_len: 64,
            claim_bytes: 4 * 1024 * 1024,
            lease: Duration::from_secs(30),
            apply_budget: Duration::from_millis(20),
            effect_timeout: Duration::from_secs(1),
            poll: Duration::from_secs(1),
        }
    }
}
