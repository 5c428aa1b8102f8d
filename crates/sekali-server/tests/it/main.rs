//! Runs the real binary: starts it, sends it what senders send, and looks into its database.

#![expect(clippy::unwrap_used, reason = "a failed step of a test may end it")]
#![expect(
    clippy::print_stdout,
    reason = "figures and seeds of a run stand in its output"
)]

mod cases;
mod cases_fleet;
mod cases_late;
mod cli;
mod coverage;
mod graceful;
mod kill;
mod lock;
mod nodes;
mod observe;
mod plans;
mod providers;
mod proxies;
mod research;
mod rivals;
mod roles;
mod support;
mod trouble;
