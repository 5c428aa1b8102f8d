//! What a process does of the work; a fleet may have processes for each part.

use anyhow::bail;
use clap::ValueEnum;
use sekali::Database;

use crate::config::Config;

/// A part of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything
    #[default]
    All,
    /// Receive webhooks and store them, for workers of other processes
    Ingest,
    /// Apply what is stored and remove what is old; no webhook is received
    Worker,
}

impl Role {
    /// Tells whether webhooks are received.
    pub(crate) fn receives(self) -> bool {
        self != Self::Worker
    }

    /// Tells whether events are applied.
    pub(crate) fn applies(self) -> bool {
        self != Self::Ingest
    }

    /// Refuses a part where there can be no other process for the rest.
    pub(crate) fn check(self, config: &Config) -> anyhow::Result<()> {
        if self == Self::Worker && config.worker.count == Some(0) {
            bail!("worker.count: a worker process without workers does nothing");
        }
        if self != Self::All && matches!(config.database()?, Database::Sqlite(_)) {
            bail!(
                "--role: one process serves a file of SQLite and does everything; roles need PostgreSQL or MySQL"
            );
        }
        Ok(())
    }
}
