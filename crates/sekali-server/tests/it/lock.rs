//! The server with a lock in Redis: what Redis does, and that deliveries do not depend on it.

use sekali_testkit::redis::Redis;

use crate::support::{ORDERS, Server, Start, eventually, hook, order};

fn with_lock(url: &str, more: &str) -> String {
    // Keys at the start of a line are those of the store, which a test's start replaces.
    format!("{ORDERS}\n[lock]\n  url = \"{url}\"\n{more}\n")
}

fn send(server: &Server, id: &str) -> String {
    hook(id, order(id, 1, "paid")).send(server).says()
}

fn is_up(server: &Server) -> bool {
    server.metric("sekali_lock_up ") == 1.0
}

#[test]
fn a_redis_that_comes_and_goes_is_seen_and_fails_no_delivery() {
    let redis = Redis::start(&[]);
    let server = Start::new(&with_lock("env:REDIS_URL", ""))
        .env("REDIS_URL", &redis.url())
        .serve();
    eventually("Redis is seen", || is_up(&server));
    assert_eq!(server.metric("sekali_lock_total{outcome=\"held\"} "), 0.0);
    assert_eq!(send(&server, "a"), "202 accepted");
    let (folder, port) = redis.kill();
    eventually("it is seen to be away", || !is_up(&server));
    assert_eq!(send(&server, "b"), "202 accepted");
    assert_eq!(server.internal("/readyz").status, 200);
    assert!(
        server.log().contains("Redis cannot be used"),
        "{}",
        server.log()
    );
    let _redis = Redis::resume(folder, port, &[]);
    eventually("it is seen again", || is_up(&server));
    assert_eq!(send(&server, "b"), "200 duplicate");
    server.wait_applied();
    let log = server.log();
    assert_eq!(log.matches("Redis cannot be used").count(), 1, "{log}");
    assert_eq!(log.matches("Redis is back").count(), 1, "{log}");
}

#[test]
fn a_redis_that_is_not_there_does_not_hold_the_start_up() {
    let url = format!(
        "redis://:fake-password@127.0.0.1:{}",
        sekali_testkit::free_port()
    );
    let server = Server::start(&with_lock(&url, ""));
    assert_eq!(send(&server, "a"), "202 accepted");
    eventually("it is told", || {
        server.log().contains("Redis cannot be used")
    });
    assert!(!is_up(&server));
    assert!(!server.log().contains("fake-password"), "{}", server.log());
}

#[test]
fn without_a_lock_there_are_no_numbers_of_one() {
    let server = Server::start(ORDERS);
    assert!(!server.internal("/metrics").text().contains("sekali_lock"));
}

#[test]
fn a_lock_that_cannot_work_is_refused_at_the_start() {
    let url = "redis://127.0.0.1:6379";
    for (url, more, says) in [
        (url, "ttl = \"5s\"", "lock.ttl: must lie from 10s to 30s"),
        (url, "timeout = \"10s\"", "lock.timeout"),
        ("memcached://x", "", "lock.url: write it like redis://"),
        (
            "env:NOT_THERE",
            "",
            "lock.url: the variable NOT_THERE is not set",
        ),
    ] {
        let refusal = Start::new(&with_lock(url, more)).refusal();
        assert!(refusal.contains(says), "{refusal}");
    }
}
