//! What the engine reports about itself, so that metrics and logs are added once, from outside.

use crate::reason::{Outcome, Reason, Status};

/// One delivery that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The source's stable id.
    pub source: &'a str,
    /// The event's type, where it was identified.
    pub event_type: Option<&'a str>,
    /// The event's id, where it was identified.
    pub event_id: Option<&'a str>,
    /// The entity's id, where it was identified.
    pub entity_id: Option<&'a str>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why.
    pub reason: Option<Reason>,
    /// From its arrival to its answer, in seconds.
    pub seconds: f64,
    /// How far its signed time is behind the receiver's, in seconds.
    pub drift_seconds: Option<f64>,
}

/// One attempt that ended.
#[derive(Clone, Copy, Debug)]
pub struct Settled<'a> {
    /// The source's stable id.
    pub source: &'a str,
    /// The event's id.
    pub event_id: &'a str,
    /// The event's type.
    pub event_type: &'a str,
    /// The entity's id.
    pub entity_id: &'a str,
    /// Which attempt it was.
    pub attempt: i64,
    /// Where the event stands now.
    pub status: Status,
    /// Why.
    pub reason: Option<Reason>,
    /// What went wrong.
    pub message: Option<&'a str>,
    /// From when it happened to when it was processed, in seconds.
    pub since_occurred_seconds: Option<f64>,
    /// Whether another event claims the same version with other content.
    pub has_version_conflict: bool,
    /// Whether the version went down although time went on.
    pub is_version_regressed: bool,
}

/// Something that wants to know; calls must be quick and must not block.
pub trait Observer: Send + Sync {
    /// A delivery was answered.
    fn received(&self, _received: Received<'_>) {}
    /// An attempt ended.
    fn settled(&self, _settled: Settled<'_>) {}
    /// An admission transaction committed with so many deliveries.
    fn admitted_batch(&self, _len: usize) {}
    /// The store failed while doing something.
    fn store_failed(&self, _step: &'static str) {}
}

/// An observer that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
