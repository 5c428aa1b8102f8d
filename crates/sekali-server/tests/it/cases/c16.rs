//! How far an id counts.

use crate::support::{ORDERS, ORDERS_SECRET, Server, eventually, hook, now, order};

const CREATED: &str = r#"{"type":"order.created","entity_id":"o-1","source_version":1}"#;
const UPDATED: &str = r#"{"type":"order.updated","entity_id":"o-1","source_version":2}"#;

#[test]
fn c16_a_an_id_counts_within_its_source() {
    let second = ORDERS.replace("id = \"orders\"", "id = \"shop\"");
    let server = Server::start(&format!("{ORDERS}{second}"));
    let body = order("o-1", 1, "paid");
    for source in ["orders", "shop"] {
        let hook = hook("e", &body).to(source).secret(ORDERS_SECRET);
        assert_eq!(hook.send(&server).says(), "202 accepted", "{source}");
        assert_eq!(hook.send(&server).says(), "200 duplicate", "{source}");
    }
    assert_eq!(
        server.column("select source from webhook_inbox order by 1", &[]),
        ["orders", "shop"]
    );
}

#[test]
fn c16_b_another_event_under_a_known_id_is_inconsistent_and_counted() {
    let server = Server::start(ORDERS);
    assert_eq!(hook("e", CREATED).send(&server).says(), "202 accepted");
    assert_eq!(
        hook("e", UPDATED).send(&server).says(),
        "200 rejected_inconsistent_duplicate"
    );
    let line =
        "sekali_deliveries_total{source=\"orders\",outcome=\"rejected_inconsistent_duplicate\"}";
    assert_eq!(server.metric(line), 1.0);
    let warning = "WARN delivery rejected_inconsistent_duplicate";
    eventually("a warning is logged", || server.log().contains(warning));
    server.wait_applied();
    let version = "select cast(version as text) from orders";
    assert_eq!(
        server.column(version, &[]),
        ["1"],
        "only the first is applied"
    );
}

#[test]
fn c16_b_the_type_can_be_made_part_of_the_key() {
    let server =
        Server::start(&ORDERS.replace("[source.map]\n", "[source.map]\nscope = \"/type\"\n"));
    assert_eq!(hook("e", CREATED).send(&server).says(), "202 accepted");
    assert_eq!(hook("e", UPDATED).send(&server).says(), "202 accepted");
    assert_eq!(hook("e", UPDATED).send(&server).says(), "200 duplicate");
    server.wait_applied();
    assert_eq!(
        server.column("select cast(version as text) from orders", &[]),
        ["2"]
    );
}

#[test]
fn c16_c_two_ids_for_one_change_are_two_events_and_one_effect() {
    let server = Server::start(ORDERS);
    let body = order("o-1", 1, "paid");
    assert_eq!(
        hook("e1", &body).timestamp(now() - 1).send(&server).says(),
        "202 accepted"
    );
    server.wait_applied();
    assert_eq!(
        hook("e2", &body).timestamp(now()).send(&server).says(),
        "202 accepted"
    );
    server.wait_applied();
    assert_eq!((server.writes("e1"), server.writes("e2")), (1, 0));
    let sql =
        "select processing_status || ' ' || status_reason from webhook_inbox where event_id = 'e2'";
    assert_eq!(
        server.column(sql, &[]),
        ["ignored_out_of_order equal_version"]
    );
}
