//! One instant in several spellings.

use super::c20::by_time;
use crate::support::{Server, hook};

/// The earlier time, the later time; equal ones are told apart by the id, and the second has the higher.
const PAIRS: [(&str, &str); 8] = [
    ("2026-01-01T00:30:00+03:00", "2026-01-01T00:00:00Z"),
    ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.1Z"),
    ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00+00:00"),
    ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00Z"),
    ("2026-01-01T00:00:00.10Z", "2026-01-01T00:00:00.1Z"),
    ("2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.10Z"),
    ("2026-01-01T00:00:00Z", "2026-01-01t00:00:01z"),
    ("2026-01-01 00:00:00Z", "2026-01-01T00:00:00.000000001Z"),
];

fn event(entity_id: &str, occurred_at: &str, status: &str) -> String {
    format!(r#"{{"entity_id":"{entity_id}","occurred_at":"{occurred_at}","status":"{status}"}}"#)
}

#[test]
fn c21_times_are_compared_as_instants_in_both_orders_of_arrival() {
    let server = Server::start(&by_time());
    for (number, (earlier, later)) in PAIRS.iter().enumerate() {
        for is_turned in [false, true] {
            let entity = format!("o{number}-{is_turned}");
            // An id that is lower for the later time shows that the time counts before it.
            let is_equal = (2..6).contains(&number);
            let (low, high) = (format!("{entity}-a"), format!("{entity}-b"));
            let ids = if is_equal { [low, high] } else { [high, low] };
            let [first, second] = ids;
            let mut events = [(first, earlier, "early"), (second, later, "late")];
            if is_turned {
                events.reverse();
            }
            for (id, at, status) in events {
                let reply = hook(&id, event(&entity, at, status)).send(&server);
                assert_eq!(reply.says(), "202 accepted", "{at}");
                server.wait_applied();
            }
            let state = "select status from orders where entity_id = ?";
            assert_eq!(
                server.column(state, &[&entity]),
                ["late"],
                "{earlier} {later}"
            );
        }
    }
}

#[test]
fn c21_a_time_without_offset_is_refused_and_never_taken_as_local() {
    let server = Server::start(&by_time());
    for at in [
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00",
        "2026-01-01",
        "1767225600",
    ] {
        let reply = hook("e", event("o-1", at, "paid")).send(&server);
        assert_eq!(
            reply.says(),
            "400 rejected_malformed occurred_at_invalid",
            "{at}"
        );
    }
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
}
