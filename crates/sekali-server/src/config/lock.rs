//! The lock in Redis.

use sekali::lock::{Lock, LockOptions};
use sekali::source::Span;
use serde::Deserialize;

use super::environment;

/// The lock in Redis; without it nothing is locked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LockConfig {
    /// `redis://HOST`, or `env:NAME` for a variable that holds it.
    pub(crate) url: String,
    /// How long a lock lasts without being renewed (15s).
    pub(crate) ttl: Option<Span>,
    /// For how long it is renewed at most (5m).
    pub(crate) max_run: Option<Span>,
    /// How long a command may take before Redis counts as away (200ms).
    pub(crate) timeout: Option<Span>,
    /// What every key starts with (sekali:lock:).
    pub(crate) prefix: Option<String>,
}

impl LockConfig {
    /// Starts the lock.
    pub(crate) fn start(&self) -> anyhow::Result<Lock> {
        let url = match self.url.strip_prefix("env:") {
            Some(name) => environment(name)
                .ok_or_else(|| anyhow::anyhow!("lock.url: the variable {name} is not set"))?,
            None => self.url.clone(),
        };
        let usual = LockOptions::new(url);
        let options = LockOptions {
            ttl: self.ttl.map_or(usual.ttl, Into::into),
            max_run: self.max_run.map_or(usual.max_run, Into::into),
            timeout: self.timeout.map_or(usual.timeout, Into::into),
            prefix: self.prefix.clone().unwrap_or(usual.prefix.clone()),
            ..usual
        };
        Ok(Lock::start(options)?)
    }
}
