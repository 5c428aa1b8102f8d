//! A running server, the requests that go to it, and the sources it is configured with.
//!
//! `start` lays the folder out and starts the process, `server` is that process, `hook` signs and sends, `connection`
//! speaks HTTP byte by byte so that a test can also speak it wrongly, `config` holds the sources that most tests use,
//! `database` is a server that a test may stop, and `counted` the source that such tests use.

use std::time::{Duration, Instant};

mod config;
mod connection;
pub(crate) mod counted;
mod database;
mod hook;
mod server;
mod start;

pub(crate) use config::{
    ORDERS, ORDERS_SECRET, RESEARCH, RESEARCH_SECRET, SCHEMA, order, orders_with,
};
pub(crate) use connection::{Connection, Reply};
pub(crate) use database::{Database, Hold, Kind, on_both};
pub(crate) use hook::{Hook, hook, research_hook};
pub(crate) use server::Server;
pub(crate) use start::Start;

/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the present time in milliseconds UTC.
pub(crate) fn now_ms() -> i64 {
    sekali::Clock::System.now_ms()
}

/// Returns the present time in seconds UTC.
pub(crate) fn now() -> i64 {
    now_ms() / 1000
}

/// Waits until a condition holds; a test fails with `what` where it never does.
pub(crate) fn eventually(what: &str, holds: impl FnMut() -> bool) {
    within(PATIENCE, what, holds);
}

/// Waits until a condition holds, at most so long; returns how long it took.
pub(crate) fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < limit, "not true in {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    began.elapsed()
}

/// Shows that a server still takes events: a bad one before must not have harmed it.
pub(crate) fn assert_lives(server: &Server, id: &str) {
    let reply = hook(id, order(id, 1, "paid")).send(server);
    assert_eq!(reply.says(), "202 accepted", "after bad input");
}

/// Runs a function on many threads at once and returns what they return, in their order.
pub(crate) fn at_once<T: Send>(count: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = std::sync::Barrier::new(count);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let (start, run) = (&start, &run);
                scope.spawn(move || {
                    start.wait();
                    run(number)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}
