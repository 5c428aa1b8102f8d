//! What interrupts a statement on SQLite: a time limit, and deliveries that wait for the one writer.
//!
//! SQLite asks the guard every few thousand steps of a statement. An effect that runs too long is interrupted; so is
//! one that has used up the budget of its transaction while deliveries wait to be stored.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Why a statement was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// It ran longer than an effect may.
    Timeout,
    /// Deliveries waited and its budget was used up.
    GaveWay,
}

/// The state that the writer's thread and SQLite's callback share.
#[derive(Debug, Default)]
pub struct Guard {
    waiting: AtomicUsize,
    watch: Mutex<Watch>,
}

#[derive(Debug, Default)]
struct Watch {
    limit: Option<Instant>,
    give_way_from: Option<Instant>,
    interrupted: Option<Interruption>,
}

impl Guard {
    pub(super) fn arm(&self, limit: Instant, give_way_from: Instant) {
        *self.watch() = Watch {
            limit: Some(limit),
            give_way_from: Some(give_way_from),
            interrupted: None,
        };
    }

    pub(super) fn disarm(&self) -> Option<Interruption> {
        std::mem::take(&mut *self.watch()).interrupted
    }

    pub(super) fn others_wait(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    pub(super) fn set_waiting(&self, count: usize) {
        self.waiting.store(count, Ordering::Release);
    }

    /// Tells SQLite whether to interrupt the running statement.
    pub(super) fn interrupts(&self) -> bool {
        let mut watch = self.watch();
        let Some(limit) = watch.limit else {
            return false;
        };
        let now = Instant::now();
        if now >= limit {
            watch.interrupted = Some(Interruption::Timeout);
        } else if watch.give_way_from.is_some_and(|from| now >= from) && self.others_wait() {
            watch.interrupted = Some(Interruption::GaveWay);
        }
        watch.interrupted.is_some()
    }

    fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
        self.watch
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
