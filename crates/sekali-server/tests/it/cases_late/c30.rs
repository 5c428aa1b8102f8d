//! Half a character.

use crate::support::{ORDERS, Server, assert_lives, hook};

fn body(entity_id: &str, field: &str, text: &str) -> String {
    format!(r#"{{"entity_id":"{entity_id}","source_version":1,"{field}":"{text}"}}"#)
}

fn assert_stored_unchanged(server: &Server, id: &str, body: &str) {
    let stored = "select cast(p.body as text) from webhook_payloads p join webhook_inbox i using (seq) where i.event_id = ?";
    assert_eq!(server.column(stored, &[&id]), [body]);
}

#[test]
fn c30_lone_halves_beside_what_is_mapped_are_kept_as_they_came() {
    let server = Server::start(ORDERS);
    for (id, text) in [("e1", "\\ud800"), ("e2", "\\udc00\\ud800")] {
        let body = body(id, "note", text);
        assert_eq!(hook(id, &body).send(&server).says(), "202 accepted");
        server.wait_applied();
        assert_eq!(server.status(id), "processed", "{text}");
        assert_stored_unchanged(&server, id, &body);
        assert_eq!(hook(id, &body).send(&server).says(), "200 duplicate");
    }
}

#[test]
fn c30_a_good_pair_is_one_character() {
    let server = Server::start(ORDERS);
    let body = body("o-1", "status", "\\ud83d\\ude00");
    assert_eq!(hook("e", &body).send(&server).says(), "202 accepted");
    server.wait_applied();
    assert_eq!(server.column("select status from orders", &[]), ["😀"]);
    assert_stored_unchanged(&server, "e", &body);
}

#[test]
fn c30_half_a_character_in_the_entity_id_is_refused() {
    let server = Server::start(ORDERS);
    for half in ["\\ud800", "\\udc00\\ud800", "o-\\ude00-1"] {
        let reply = hook("e", body(half, "status", "paid")).send(&server);
        assert_eq!(
            reply.says(),
            "400 rejected_malformed field_invalid",
            "{half}"
        );
    }
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
    assert_lives(&server, "after");
}

#[test]
fn c30_half_a_character_in_a_column_is_refused_and_not_left_to_the_worker() {
    let server = Server::start(ORDERS);
    let reply = hook("e", body("o-1", "status", "\\ud800")).send(&server);
    assert_eq!(reply.says(), "400 rejected_malformed field_invalid");
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
}
