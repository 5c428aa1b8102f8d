//! What is answered the second time.

use crate::support::{Connection, ORDERS, Server, at_once, eventually, hook, now, order};

#[test]
fn c14_a_an_answer_that_the_store_is_down_is_not_remembered() {
    let server = Server::start(&format!("[server]\nanswer_within = \"200ms\"\n{ORDERS}"));
    let hook = hook("e", order("o-1", 1, "paid"));
    let lock = server.lock();
    let reply = hook.send(&server);
    assert_eq!(reply.says(), "503 unavailable store_unavailable");
    assert!(reply.header("retry-after").is_some());
    drop(lock);
    // What waited may have been stored after all, and is then known; either way it is welcome and applied once.
    eventually("the retry is taken", || {
        let says = hook.send(&server).says();
        let is_taken = ["202 accepted", "200 duplicate"].contains(&says.as_str());
        assert!(is_taken || says == reply.says(), "{says}");
        is_taken
    });
    server.wait_applied();
    assert_eq!(server.writes("e"), 1);
}

#[test]
fn c14_b_a_resend_with_a_new_time_and_signature_is_a_duplicate() {
    let server = Server::start(ORDERS);
    let body = order("o-1", 1, "paid");
    assert_eq!(hook("e", &body).send(&server).says(), "202 accepted");
    for earlier in 1..=3 {
        let reply = hook("e", &body).timestamp(now() - earlier).send(&server);
        assert_eq!(reply.says(), "200 duplicate");
        assert_eq!(reply.json()["event_id"], "e");
    }
    server.wait_applied();
    assert_eq!(server.writes("e"), 1);
}

#[test]
fn c14_c_a_resend_while_the_first_is_being_stored_has_no_second_effect() {
    let server = Server::start(ORDERS);
    let hook = hook("e", order("o-1", 1, "paid"));
    let lock = server.lock();
    let mut connections: Vec<_> = (0..2).map(|_| Connection::open(server.address())).collect();
    for connection in &mut connections {
        connection.write(&[hook.head(), hook.content()].concat());
    }
    drop(lock);
    let mut says: Vec<_> = connections
        .iter_mut()
        .map(|connection| connection.read().unwrap().says())
        .collect();
    says.sort();
    assert_eq!(says, ["200 duplicate", "202 accepted"]);
    server.wait_applied();
    assert_eq!(server.writes("e"), 1);
}

#[test]
fn c14_d_a_resend_after_a_kill_that_swallowed_the_answer_is_a_duplicate() {
    let mut server = Server::start(ORDERS);
    let hook = hook("e", order("o-1", 1, "paid"));
    let mut connection = Connection::open(server.address());
    connection.write(&[hook.head(), hook.content()].concat());
    eventually("it is stored", || !server.status("e").is_empty());
    server.restart();
    assert_eq!(hook.send(&server).says(), "200 duplicate");
    server.wait_applied();
    assert_eq!(server.writes("e"), 1);
}

#[test]
fn c14_e_what_was_not_needed_is_never_an_error() {
    let server = Server::start(ORDERS);
    assert_eq!(
        hook("new", order("o-1", 9, "paid")).send(&server).says(),
        "202 accepted"
    );
    server.wait_applied();
    let stale = at_once(10, |number| {
        let id = format!("stale-{number}");
        hook(&id, order("o-1", number as i64, "open"))
            .send(&server)
            .says()
    });
    assert_eq!(stale, ["202 accepted"; 10]);
    for _ in 0..10 {
        let reply = hook("new", order("o-1", 9, "paid")).send(&server);
        assert_eq!(reply.says(), "200 duplicate");
    }
    server.wait_applied();
    assert_eq!(server.column("select status from orders", &[]), ["paid"]);
    let ignored =
        "select count(*) from webhook_inbox where processing_status = 'ignored_out_of_order'";
    assert_eq!(server.count(ignored, &[]), 10);
}
