//! What can go wrong in the engine, named by what the caller can do about it.

use std::fmt::Write as _;

use crate::store::DbError;

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A queue is full: the caller has the event and may come back.
    #[error("the {queue} queue is full")]
    Busy {
        /// Which queue.
        queue: &'static str,
    },
    /// The engine is shutting down.
    #[error("the engine is shutting down")]
    Closed,
    /// Nothing is known under that name.
    #[error("no {what} is known as {name}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// What was asked for does not fit the present state.
    #[error("{problem}")]
    Conflict {
        /// What is in the way, as a sentence without its full stop.
        problem: String,
    },
    /// The database was not there, and waiting for it did not help.
    #[error("{problem}")]
    Unreachable {
        /// What was tried, as a sentence without its full stop.
        problem: String,
    },
    /// Another worker took the event over; this one must not commit.
    #[error("the lease on event {seq} was lost")]
    LostLease {
        /// The event's number in the inbox.
        seq: i64,
    },
    /// A setting cannot be used.
    #[error("{field}: {problem}")]
    Config {
        /// The setting's name as in the config file.
        field: String,
        /// What is wrong with it, as a sentence without its full stop.
        problem: String,
    },
    /// An effect of one event failed; `index` is its place in the batch.
    #[error("an effect of event {index} of the batch failed")]
    Effect {
        /// The event's place in the batch.
        index: usize,
        /// What failed.
        #[source]
        failure: crate::effect::Failure,
    },
    /// A write of several events failed; which of them it was shows when each is done alone.
    #[error("the effects of several events failed together")]
    Together {
        /// What failed.
        #[source]
        failure: crate::effect::Failure,
    },
    /// The store failed.
    #[error("could not {step}")]
    Store {
        /// What was being done.
        step: &'static str,
        /// What the database said.
        #[source]
        source: DbError,
    },
}

impl Error {
    /// Creates a configuration error.
    pub fn config(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Config {
            field: field.into(),
            problem: problem.into(),
        }
    }
}

/// Gives a database error the step it happened in.
pub(crate) trait Step<T> {
    /// Names what was being done; it reads after "could not".
    fn step(self, step: &'static str) -> Result<T>;
}

impl<T> Step<T> for Result<T, DbError> {
    fn step(self, step: &'static str) -> Result<T> {
        self.map_err(|source| Error::Store { step, source })
    }
}

/// Renders an error and its causes as `a: b: c`.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// Writes a span in seconds, for a person.
pub(crate) fn seconds(span: std::time::Duration) -> String {
    format!("{} s", span.as_secs_f64())
}
