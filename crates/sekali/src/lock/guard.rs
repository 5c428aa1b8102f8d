//! A lock that is held: renewed until it is dropped, and then taken away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::keeper::{Away, Keeper};

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct LockGuard {
    held: Option<Arc<Held>>,
    renewal: JoinHandle<()>,
}

#[derive(Debug)]
struct Held {
    keeper: Arc<Keeper>,
    name: String,
    token: String,
    is_lost: AtomicBool,
}

impl LockGuard {
    pub(super) fn new(keeper: Arc<Keeper>, name: String, token: String) -> Self {
        let held = Arc::new(Held {
            keeper,
            name,
            token,
            is_lost: AtomicBool::new(false),
        });
        Self {
            renewal: tokio::spawn(held.clone().renew()),
            held: Some(held),
        }
    }

    /// Tells whether the lock ended before it was dropped: Redis forgot it, or could not be reached for as long as it lasts.
    pub fn is_lost(&self) -> bool {
        let held = self.held.as_ref();
        held.is_none_or(|held| held.is_lost.load(Ordering::SeqCst))
    }

    /// Takes the lock away, and waits until it is.
    pub async fn release(mut self) {
        self.renewal.abort();
        if let Some(held) = self.held.take() {
            held.release().await;
        }
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.renewal.abort();
        if let Some(held) = self.held.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { held.release().await });
        }
    }
}

impl Held {
    async fn renew(self: Arc<Self>) {
        let options = &self.keeper.options;
        let (started, every) = (Instant::now(), options.ttl / 3);
        let mut lasts_until = started + options.ttl;
        while started.elapsed() < options.max_run {
            sleep(every).await;
            match self.keeper.renew(&self.name, &self.token).await {
                Ok(true) => lasts_until = Instant::now() + options.ttl,
                Err(Away) if Instant::now() < lasts_until => {}
                Ok(false) | Err(Away) => return self.lose(),
            }
        }
        // It runs out by itself: whoever works for so long has to reckon with others.
        sleep(lasts_until.saturating_duration_since(Instant::now())).await;
        self.lose();
    }

    fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
        self.keeper.count_lost();
        tracing::debug!(key = self.name, "a lock ended while it was held");
    }

    async fn release(&self) {
        const TRIES: u32 = 2;
        for _ in 0..TRIES {
            match self.keeper.release(&self.name, &self.token).await {
                Ok(_) => return,
                // It runs out by itself at the latest.
                Err(Away) => sleep(Duration::from_millis(100)).await,
            }
        }
    }
}
