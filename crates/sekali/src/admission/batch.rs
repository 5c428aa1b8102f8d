//! The tasks that form batches: what queued while the last one committed, within the limits on rows and bytes.
//!
//! A batch is made of whole groups, so that the events of one request commit together. A group that is larger than the
//! limits is a batch of its own. Where transactions commit beside each other, one batch is filled while another commits;
//! only one task at a time takes from the queue.

use std::ops::Range;
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};

use super::Pending;
use crate::error::{Error, Result, chain};
use crate::event::{Delivery, Receipt};
use crate::limits::Limits;
use crate::observer::Observer;
use crate::reason::Outcome;
use crate::store::{Admit, DbErrorKind, Store};
use crate::wake::Wake;

/// The place of a request's deliveries in a batch, and who waits for their receipts.
type Waiting = (Range<usize>, oneshot::Sender<Result<Vec<Receipt>>>);

#[derive(Clone)]
pub(super) struct Batches {
    pub(super) store: Store,
    pub(super) limits: Limits,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) wake: Wake,
}

/// What waits for admission.
pub(super) struct Queue {
    waiting: mpsc::Receiver<Pending>,
    /// The request that would have burst the last batch.
    held: Option<Pending>,
}

impl Queue {
    pub(super) fn new(waiting: mpsc::Receiver<Pending>) -> Self {
        let held = None;
        Self { waiting, held }
    }

    /// Waits for a request and takes with it what waits already; `None` once nobody can send any more.
    async fn take(&mut self, limits: &Limits) -> Option<Vec<Pending>> {
        let first = match self.held.take() {
            Some(pending) => pending,
            None => self.waiting.recv().await?,
        };
        let (mut rows, mut bytes) = (first.deliveries.len(), first.bytes());
        let mut batch = vec![first];
        while rows < limits.admission_batch_len {
            let Ok(next) = self.waiting.try_recv() else {
                break;
            };
            rows += next.deliveries.len();
            bytes += next.bytes();
            if bytes > limits.admission_batch_bytes || rows > limits.admission_batch_len {
                self.held = Some(next);
                break;
            }
            batch.push(next);
        }
        Some(batch)
    }
}

impl Batches {
    pub(super) async fn run(self, queue: Arc<Mutex<Queue>>) {
        loop {
            let batch = queue.lock().await.take(&self.limits).await;
            match batch {
                Some(batch) => self.commit(batch).await,
                None => return,
            }
        }
    }

    async fn commit(&self, batch: Vec<Pending>) {
        let mut deliveries = Vec::with_capacity(batch.len());
        let mut waiting = Vec::with_capacity(batch.len());
        for pending in batch {
            let start = deliveries.len();
            deliveries.extend(pending.deliveries);
            waiting.push((start..deliveries.len(), pending.answer));
        }
        let deliveries: Arc<[Delivery]> = deliveries.into();
        match self.write(deliveries.clone()).await {
            Ok(mut receipts) => {
                for (range, answer) in waiting.into_iter().rev() {
                    // Whoever went away in the meantime will send again, and get the duplicate's answer.
                    let _ = answer.send(Ok(receipts.split_off(range.start)));
                }
            }
            // A request can only fail itself: the others get their own transaction.
            Err(error) if waiting.len() > 1 && !fails_all(&error) => {
                self.write_each(&deliveries, waiting).await;
            }
            Err(error) => fail(error, waiting.into_iter()),
        }
    }

    /// Gives each request a transaction of its own, as long as the store can have any.
    async fn write_each(&self, deliveries: &[Delivery], waiting: Vec<Waiting>) {
        let mut waiting = waiting.into_iter();
        while let Some((range, answer)) = waiting.next() {
            match self.write(deliveries[range].into()).await {
                Err(error) if fails_all(&error) => {
                    let _ = answer.send(Err(error));
                    return fail(Error::Busy { queue: "database" }, waiting);
                }
                receipts => {
                    let _ = answer.send(receipts);
                }
            }
        }
    }

    async fn write(&self, deliveries: Arc<[Delivery]>) -> Result<Vec<Receipt>> {
        let len = deliveries.len();
        let result = self.store.write_first(Admit { deliveries }).await;
        match &result {
            Ok(receipts) => {
                self.observer.admitted_batch(len);
                if receipts
                    .iter()
                    .any(|receipt| receipt.outcome == Outcome::Accepted)
                {
                    self.wake.tell();
                }
            }
            Err(error) => {
                self.observer.store_failed("admit deliveries");
                tracing::error!(
                    deliveries = len,
                    error = chain(error),
                    "an admission transaction failed"
                );
            }
        }
        result
    }
}

/// Tells whether a failure is the store's, so that every other transaction would meet it too.
fn fails_all(error: &Error) -> bool {
    match error {
        Error::Closed | Error::Busy { .. } => true,
        Error::Store { source, .. } => matches!(
            source.kind(),
            DbErrorKind::Unavailable | DbErrorKind::Interrupted
        ),
        _ => false,
    }
}

fn fail(error: Error, waiting: impl Iterator<Item = Waiting>) {
    let mut error = Some(error);
    for (_, answer) in waiting {
        let error = error.take();
        let _ = answer.send(Err(error.unwrap_or(Error::Busy { queue: "database" })));
    }
}

impl Pending {
    fn bytes(&self) -> usize {
        let bodies = self.deliveries.iter();
        bodies.map(|delivery| delivery.event.body.len()).sum()
    }
}
