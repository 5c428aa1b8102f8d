//! Effects that fail after the id was recorded.

use crate::support::{Server, eventually, hook, order, orders_with};

fn start(max_attempts: u32) -> Server {
    let retry =
        format!("retry = {{ base = \"10ms\", cap = \"20ms\", max_attempts = {max_attempts} }}");
    let server = Server::start(&orders_with(&retry));
    server.edit("alter table orders rename to hidden");
    server
}

fn attempts(server: &Server) -> i64 {
    server.count("select max(attempts) from webhook_inbox", &[])
}

#[test]
fn c13_a_resend_neither_repeats_nor_ends_what_is_tried_again() {
    let server = start(1000);
    let send = || hook("e", order("o-1", 1, "paid")).send(&server).says();
    assert_eq!(send(), "202 accepted");
    for attempt in 1..=3 {
        eventually("the attempt failed", || attempts(&server) >= attempt);
        assert_eq!(send(), "200 duplicate");
    }
    server.edit("alter table hidden rename to orders");
    server.wait_applied();
    assert_eq!(server.status("e"), "processed");
    assert_eq!(server.writes("e"), 1);
    assert_eq!(send(), "200 duplicate");
}

#[test]
fn c13_a_resend_does_not_hide_a_dead_letter() {
    let server = start(2);
    let send = || hook("e", order("o-1", 1, "paid")).send(&server).says();
    assert_eq!(send(), "202 accepted");
    eventually("it is given up", || server.status("e") == "dead_letter");
    assert_eq!(send(), "200 duplicate");
    assert_eq!(server.status("e"), "dead_letter", "a resend arms nothing");
    assert_eq!(attempts(&server), 2);
    assert_eq!(server.metric("sekali_inbox_dead_letters "), 1.0);
    assert_eq!(
        server.count(
            "select count(*) from webhook_deliveries where outcome = 'duplicate'",
            &[]
        ),
        1
    );
}
