//! Admission: the group commit that takes verified events into the inbox.
//!
//! Deliveries queue, and a task takes what queued while the last transaction committed: no timer, so that an idle
//! receiver answers after one insert and a busy one fills its batches by itself. A full queue is an answer, not a wait.
//! A delivery is answered after its transaction committed, never before. The events of one request are a group: they are
//! stored in one transaction, all of them or none.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::event::{Delivery, Receipt, Rejected};
use crate::limits::Limits;
use crate::observer::Observer;
use crate::store::Store;
use crate::wake::Wake;

mod batch;
mod rejected;

/// The entrance to the inbox; clones share it.
#[derive(Clone)]
pub struct Admission {
    queue: mpsc::Sender<Pending>,
    rejected: mpsc::Sender<Rejected>,
    overflow: Arc<rejected::Overflow>,
}

/// A group, the events of one request, and who waits for their receipts: all of them are stored, or none.
struct Pending {
    deliveries: Vec<Delivery>,
    answer: oneshot::Sender<Result<Vec<Receipt>>>,
}

/// The tasks behind the entrance; they end once every [`Admission`] is dropped and their queues are empty.
pub struct AdmissionTasks {
    tasks: Vec<JoinHandle<()>>,
}

impl Admission {
    /// Starts admission into a store.
    pub(crate) fn start(
        store: Store,
        limits: Limits,
        observer: Arc<dyn Observer>,
        wake: Wake,
    ) -> (Self, AdmissionTasks) {
        let (queue, waiting) = mpsc::channel(limits.admission_queue_len);
        let (rejected, refused) = mpsc::channel(limits.rejected_queue_len);
        let overflow = Arc::new(rejected::Overflow::default());
        // One writer commits one batch after the other.
        let batches_at_once = match store.is_alone() {
            true => 1,
            false => limits.admission_batches_at_once,
        };
        let batches = batch::Batches {
            store: store.clone(),
            limits,
            observer,
            wake,
        };
        let rows = rejected::Rows::new(store, limits.rejected_rows_per_minute, overflow.clone());
        let line = Arc::new(Mutex::new(batch::Queue::new(waiting)));
        let mut tasks: Vec<_> = (0..batches_at_once)
            .map(|_| tokio::spawn(batches.clone().run(line.clone())))
            .collect();
        tasks.push(tokio::spawn(rows.run(refused)));
        (
            Self {
                queue,
                rejected,
                overflow,
            },
            AdmissionTasks { tasks },
        )
    }

    /// Takes a delivery in, and returns what became of it once that is on disk.
    pub async fn admit(&self, delivery: Delivery) -> Result<Receipt> {
        let mut receipts = self.admit_all(vec![delivery]).await?;
        receipts.pop().ok_or(Error::Closed)
    }

    /// Takes the events of one request in, in one transaction, and returns what became of each.
    ///
    /// One that cannot be stored fails them all: the sender repeats the whole request, and none of it may be lost or
    /// answered for. Receipts stand in the order of the deliveries; of two with one id, the second meets the first as if
    /// it had come in a later request.
    pub async fn admit_all(&self, deliveries: Vec<Delivery>) -> Result<Vec<Receipt>> {
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, receipts) = oneshot::channel();
        self.queue
            .try_send(Pending { deliveries, answer })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => Error::Busy { queue: "admission" },
                mpsc::error::TrySendError::Closed(_) => Error::Closed,
            })?;
        receipts.await.map_err(|_| Error::Closed)?
    }

    /// Notes a rejected delivery; its row is written behind, and past the bounds it is only counted.
    pub fn reject(&self, rejected: Rejected) {
        if let Err(mpsc::error::TrySendError::Full(rejected)) = self.rejected.try_send(rejected) {
            self.overflow.count(&rejected);
        }
    }
}

impl AdmissionTasks {
    /// Waits until everything that queued is written, at most until `end`.
    pub async fn finish(self, end: Instant) {
        for task in self.tasks {
            // Whoever still waits then gets no answer, and comes again.
            let _ = tokio::time::timeout_at(end, task).await;
        }
    }
}
