//! What goes wrong while a receiver runs: take-overs, retries, clean-up, shutdown, clocks.

use std::time::{Duration, Instant};

use crate::support::{Connection, ORDERS, Server, Start, eventually, hook, now_ms, order};

/// Makes each write of an order take some tens of milliseconds.
const SLOW: &str = "
create trigger order_slow before insert on orders
begin
    select max(i) from (with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000) select i from n);
end;";

#[test]
fn rival_11_content_is_compared_while_the_first_is_in_progress() {
    let server = Server::start(&format!("[worker]\ncount = 0\n{ORDERS}"));
    assert_eq!(
        hook("e", order("o-1", 1, "paid")).send(&server).says(),
        "202 accepted"
    );
    server.edit("update webhook_inbox set processing_status = 'processing', lease_token = 'x', lease_until = 1 << 60, next_attempt_at = 1 << 60");
    assert_eq!(
        hook("e", order("o-1", 1, "paid")).send(&server).says(),
        "200 duplicate"
    );
    let other = hook("e", order("o-1", 1, "refunded")).send(&server);
    assert_eq!(other.says(), "200 rejected_inconsistent_duplicate");
}

#[test]
fn rival_12_work_that_goes_on_is_not_taken_for_dead() {
    let server = Server::start(&format!("[worker]\nlease = \"500ms\"\n{ORDERS}"));
    server.edit(SLOW);
    for number in 0..60 {
        let id = format!("e{number}");
        assert_eq!(
            hook(&id, order(&id, 1, "paid")).send(&server).says(),
            "202 accepted"
        );
    }
    server.wait_applied();
    assert_eq!(server.count("select count(*) from order_writes", &[]), 60);
    let expired = "select count(*) from webhook_attempts where reason = 'lease_expired'";
    assert_eq!(
        server.count(expired, &[]),
        0,
        "leases that were worked on ran out"
    );
}

#[test]
fn rival_14_a_redrive_is_not_stopped_as_a_duplicate() {
    let server = Server::start(ORDERS);
    server.edit(
        "create trigger refuse before insert on orders begin select raise(abort, 'not today'); end",
    );
    assert_eq!(
        hook("e", order("o-1", 1, "paid")).send(&server).says(),
        "202 accepted"
    );
    eventually("it is given up", || server.status("e") == "dead_letter");
    server.edit("drop trigger refuse");
    assert!(server.run(&["events", "redrive", "e"]).status.success());
    eventually("it is applied", || server.status("e") == "processed");
    assert_eq!(server.writes("e"), 1);
}

#[test]
fn rival_15_a_body_that_ends_early_is_never_stored_in_part() {
    let server = Server::start(&format!("[server]\nmax_body = \"1KiB\"\n{ORDERS}"));
    // The part is a whole event by itself and correctly signed: only its length gives it away.
    let part = hook("part", order("o-1", 1, "paid"));
    let content = part.content();
    let announced = format!("Content-Length: {}", content.len());
    let head = String::from_utf8(part.head()).unwrap();
    assert!(head.contains(&announced));
    let short = head.replace(&announced, "Content-Length: 500").into_bytes();
    let endless = part.clone().chunked();
    let chunks = endless.content();
    let without_end = &chunks[..chunks.len() - b"0\r\n\r\n".len()];
    for request in [
        [&short[..], &content].concat(),
        [&endless.head()[..], without_end].concat(),
    ] {
        let mut connection = Connection::open(server.address());
        connection.write(&request);
        connection.end_sending();
        let status = connection.read().map(|reply| reply.status);
        assert!(matches!(status, None | Some(400)), "{status:?}");
    }
    let padded = format!("{}{}", order("o-2", 1, "paid"), " ".repeat(1024));
    let over = hook("over", padded).send(&server);
    assert_eq!(over.says(), "413 rejected_too_large body_too_large");
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
    assert_eq!(
        part.send(&server).says(),
        "202 accepted",
        "whole, it counts"
    );
}

#[test]
fn rival_21_audit_rows_and_payloads_end_with_their_retention() {
    let short = "[retention]\npayloads = \"1s\"\naudit = \"1s\"\nkeys = \"400d\"\n";
    let server = Server::start(&format!("{short}{ORDERS}"));
    for id in ["a", "b", "c"] {
        assert_eq!(
            hook(id, order(id, 1, "paid")).send(&server).says(),
            "202 accepted"
        );
    }
    server.wait_applied();
    let rows = "select (select count(*) from webhook_payloads) + (select count(*) from webhook_attempts) \
        + (select count(*) from webhook_deliveries)";
    eventually("everything but the keys is gone", || {
        assert!(server.run(&["prune"]).status.success());
        server.count(rows, &[]) == 0
    });
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 3);
    assert_eq!(
        hook("a", order("a", 1, "paid")).send(&server).says(),
        "200 duplicate"
    );
}

#[test]
fn rival_23_clean_up_keeps_nobody_waiting() {
    let short = "[retention]\npayloads = \"1s\"\naudit = \"1s\"\nkeys = \"400d\"\n";
    let server = Server::start(&format!("{short}{ORDERS}"));
    let mut connection = Connection::open(server.address());
    let mut send = |number: usize| {
        let id = format!("e{number}");
        let started = Instant::now();
        let reply = hook(&id, order(&id, 1, "paid")).send_on(&mut connection);
        assert_eq!(reply.expect("an answer").says(), "202 accepted");
        started.elapsed()
    };
    for number in 0..1500 {
        send(number);
    }
    std::thread::sleep(Duration::from_millis(1100));
    let longest = std::thread::scope(|scope| {
        let prune = scope.spawn(|| server.run(&["prune", "--json"]));
        let longest = (1500..2000).map(&mut send).max();
        assert!(prune.join().unwrap().status.success());
        longest.unwrap()
    });
    assert!(
        longest < Duration::from_secs(1),
        "an answer took {longest:?}"
    );
    assert!(
        server.count("select count(*) from webhook_payloads", &[]) < 2000,
        "nothing was removed"
    );
}

#[test]
fn rival_26_a_stop_in_the_middle_of_a_batch_repeats_nothing() {
    let mut server = Server::start(ORDERS);
    server.edit(SLOW);
    for number in 0..100 {
        let id = format!("e{number}");
        assert_eq!(
            hook(&id, order(&id, 1, "paid")).send(&server).says(),
            "202 accepted"
        );
    }
    server.terminate();
    assert!(server.wait_ended().success());
    let left = "select count(*) from webhook_inbox where processing_status = 'received'";
    assert!(
        server.count(left, &[]) > 0,
        "the batch was done before the stop"
    );
    server.restart();
    server.wait_applied();
    assert_eq!(server.count("select count(*) from order_writes", &[]), 100);
    assert_eq!(
        server.count("select max(attempts) from webhook_inbox", &[]),
        1,
        "leases were not given back"
    );
}

#[test]
fn rival_27_workers_side_by_side_keep_the_order_of_an_entity() {
    let server = Server::start(&format!("[worker]\ncount = 4\n{ORDERS}"));
    let mut versions: Vec<i64> = (1..=200).collect();
    fastrand::Rng::with_seed(3).shuffle(&mut versions);
    let mut connection = Connection::open(server.address());
    for version in versions {
        let reply = hook(
            &format!("e{version}"),
            order("one", version, &format!("s{version}")),
        )
        .send_on(&mut connection);
        assert_eq!(reply.expect("an answer").says(), "202 accepted");
    }
    server.wait_applied();
    let stands = "select status || ' ' || version from orders";
    assert_eq!(server.column(stands, &[]), ["s200 200"]);
}

#[test]
fn rival_30_no_time_zone_but_utc_counts() {
    for zone in ["Pacific/Kiritimati", "America/Anchorage"] {
        let server = Start::new(ORDERS).env("TZ", zone).serve();
        let delivery = hook("e", order("o-1", 1, "paid"));
        assert_eq!(delivery.send(&server).says(), "202 accepted");
        let received = server.count("select received_at from webhook_inbox", &[]);
        assert!((now_ms() - received).abs() < 10_000, "{zone}: {received}");
        let readable = server.column("select received_at from sekali_events", &[]);
        assert!(readable[0].ends_with('Z'), "{readable:?}");
    }
}
