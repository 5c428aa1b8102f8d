//! What is known about a connection that leads to a server, beside the driver's own.

use std::sync::atomic::AtomicI64;
use std::time::Instant;

use super::DbError;
use crate::clock::Clock;

/// What is known about a connection that leads to a server.
#[derive(Clone, Copy, Debug)]
pub struct Wire<'c> {
    /// The clock where a test moves it; the database's own otherwise.
    pub(super) clock: &'c Clock,
    /// Until when a statement may run, where that is limited.
    pub(super) deadline: Option<Instant>,
    /// What the server calls the session, once it was asked; 0 before.
    pub(super) backend: &'c AtomicI64,
}

impl<'c> Wire<'c> {
    pub(in crate::store) fn new(clock: &'c Clock, backend: &'c AtomicI64) -> Self {
        Self {
            clock,
            deadline: None,
            backend,
        }
    }

    /// Waits for an answer until the deadline. A statement that is given up leaves its connection unusable.
    pub(in crate::store) async fn within<T>(
        self,
        answer: impl Future<Output = Result<T, DbError>> + Send,
    ) -> Result<T, DbError> {
        let Some(deadline) = self.deadline else {
            return answer.await;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match tokio::time::timeout(left, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(DbError::TooSlow(left)),
        }
    }
}
