//! Waking workers: those of this process at once, those of other processes by a hint through the database.
//!
//! A hint may be lost and nothing is: workers look by themselves every [`Limits::poll`](crate::Limits). At most twenty
//! hints a second are given, however much is admitted.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::error::chain;
use crate::store::Store;

/// How long it rests between two hints.
const REST: Duration = Duration::from_millis(50);

/// Wakes workers; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wake {
    here: Arc<Notify>,
    elsewhere: Arc<Notify>,
}

impl Wake {
    /// Says that there are events to work on.
    pub(crate) fn tell(&self) {
        self.here.notify_one();
        self.elsewhere.notify_one();
    }

    /// Has every worker of this process look at once.
    pub(crate) fn all_here(&self) {
        self.here.notify_waiters();
        self.here.notify_one();
    }

    /// Waits until there is something to work on.
    pub(crate) async fn told(&self) {
        self.here.notified().await;
    }

    /// Carries hints between processes, where the database can; ends with the handles.
    pub(crate) fn carry(&self, store: &Store, has_workers: bool) -> Vec<JoinHandle<()>> {
        if !store.carries_hints() {
            return Vec::new();
        }
        let mut tasks = vec![tokio::spawn(give(store.clone(), self.elsewhere.clone()))];
        if has_workers {
            let (store, here) = (store.clone(), self.here.clone());
            tasks.push(tokio::spawn(async move {
                store.hear_hints(|| here.notify_one()).await;
            }));
        }
        tasks
    }
}

async fn give(store: Store, asked: Arc<Notify>) {
    loop {
        asked.notified().await;
        if let Err(error) = store.give_hint().await {
            tracing::debug!(error = chain(&error), "a hint was not given");
        }
        tokio::time::sleep(REST).await;
    }
}
