//! Memory outlives the time window and the payloads.

use crate::support::{ORDERS, Server, Start, eventually, hook, now, order, orders_with};

#[test]
fn c19_a_a_known_event_is_a_duplicate_long_after_its_window() {
    let server = Server::start(ORDERS);
    let body = order("o-1", 1, "paid");
    assert_eq!(hook("e", &body).send(&server).says(), "202 accepted");
    for timestamp in [now() + 290, now() - 290, now() - 310, now() - 600, 1] {
        let again = hook("e", &body).timestamp(timestamp).send(&server);
        assert_eq!(again.says(), "200 duplicate", "{timestamp}");
    }
    server.wait_applied();
    assert_eq!(server.writes("e"), 1);
    let late = hook("new", &body).timestamp(now() - 310).send(&server);
    assert_eq!(late.says(), "400 rejected_timestamp timestamp_expired");
    let other = order("o-1", 2, "void");
    let late = hook("e", other).timestamp(now() - 310).send(&server);
    assert_eq!(late.says(), "400 rejected_timestamp timestamp_expired");
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 1);
    let variants = "select count(*) from webhook_variants";
    assert_eq!(server.count(variants, &[]), 0, "expired, so no evidence");
}

#[test]
fn c19_a_strict_expiry_refuses_known_events_outside_the_window_too() {
    let server = Server::start(&orders_with("strict_expiry = true"));
    let body = order("o-1", 1, "paid");
    let send = |timestamp| hook("e", &body).timestamp(timestamp).send(&server).says();
    assert_eq!(send(now() + 290), "202 accepted");
    assert_eq!(send(now() - 290), "200 duplicate");
    assert_eq!(
        send(now() - 310),
        "400 rejected_timestamp timestamp_expired"
    );
    server.wait_applied();
    assert_eq!(server.writes("e"), 1);
}

#[test]
fn c19_b_a_key_outlives_its_payload() {
    let retention = "[retention]\npayloads = \"1ms\"\naudit = \"1ms\"\nkeys = \"11m\"\n";
    let server = Server::start(&format!("{ORDERS}\n{retention}"));
    let body = order("o-1", 1, "paid");
    assert_eq!(hook("e", &body).send(&server).says(), "202 accepted");
    server.wait_applied();
    let payloads = "select count(*) from webhook_payloads";
    eventually("the payload is pruned", || {
        let pruned = server.run(&["prune"]);
        assert!(pruned.status.success(), "{pruned:?}");
        server.count(payloads, &[]) == 0
    });
    assert_eq!(hook("e", &body).send(&server).says(), "200 duplicate");
    // Other bytes cannot be compared with a body that is gone, and their fingerprint still tells.
    let spelled = body.replace("\":", "\": ");
    assert_eq!(hook("e", spelled).send(&server).says(), "200 duplicate");
    let other = hook("e", order("o-1", 2, "void")).send(&server);
    assert_eq!(other.outcome(), "rejected_inconsistent_duplicate");
    server.wait_applied();
    assert_eq!(server.writes("e"), 1);
}

#[test]
fn c19_c_keys_that_live_shorter_than_two_windows_are_refused_at_start() {
    for (keys, is_refused) in [("9m", true), ("10m", false)] {
        let retention =
            format!("[retention]\npayloads = \"1m\"\naudit = \"1m\"\nkeys = \"{keys}\"\n");
        let start = Start::new(&format!("{ORDERS}\n{retention}"));
        if is_refused {
            let said = start.refusal();
            assert!(said.contains("twice the tolerance"), "{said}");
        } else {
            start.serve();
        }
    }
}
