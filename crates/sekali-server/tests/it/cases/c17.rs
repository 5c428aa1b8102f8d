//! Missing ids and long ones.

use crate::support::{ORDERS, Server, hook, order};

fn answer(server: &Server, id: &str) -> String {
    hook(id, order("o-1", 1, "paid")).send(server).says()
}

#[test]
fn c17_a_delivery_without_an_id_is_refused() {
    let server = Server::start(ORDERS);
    for _ in 0..2 {
        let missing = hook("e", order("o-1", 1, "paid")).without("X-Webhook-Id");
        assert_eq!(
            missing.send(&server).says(),
            "400 rejected_malformed event_id_missing"
        );
        for id in ["", "   ", " \t "] {
            assert_eq!(
                answer(&server, id),
                "400 rejected_malformed event_id_missing",
                "{id:?}"
            );
        }
    }
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
}

#[test]
fn c17_ids_have_a_limit_and_are_never_cut() {
    let server = Server::start(ORDERS);
    let longest = "i".repeat(255);
    assert_eq!(answer(&server, &longest), "202 accepted");
    assert_eq!(answer(&server, &longest), "200 duplicate");
    for len in [256, 300, 3000, 7000] {
        let says = answer(&server, &"i".repeat(len));
        assert_eq!(says, "400 rejected_malformed event_id_too_long", "{len}");
    }
    for end in ["a", "b"] {
        let id = format!("{longest}{}", end.repeat(45));
        assert_eq!(
            answer(&server, &id),
            "400 rejected_malformed event_id_too_long"
        );
    }
    assert_eq!(
        server.column("select event_id from webhook_inbox", &[]),
        [longest]
    );
}
