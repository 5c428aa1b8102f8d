//! `entities`: where one stands, its gaps, and a new beginning for it.

use super::beside;
use crate::support::{ORDERS, Server, hook, order};

fn deliver(server: &Server, id: &str, version: i64) {
    let reply = hook(id, order("o-1", version, id)).send(server);
    assert_eq!(reply.says(), "202 accepted");
    server.wait_applied();
}

#[test]
fn show_tells_where_an_entity_stands_and_what_is_missing() {
    let server = Server::start(ORDERS);
    deliver(&server, "e1", 1);
    deliver(&server, "e5", 5);
    let show = ["entities", "show", "orders", "", "o-1"];
    let entity = beside(&server, &[&show[..], &["--json"]].concat()).json();
    assert_eq!(entity["version"], 5);
    assert_eq!(entity["last_event_id"], "e5");
    assert_eq!(entity["deleted"], false);
    assert_eq!(entity["events"].as_array().unwrap().len(), 2);
    assert_eq!(entity["gaps"][0]["from"], 2, "{entity}");
    assert_eq!(entity["gaps"][0]["to"], 4, "{entity}");
    let told = beside(&server, &show);
    told.assert(0, "stands at   version 5");
    told.assert(0, "versions 2 to 4");
    beside(&server, &["entities", "show", "orders", "", "o-2"]).assert(3, "o-2");
    beside(&server, &["entities", "show", "orders"]).assert(2, "");
}

#[test]
fn reset_lets_a_restored_producer_begin_again() {
    let server = Server::start(ORDERS);
    deliver(&server, "before", 9);
    deliver(&server, "ignored", 1);
    assert_eq!(server.status("ignored"), "ignored_out_of_order");
    let reset = ["entities", "reset", "orders", "", "o-1"];
    beside(&server, &reset).assert(1, "--yes");
    beside(&server, &[&reset[..], &["--yes"]].concat()).assert(0, "stands nowhere");
    deliver(&server, "after", 2);
    assert_eq!(server.status("after"), "processed");
    assert_eq!(server.column("select status from orders", &[]), ["after"]);
    let audited = "select count(*) from webhook_attempts where reason = 'entity_reset'";
    assert_eq!(server.count(audited, &[]), 1);
    let unknown = ["entities", "reset", "orders", "", "o-2", "--yes"];
    beside(&server, &unknown).assert(3, "o-2");
}
