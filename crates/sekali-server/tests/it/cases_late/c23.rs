//! An update before its create, and an update after the delete.

use crate::support::{ORDERS, Server, hook};

fn send(server: &Server, id: &str, event_type: &str, version: i64) {
    let body = format!(
        r#"{{"type":"order.{event_type}","entity_id":"o-1","source_version":{version},"status":"v{version}"}}"#
    );
    assert_eq!(hook(id, body).send(server).says(), "202 accepted");
    server.wait_applied();
}

fn state(server: &Server) -> String {
    server.column("select status from orders", &[]).join(",")
}

#[test]
fn c23_a_an_update_may_come_before_its_create() {
    let server = Server::start(ORDERS);
    send(&server, "update", "updated", 2);
    assert_eq!(server.status("update"), "processed");
    send(&server, "create", "created", 1);
    assert_eq!(server.status("create"), "ignored_out_of_order");
    assert_eq!(state(&server), "v2");
}

#[test]
fn c23_b_a_late_update_does_not_bring_a_deleted_entity_back() {
    let server = Server::start(ORDERS);
    send(&server, "create", "created", 1);
    send(&server, "delete", "deleted", 5);
    assert_eq!(server.status("delete"), "processed");
    send(&server, "update", "updated", 4);
    assert_eq!(server.status("update"), "ignored_out_of_order");
    assert_eq!(state(&server), "", "the row stays deleted");
    let tombstone = "select count(*) from webhook_entities where deleted = 1 and version = 5";
    assert_eq!(server.count(tombstone, &[]), 1);
}

#[test]
fn c23_c_a_newer_create_brings_a_deleted_entity_back() {
    let server = Server::start(ORDERS);
    send(&server, "create", "created", 1);
    send(&server, "delete", "deleted", 5);
    send(&server, "update", "updated", 4);
    send(&server, "again", "created", 6);
    assert_eq!(server.status("again"), "processed");
    assert_eq!(state(&server), "v6");
    let alive = "select count(*) from webhook_entities where deleted = 0 and version = 6";
    assert_eq!(server.count(alive, &[]), 1);
}
