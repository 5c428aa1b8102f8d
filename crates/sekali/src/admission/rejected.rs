//! The rows of rejected deliveries, written behind: bounded by source and minute, and counted past the bound.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::error::chain;
use crate::event::Rejected;
use crate::reason::Outcome;
use crate::store::{Store, WriteRejected};

/// How many rows one transaction writes.
const BATCH_LEN: usize = 128;
/// How long rows gather; nobody waits for them.
const GATHER: Duration = Duration::from_millis(200);

type Key = (i64, Arc<str>, Outcome);

/// What is only counted: by minute, source and outcome, which bounds it by the number of sources.
#[derive(Default)]
pub(super) struct Overflow {
    counts: Mutex<HashMap<Key, i64>>,
}

impl Overflow {
    pub(super) fn count(&self, rejected: &Rejected) {
        let key = (
            rejected.received_at / 60_000,
            rejected.source.clone(),
            rejected.outcome,
        );
        *self
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(key)
            .or_default() += 1;
    }

    fn take(&self) -> HashMap<Key, i64> {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(super) struct Rows {
    store: Store,
    per_minute: u32,
    overflow: Arc<Overflow>,
    minute: i64,
    written: HashMap<Arc<str>, u32>,
}

impl Rows {
    pub(super) fn new(store: Store, per_minute: u32, overflow: Arc<Overflow>) -> Self {
        Self {
            store,
            per_minute,
            overflow,
            minute: 0,
            written: HashMap::new(),
        }
    }

    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Rejected>) {
        let mut batch = Vec::with_capacity(BATCH_LEN);
        while queue.recv_many(&mut batch, BATCH_LEN).await > 0 {
            let rows = batch
                .drain(..)
                .filter(|rejected| self.has_room(rejected))
                .collect();
            self.write(rows).await;
            if !queue.is_closed() {
                tokio::time::sleep(GATHER).await;
            }
        }
        self.write(Vec::new()).await;
    }

    /// Takes one row out of the minute's budget of its source, or counts it.
    fn has_room(&mut self, rejected: &Rejected) -> bool {
        let minute = rejected.received_at / 60_000;
        if minute != self.minute {
            self.minute = minute;
            self.written.clear();
        }
        let written = self.written.entry(rejected.source.clone()).or_default();
        let has_room = *written < self.per_minute;
        match has_room {
            true => *written += 1,
            false => self.overflow.count(rejected),
        }
        has_room
    }

    async fn write(&self, rows: Vec<Rejected>) {
        let counted = self.overflow.take().into_iter();
        let counted: Vec<_> = counted
            .map(|((minute, source, outcome), count)| (minute, source, outcome, count))
            .collect();
        if rows.is_empty() && counted.is_empty() {
            return;
        }
        let len = rows.len();
        if let Err(error) = self.store.write(WriteRejected { rows, counted }).await {
            // They were rejected: nothing that counts is lost, and the metrics have them.
            tracing::warn!(
                rows = len,
                error = chain(&error),
                "rows of rejected deliveries were not written"
            );
        }
    }
}
