//! Log lines: what is normal is for `debug`, what somebody should look at is louder.

use std::io::IsTerminal as _;

use sekali::observer::{Received, Settled};
use sekali::{Outcome, Status};
use tracing_subscriber::EnvFilter;

use crate::config::{LogConfig, LogFormat};

/// Starts writing log lines to standard error.
pub(crate) fn start_logs(config: &LogConfig) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(config.level.as_deref().unwrap_or("info"))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second start in one process (a test) keeps the first.
    let _ = match config.format {
        LogFormat::Human => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Writes a line about a delivery; what is normal is for `debug`, what somebody should look at is louder.
pub(super) fn log_delivery(received: &Received<'_>) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                source = received.source,
                event_id = received.event_id,
                entity_id = received.entity_id,
                event_type = received.event_type,
                outcome = received.outcome.code(),
                reason = received.reason.map(|reason| reason.code()),
                "delivery {}",
                received.outcome
            )
        };
    }
    match received.outcome {
        Outcome::Accepted | Outcome::Duplicate => line!(debug),
        // Anybody can cause these; a flood of them must not fill the disk. The metrics and the delivery rows have them.
        Outcome::Signature | Outcome::Throttled | Outcome::TooLarge | Outcome::Timeout => {
            line!(debug);
        }
        Outcome::InconsistentDuplicate | Outcome::Replay => line!(warn),
        _ => line!(info),
    }
}

pub(super) fn log_attempt(settled: &Settled<'_>) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                source = settled.source,
                event_id = settled.event_id,
                entity_id = settled.entity_id,
                event_type = settled.event_type,
                attempt = settled.attempt,
                status = settled.status.code(),
                reason = settled.reason.map(|reason| reason.code()),
                error = settled.message,
                "event {}",
                settled.status
            )
        };
    }
    match settled.status {
        Status::DeadLetter => line!(error),
        Status::Failed => line!(warn),
        _ if settled.has_version_conflict || settled.is_version_regressed => line!(warn),
        _ => line!(debug),
    }
}
