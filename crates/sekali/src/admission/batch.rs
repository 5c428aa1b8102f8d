//! The task that forms batches: what queued while the last one committed, within the limits on rows and bytes.

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

    /// Takes what waits already; the delivery that would burst the limits is held for the next batch.
    fn fill(
        &self,
        first: Pending,
        queue: &mut mpsc::Receiver<Pending>,
    ) -> (Vec<Pending>, Option<Pending>) {
        let mut bytes = first.delivery.event.body.len();
        let mut batch = vec![first];
        while batch.len() < self.limits.admission_batch_len {
            let Ok(next) = queue.try_recv() else { break };
            bytes += next.delivery.event.body.len();
            if bytes > self.limits.admission_batch_bytes {
                return (batch, Some(next));
            }
            batch.push(next);
        }
        (batch, None)
    }

    async fn commit(&self, batch: Vec<Pending>) {
        let (deliveries, answers): (Vec<Delivery>, Vec<_>) = batch
            .into_iter()
            .map(|pending| (pending.delivery, pending.answer))
            .unzip();
        let deliveries: Arc<[Delivery]> = deliveries.into();
        match self.write(deliveries.clone()).await {
            Ok(receipts) => {
                for (answer, receipt) in answers.into_iter().zip(receipts) {
                    // Whoever went away in the meantime will send again, and get the duplicate's answer.
                    let _ = answer.send(Ok(receipt));
                }
            }
            // A row can only fail itself: the others get their own transaction.
            Err(error)
                if deliveries.len() > 1 && !matches!(error, Error::Closed | Error::Busy { .. }) =>
            {
                for (delivery, answer) in deliveries.iter().zip(answers) {
                    let receipt = self.write([delivery.clone()].into()).await;
                    let _ = answer
                        .send(receipt.and_then(|mut receipts| receipts.pop().ok_or(Error::Closed)));
                }
            }
            Err(error) => {
                let mut error = Some(error);
                for answer in answers {
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
