//! A short lock in Redis, which saves nodes from doing the same work at once.
//!
//! It decides nothing: that an event is applied once is the work of the unique key, the lease and the transaction. Redis may
//! therefore be down, slow, flushed, full or behind; whoever asks is told so at once and goes on without the lock. No
//! request ever waits for Redis longer than [`LockOptions::timeout`], and once it has failed none waits at all until it was
//! seen to work again.
//!
//! A lock is a key with a token of its own and an end (`SET key token NX PX ttl`). Its holder renews it, and takes it away
//! only where the token is still its own, so that a late release never removes the lock of the next holder.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

mod guard;
mod keeper;

pub use guard::LockGuard;
use keeper::Keeper;

/// The shortest and the longest time a lock may last without being renewed.
pub const TTL: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(10)..=Duration::from_secs(30);

/// How a lock is reached and how long it lasts.
#[derive(Clone)]
pub struct LockOptions {
    /// The URL of the server: `redis://[:PASSWORD@]HOST[:PORT][/DATABASE]`.
    pub url: String,
    /// What every key starts with.
    pub prefix: String,
    /// How long a lock lasts without being renewed, within [`TTL`].
    pub ttl: Duration,
    /// For how long it is renewed at most.
    pub max_run: Duration,
    /// How long a command may take before Redis counts as away.
    pub timeout: Duration,
}

impl LockOptions {
    /// Reaches a server with everything else as usual.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "sekali:lock:".into(),
            ttl: Duration::from_secs(15),
            max_run: Duration::from_secs(300),
            timeout: Duration::from_millis(200),
        }
    }
}

// The URL may hold a password.
impl fmt::Debug for LockOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockOptions")
            .field("prefix", &self.prefix)
            .field("ttl", &self.ttl)
            .field("max_run", &self.max_run)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// What is locked: one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockKey<'k> {
    /// The source.
    pub source: &'k str,
    /// The scope.
    pub scope: &'k str,
    /// The event's id.
    pub event_id: &'k str,
}

impl LockKey<'_> {
    /// Returns the key in Redis; its length is bounded, and no two events have one.
    fn name(&self, prefix: &str) -> String {
        let mut hash = Sha256::new();
        for part in [self.source, self.scope, self.event_id] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        format!("{prefix}{}", hex::encode(hash.finalize()))
    }
}

/// What came of asking for a lock.
#[derive(Debug)]
pub enum Acquired {
    /// It is held until the guard is dropped.
    Held(LockGuard),
    /// Somebody else holds it.
    Busy,
    /// Redis cannot say; whoever asked goes on without it.
    Unavailable,
}

/// How often what happened since the start, and whether Redis works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockStats {
    /// Locks that were taken.
    pub held: u64,
    /// Locks that somebody else held.
    pub busy: u64,
    /// Locks that were asked for while Redis could not say.
    pub unavailable: u64,
    /// Locks that were lost while they were held.
    pub lost: u64,
    /// Whether Redis answered when it was last asked.
    pub is_up: bool,
}

/// The lock; clones share it.
#[derive(Clone, Debug)]
pub struct Lock {
    keeper: Arc<Keeper>,
}

impl Lock {
    /// Starts to connect in the background; that Redis is away is no error.
    pub fn start(options: LockOptions) -> Result<Self> {
        if !TTL.contains(&options.ttl) {
            let problem = "must lie from 10s to 30s: longer than a pause of the process, and short enough to be waited for";
            return Err(Error::config("lock.ttl", problem));
        }
        if options.timeout.is_zero() || options.timeout > options.ttl / 5 {
            let problem = "must be more than nothing and at most a fifth of lock.ttl";
            return Err(Error::config("lock.timeout", problem));
        }
        // What the client says may hold the URL, and with it a password.
        let client = redis::Client::open(&*options.url).map_err(|_| {
            let problem = "write it like redis://host:6379, with :PASSWORD@ before the host and /DATABASE behind it as needed";
            Error::config("lock.url", problem)
        })?;
        let keeper = Arc::new(Keeper::new(client, options));
        tokio::spawn(Keeper::run(Arc::downgrade(&keeper)));
        Ok(Self { keeper })
    }

    /// Asks for the lock of an event.
    pub async fn acquire(&self, key: LockKey<'_>) -> Acquired {
        let name = key.name(&self.keeper.options.prefix);
        let token = format!("{:032x}", fastrand::u128(..));
        match self.keeper.set(&name, &token).await {
            Ok(true) => Acquired::Held(LockGuard::new(self.keeper.clone(), name, token)),
            Ok(false) => Acquired::Busy,
            Err(keeper::Away) => Acquired::Unavailable,
        }
    }

    /// Returns what happened so far.
    pub fn stats(&self) -> LockStats {
        self.keeper.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_events_have_one_key() {
        let name = |source, scope, event_id| {
            LockKey {
                source,
                scope,
                event_id,
            }
            .name("p:")
        };
        assert_ne!(name("a", "b", "c"), name("ab", "", "c"));
        assert_ne!(name("a", "b", "c"), name("a", "", "bc"));
        let long = "x".repeat(255);
        assert_eq!(name("a", "", &long).len(), 2 + 64);
    }

    #[tokio::test]
    async fn options_that_cannot_work_are_refused_without_the_password() {
        let options = || LockOptions::new("redis://:fake-password@127.0.0.1:1");
        for (options, field) in [
            (
                LockOptions {
                    ttl: Duration::from_secs(5),
                    ..options()
                },
                "lock.ttl",
            ),
            (
                LockOptions {
                    timeout: Duration::from_secs(4),
                    ..options()
                },
                "lock.timeout",
            ),
            (
                LockOptions {
                    url: "http://:fake-password@x".into(),
                    ..options()
                },
                "lock.url",
            ),
        ] {
            let shown = format!("{options:?}");
            let error = Lock::start(options).unwrap_err();
            assert!(error.to_string().starts_with(field), "{error}");
            let shown = shown + &crate::chain(&error);
            assert!(!shown.contains("fake-password"), "{shown}");
        }
    }
}
