//! The limit on bodies, and senders that ask before they send one.

use std::time::{Duration, Instant};

use crate::support::{Connection, Hook, ORDERS, Server, assert_lives, hook};

const LIMIT: usize = 5 << 20;

/// Makes a delivery whose body has exactly so many bytes.
fn sized(id: &str, bytes: usize) -> Hook {
    let head = format!(r#"{{"entity_id":"{id}","source_version":1,"pad":""#);
    let pad = "x".repeat(bytes - head.len() - 2);
    hook(id, format!("{head}{pad}\"}}"))
}

#[test]
fn c09_bodies_are_accepted_up_to_the_limit() {
    let server = Server::start(ORDERS);
    for bytes in [(2 << 20) + 1, LIMIT - 1, LIMIT] {
        let plain = sized(&format!("plain-{bytes}"), bytes);
        assert_eq!(plain.send(&server).says(), "202 accepted", "{bytes}");
        let chunked = sized(&format!("chunked-{bytes}"), bytes).chunked();
        assert_eq!(
            chunked.send(&server).says(),
            "202 accepted",
            "{bytes} in chunks"
        );
        let sql = "select count(*) from webhook_payloads where length(body) = ?";
        assert_eq!(server.count(sql, &[&(bytes as i64)]), 2, "stored whole");
    }
}

#[test]
fn c09_one_byte_more_is_too_much_and_the_sender_reads_so() {
    let server = Server::start(ORDERS);
    // This client writes everything before it reads.
    let plain = sized("plain", LIMIT + 1).send(&server);
    assert_eq!(plain.says(), "413 rejected_too_large body_too_large");
    let chunked = sized("chunked", LIMIT + 1).chunked().send(&server);
    assert_eq!(chunked.says(), "413 rejected_too_large body_too_large");
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
    assert_lives(&server, "after");
}

#[test]
fn c09_a_sender_that_asks_first_is_told_to_go_on() {
    let server = Server::start(ORDERS);
    let hook = sized("e", 1000).header("Expect", "100-continue");
    let mut connection = Connection::open(server.address());
    let started = Instant::now();
    connection.write(&hook.head());
    assert_eq!(connection.read().unwrap().status, 100);
    connection.write(&hook.content());
    assert_eq!(connection.read().unwrap().says(), "202 accepted");
    // A client that is not told waits a second by itself.
    assert!(
        started.elapsed() < Duration::from_millis(900),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn c09_a_sender_that_asks_with_too_much_is_answered_before_the_body() {
    let server = Server::start(ORDERS);
    let hook = sized("e", LIMIT + 1).header("Expect", "100-continue");
    let mut connection = Connection::open(server.address());
    connection.write(&hook.head());
    let reply = connection.read().unwrap();
    assert_eq!(reply.says(), "413 rejected_too_large body_too_large");
    assert_lives(&server, "after");
}
