//! The engine: store, admission and workers, started in order and stopped in reverse.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::admission::{Admission, AdmissionTasks};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::observer::Observer;
use crate::source::Sources;
use crate::store::{CheckEffects, Conn, PendingSources, Store, Transaction, take_over_all};
use crate::wake::Wake;
use crate::worker::Worker;

/// What an engine is made of.
pub struct EngineOptions {
    /// The sources.
    pub sources: Sources,
    /// Sources that are not configured any more, although events of theirs may be pending.
    pub retired: Vec<String>,
    /// The limits.
    pub limits: Limits,
    /// The clock.
    pub clock: Clock,
    /// Who wants to know.
    pub observer: Arc<dyn Observer>,
    /// How many workers apply events; 0 only receives.
    pub workers: usize,
}

/// A running engine.
pub struct Engine {
    store: Store,
    sources: Sources,
    clock: Clock,
    admission: Admission,
    admission_tasks: AdmissionTasks,
    workers: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    wake: Wake,
    /// They carry hints between processes.
    hints: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Checks the sources against the store and starts to work.
    pub async fn start(store: Store, options: EngineOptions) -> Result<Self> {
        // A process that only receives runs no effect, and may not even see their tables.
        if options.workers > 0 {
            check_effects(&store, &options.sources).await?;
        }
        check_retired(&store, &options).await?;
        if store.is_alone() {
            store.write(TakeOver).await?;
        }
        let wake = Wake::default();
        let hints = wake.carry(&store, options.workers > 0);
        let (stop, stopped) = watch::channel(false);
        let (admission, admission_tasks) = Admission::start(
            store.clone(),
            options.limits,
            options.observer.clone(),
            wake.clone(),
        );
        let (node, claims) = (fastrand::u64(..), Arc::new(AtomicU64::new(0)));
        let worker = || Worker {
            store: store.clone(),
            sources: options.sources.clone(),
            limits: options.limits,
            clock: options.clock.clone(),
            observer: options.observer.clone(),
            wake: wake.clone(),
            stop: stopped.clone(),
            node,
            claims: claims.clone(),
        };
        let workers = (0..options.workers)
            .map(|_| tokio::spawn(worker().run()))
            .collect();
        let EngineOptions { sources, clock, .. } = options;
        Ok(Self {
            store,
            sources,
            clock,
            admission,
            admission_tasks,
            workers,
            stop,
            wake,
            hints,
        })
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the sources.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the entrance to the inbox.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Has the workers look at once instead of at their next poll.
    pub fn wake(&self) {
        self.wake.all_here();
    }

    /// Stops: what is queued is admitted, what is being applied is finished, other leases are given back.
    ///
    /// All of it takes `drain` at most. Every clone of [`Admission`] must be gone by then, or admission takes all of that.
    pub async fn stop(self, drain: Duration) {
        drop(self.admission);
        self.hints.iter().for_each(JoinHandle::abort);
        // Nobody listens where no worker was started.
        let _ = self.stop.send(true);
        let end = Instant::now() + drain;
        self.admission_tasks.finish(end).await;
        for worker in self.workers {
            let _ = tokio::time::timeout_at(end, worker).await;
        }
    }
}

async fn check_effects(store: &Store, sources: &Sources) -> Result<()> {
    for check in sources.iter().flat_map(|source| CheckEffects::of(source)) {
        store.write(check).await?;
    }
    Ok(())
}

async fn check_retired(store: &Store, options: &EngineOptions) -> Result<()> {
    for id in store.read(PendingSources).await? {
        if options.sources.get(&id).is_none() && !options.retired.contains(&id) {
            let problem = format!(
                "{id} has pending events but is not configured; list it as retired to give them up"
            );
            return Err(Error::config("source", problem));
        }
    }
    Ok(())
}

/// Lets the leases of a process that died run out at once.
struct TakeOver;

impl Transaction for TakeOver {
    type Output = u64;
    const STEP: &'static str = "take leases over";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<u64> {
        take_over_all(conn).await
    }
}
