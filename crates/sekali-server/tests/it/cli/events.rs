//! `events`: lists, stories, and another try.

use serde_json::Value;

use super::beside;
use crate::support::{ORDERS, Server, eventually, hook, order, orders_with};

fn deliver(server: &Server, id: &str, entity_id: &str, version: i64) {
    let reply = hook(id, order(entity_id, version, "paid")).send(server);
    assert!(reply.status < 300, "{}", reply.text());
    server.wait_applied();
}

fn ids(listed: &Value) -> Vec<&str> {
    let rows = listed.as_array().unwrap().iter();
    rows.map(|row| row["event_id"].as_str().unwrap()).collect()
}

#[test]
fn list_filters_and_pages() {
    let server = Server::start(ORDERS);
    for number in 1..=5 {
        deliver(&server, &format!("e{number}"), "o-1", 6 - number);
    }
    deliver(&server, "other", "o-2", 1);
    let list = |more: &[&str]| {
        let ran = beside(&server, &[&["events", "list", "--json"], more].concat());
        let listed = ran.json();
        ids(&listed).join(" ")
    };
    assert_eq!(list(&[]), "other e5 e4 e3 e2 e1");
    assert_eq!(list(&["--limit", "2"]), "other e5");
    assert_eq!(list(&["--before", "3"]), "e2 e1");
    assert_eq!(list(&["--id", "e"]), "e5 e4 e3 e2 e1");
    assert_eq!(list(&["--entity", "o-2"]), "other");
    assert_eq!(list(&["--status", "ignored_out_of_order"]), "e5 e4 e3 e2");
    assert_eq!(
        list(&["--type", "unknown", "--source", "orders"]),
        "other e5 e4 e3 e2 e1"
    );
    assert_eq!(list(&["--source", "nobody"]), "");
    let table = beside(&server, &["events", "list", "--limit", "1"]);
    table.assert(0, "EVENT");
    table.assert(0, "there may be more: --before 6");
}

#[test]
fn show_tells_the_whole_story() {
    let server = Server::start(ORDERS);
    deliver(&server, "e1", "o-1", 1);
    deliver(&server, "e1", "o-1", 1);
    deliver(&server, "e1", "o-1", 2);
    deliver(&server, "e2", "o-1", 5);
    let story = beside(&server, &["events", "show", "e1", "--json"]).json();
    let outcomes: Vec<_> = story["deliveries"].as_array().unwrap().iter().collect();
    let outcomes: Vec<_> = outcomes
        .iter()
        .map(|row| row["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        outcomes,
        ["accepted", "duplicate", "rejected_inconsistent_duplicate"]
    );
    assert_eq!(story["event"]["status"], "processed");
    assert_eq!(story["variants"].as_array().unwrap().len(), 1);
    assert_eq!(story["attempts"][0]["decisions"][0]["decision"], "applied");
    assert_eq!(story["entity"]["version"], 5);
    assert!(
        story.get("body").is_none(),
        "a body is only shown where asked"
    );
    let by_number = beside(&server, &["events", "show", "#1", "--body", "--json"]).json();
    assert_eq!(by_number["body"], order("o-1", 1, "paid"));
    let told = beside(&server, &["events", "show", "e1"]);
    for text in [
        "Event e1 (#1) of source orders",
        "Deliveries",
        "Attempts",
        "Other content",
        "Entity",
    ] {
        told.assert(0, text);
    }
    beside(&server, &["events", "show", "nobody"]).assert(3, "nobody");
    beside(&server, &["events", "show", "#99"]).assert(3, "99");
}

#[test]
fn redrive_gives_a_dead_letter_another_try() {
    let retry = "retry = { base = \"10ms\", cap = \"10ms\", max_attempts = 1 }";
    let server = Server::start(&orders_with(retry));
    server.edit("alter table orders rename to hidden");
    for id in ["e1", "e2", "e3"] {
        deliver(&server, id, id, 1);
        assert_eq!(server.status(id), "dead_letter");
    }
    server.edit("alter table hidden rename to orders");
    beside(&server, &["events", "redrive", "--dry-run"]).assert(0, "3 events would get");
    assert_eq!(server.status("e1"), "dead_letter");
    beside(&server, &["events", "redrive", "e1"]).assert(0, "1 events get");
    eventually("it is applied", || server.status("e1") == "processed");
    beside(&server, &["events", "redrive"]).assert(0, "2 events get");
    server.wait_applied();
    for id in ["e1", "e2", "e3"] {
        assert_eq!(server.status(id), "processed");
        assert_eq!(server.writes(id), 1);
    }
    beside(&server, &["events", "redrive", "e1"]).assert(4, "e1 is finished");
    beside(&server, &["events", "redrive", "nobody"]).assert(3, "nobody");
    let wrong = beside(&server, &["events", "redrive", "--status", "processed"]);
    wrong.assert(1, "events replay");
    let story = beside(&server, &["events", "show", "e1", "--json"]).json();
    let reasons = story["attempts"].as_array().unwrap().iter();
    let reasons: Vec<_> = reasons.map(|row| row["reason"].clone()).collect();
    assert!(reasons.contains(&"redriven".into()), "{reasons:?}");
}

#[test]
fn replay_needs_force_for_what_is_finished_and_the_order_still_counts() {
    let server = Server::start(ORDERS);
    deliver(&server, "old", "o-1", 1);
    deliver(&server, "new", "o-1", 2);
    beside(&server, &["events", "replay", "old"]).assert(4, "--force");
    assert_eq!(server.status("old"), "processed");
    beside(&server, &["events", "replay", "old", "--force"]).assert(0, "applied again");
    server.wait_applied();
    assert_eq!(server.status("old"), "ignored_out_of_order");
    assert_eq!(server.writes("old"), 1, "the newer one stays");
    let state = "select last_event_id from orders";
    assert_eq!(server.column(state, &[]), ["new"]);
    beside(&server, &["events", "replay", "nobody"]).assert(3, "nobody");
}

#[test]
fn accept_makes_a_variant_an_event_of_its_own_once() {
    let server = Server::start(ORDERS);
    deliver(&server, "e1", "o-1", 1);
    let other = hook("e1", order("o-1", 1, "void")).send(&server);
    assert_eq!(other.outcome(), "rejected_inconsistent_duplicate");
    let story = beside(&server, &["events", "show", "e1", "--json"]).json();
    let variant = &story["variants"][0];
    let number = variant["id"].to_string();
    let id = format!("e1#{}", &variant["payload_hash"].as_str().unwrap()[..16]);
    beside(&server, &["events", "accept", "e1", "--variant", "99"]).assert(3, "99 of e1");
    let accept = ["events", "accept", "e1", "--variant", &number];
    beside(&server, &accept).assert(0, &id);
    eventually("it is applied", || server.status(&id) == "processed");
    assert_eq!(server.column("select status from orders", &[]), ["void"]);
    beside(&server, &accept).assert(4, "accepted before");
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 2);
}

#[test]
fn erase_takes_the_content_and_leaves_the_key() {
    let server = Server::start(ORDERS);
    deliver(&server, "e1", "o-1", 1);
    deliver(&server, "e1", "o-1", 2);
    beside(&server, &["events", "erase", "e1"]).assert(1, "--yes");
    assert_eq!(server.status("e1"), "processed");
    beside(&server, &["events", "erase", "e1", "--yes"]).assert(0, "its key and hashes remain");
    assert_eq!(server.status("e1"), "erased");
    let bodies = "select (select count(*) from webhook_payloads) + \
        (select count(*) from webhook_variants where body is not null)";
    assert_eq!(server.count(bodies, &[]), 0);
    let again = hook("e1", order("o-1", 1, "paid")).send(&server);
    assert_eq!(again.says(), "200 duplicate");
    beside(&server, &["events", "replay", "e1", "--force"]).assert(4, "was erased");
    let story = beside(&server, &["events", "show", "e1", "--json"]).json();
    let last = story["attempts"].as_array().unwrap().last().unwrap();
    assert_eq!(last["reason"], "erased_by_operator", "{story}");
    beside(&server, &["events", "erase", "nobody", "--yes"]).assert(3, "nobody");
}
