//! The task that forms batches: what queued while the last one committed, within the limits on rows and bytes.
//!
//! A batch is made of whole groups, so that the events of one request commit together. A group that is larger than the
//! limits is a batch of its own.

use std::sync::Arc;

use tokio::sync::{Notify, mpsc};

use super::Pending;
use crate::error::{Error, Result, chain};
use crate::event::{Delivery, Receipt};
use crate::limits::Limits;
use crate::observer::Observer;
use crate::reason::Outcome;
use crate::store::{Admit, Store};

pub(super) struct Batches {
    pub(super) store: Store,
    pub(super) limits: Limits,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) wake: Arc<Notify>,
}

impl Batches {
    pub(super) async fn run(self, mut queue: mpsc::Receiver<Pending>) {
        let mut held: Option<Pending> = None;
        loop {
            let first = match held.take() {
                Some(pending) => pending,
                None => match queue.recv().await {
                    Some(pending) => pending,
                    None => return,
                },
            };
            let (batch, rest) = self.fill(first, &mut queue);
            held = rest;
            self.commit(batch).await;
        }
    }

    /// Takes what waits already; the request that would burst the limits is held for the next batch.
    fn fill(
        &self,
        first: Pending,
        queue: &mut mpsc::Receiver<Pending>,
    ) -> (Vec<Pending>, Option<Pending>) {
        let (mut rows, mut bytes) = (first.deliveries.len(), first.bytes());
        let mut batch = vec![first];
        while rows < self.limits.admission_batch_len {
            let Ok(next) = queue.try_recv() else { break };
            rows += next.deliveries.len();
            bytes += next.bytes();
            if bytes > self.limits.admission_batch_bytes || rows > self.limits.admission_batch_len {
                return (batch, Some(next));
            }
            batch.push(next);
        }
        (batch, None)
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
            Err(error)
                if waiting.len() > 1 && !matches!(error, Error::Closed | Error::Busy { .. }) =>
            {
                for (range, answer) in waiting {
                    let _ = answer.send(self.write(deliveries[range].into()).await);
                }
            }
            Err(error) => {
                let mut error = Some(error);
                for (_, answer) in waiting {
                    let _ = answer.send(Err(error
                        .take()
                        .unwrap_or(Error::Busy { queue: "database" })));
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
                    self.wake.notify_one();
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

impl Pending {
    fn bytes(&self) -> usize {
        let bodies = self.deliveries.iter();
        bodies.map(|delivery| delivery.event.body.len()).sum()
    }
}
