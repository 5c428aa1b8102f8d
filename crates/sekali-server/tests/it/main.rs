//! Runs the real binary: starts it, sends it what senders send, and looks into its database.

mod cases;
mod cases_late;
mod coverage;
mod graceful;
mod kill;
mod rivals;
mod support;
