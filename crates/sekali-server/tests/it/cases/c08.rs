//! Correctly signed, and not a usable event.

use crate::support::{ORDERS, Server, assert_lives, eventually, hook, order, orders_with};

const UNUSABLE: [(&[u8], &str); 12] = [
    (b"", "body_not_json"),
    (b"   ", "body_not_json"),
    (b"null", "entity_missing"),
    (b"\"x\"", "entity_missing"),
    (b"[]", "entity_missing"),
    (
        b"[{\"entity_id\":\"a\"},{\"entity_id\":\"b\"}]",
        "entity_missing",
    ),
    (b"{\"entity_id\":\"o-1\",\"source_ver", "body_not_json"),
    (
        b"{\"entity_id\":\"o-1\",\"source_version\":1,\"t\":\"\xff\"}",
        "body_not_json",
    ),
    (b"payload=%7B%22a%22%3A1%7D", "body_not_json"),
    (b"{\"entity_id\":\"o-1\"}", "position_missing"),
    (
        b"{\"entity_id\":\"o-1\",\"source_version\":1}{}",
        "body_not_json",
    ),
    (
        b"{\"entity_id\":\"o-1\",\"entity_id\":\"o-2\",\"source_version\":1}",
        "duplicate_key",
    ),
];

#[test]
fn c08_unusable_deliveries_are_refused_the_same_way_each_time() {
    let server = Server::start(ORDERS);
    for (number, (body, reason)) in UNUSABLE.into_iter().enumerate() {
        let id = format!("evt_{number}");
        for _ in 0..2 {
            let says = hook(&id, body).send(&server).says();
            let text = String::from_utf8_lossy(body);
            assert_eq!(says, format!("400 rejected_malformed {reason}"), "{text}");
        }
    }
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
    assert_lives(&server, "after");
    server.wait_applied();
    assert_eq!(
        server.column("select entity_id from orders", &[]),
        ["after"]
    );
}

#[test]
fn c08_they_are_visible_apart_from_unsigned_ones() {
    let server = Server::start(ORDERS);
    for (body, _) in UNUSABLE {
        hook("unusable", body).send(&server);
    }
    hook("unsigned", order("o-1", 1, "paid"))
        .secret("another-secret")
        .send(&server);
    let metric = |outcome: &str| {
        let line = format!("sekali_deliveries_total{{source=\"orders\",outcome=\"{outcome}\"}}");
        server.metric(&line)
    };
    assert_eq!(metric("rejected_malformed"), UNUSABLE.len() as f64);
    assert_eq!(metric("rejected_signature"), 1.0);
    for reason in ["body_not_json", "entity_missing", "position_missing"] {
        eventually(reason, || server.log().contains(reason));
    }
    // What anybody could cause has no line at this level: a flood of it must not fill the disk.
    assert!(!server.log().contains("signature_wrong"));
    let valid = "select count(*) from webhook_deliveries where outcome = 'rejected_malformed' and signature_valid = 1";
    eventually("the rows are written", || {
        server.count(valid, &[]) == UNUSABLE.len() as i64
    });
}

#[test]
fn c08_a_source_may_store_them_instead_with_the_reason() {
    let server = Server::start(&orders_with("unusable = \"store\""));
    for (number, (body, reason)) in UNUSABLE.into_iter().enumerate() {
        let id = format!("evt_{number}");
        let says = format!("202 accepted {reason}");
        assert_eq!(hook(&id, body).send(&server).says(), says);
        let sql = "select processing_status || ' ' || status_reason from webhook_inbox where event_id = ?";
        assert_eq!(
            server.column(sql, &[&id]),
            [format!("dead_letter {reason}")]
        );
    }
    let bodies = "select count(*) from webhook_payloads";
    assert_eq!(server.count(bodies, &[]), UNUSABLE.len() as i64);
    assert_eq!(server.count("select count(*) from orders", &[]), 0);
}
