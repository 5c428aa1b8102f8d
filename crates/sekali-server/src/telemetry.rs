//! Logs and metrics: what the engine reports, turned into lines and numbers.

mod lock;
mod logs;
mod metrics;

pub(crate) use logs::start_logs;
pub(crate) use metrics::Metrics;
