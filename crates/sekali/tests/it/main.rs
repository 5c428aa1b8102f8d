//! The engine as its callers see it: signed bodies go in through verification and admission, tables come out.

#![expect(clippy::unwrap_used, reason = "a failed step of a test may end it")]

mod admission;
mod evidence;
mod faults;
mod fixtures;
mod groups;
mod hard_streams;
mod leases;
mod model;
mod mutations;
mod operators;
mod order;
mod permutations;
mod providers;
mod rings;

mod sqlite;
mod support;
mod usable;
mod waiting;
