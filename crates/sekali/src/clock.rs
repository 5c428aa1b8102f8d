//! Time, as a value that is handed in: the only file that asks the machine what time it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of the current time in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A clock that stands still until a test moves it.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// Creates a clock that stands at `at_ms`.
    pub fn manual(at_ms: i64) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(at_ms)))
    }

    /// Returns the current time in milliseconds UTC.
    pub fn now_ms(&self) -> i64 {
        match self {
            Self::System => system_now_ms(),
            Self::Manual(at_ms) => at_ms.load(Ordering::SeqCst),
        }
    }

    /// Moves a manual clock by `by_ms`; the machine's clock cannot be moved.
    pub fn advance(&self, by_ms: i64) {
        if let Self::Manual(at_ms) = self {
            at_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that everything else is handed"
)]
fn system_now_ms() -> i64 {
    // A machine set before 1970 is treated as standing at 1970: every signature is then refused, none is let through.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}
