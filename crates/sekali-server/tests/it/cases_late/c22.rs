//! Versions are numbers: not text, and not floats.

use crate::support::{ORDERS, Server, hook};

fn event(entity_id: &str, version: &str, status: &str) -> String {
    format!(
        r#"{{"entity_id":"{entity_id}",{version}"occurred_at":"2026-01-02T03:04:05Z","status":"{status}"}}"#
    )
}

fn send(server: &Server, id: &str, body: String) -> String {
    let said = hook(id, body).send(server).says();
    server.wait_applied();
    said
}

/// Sends two versions of one entity, as they are written, and returns where the second stands and the order's state.
fn pair(first: &str, second: &str) -> (String, String) {
    let server = Server::start(ORDERS);
    for (id, version) in [("first", first), ("second", second)] {
        let version = format!("\"source_version\":{version},");
        assert_eq!(
            send(&server, id, event("o-1", &version, id)),
            "202 accepted",
            "{version}"
        );
    }
    let state = server.column("select status from orders", &[]).join(",");
    (server.status("second"), state)
}

fn assert_second_wins(first: &str, second: &str) {
    let expected = ("processed".to_owned(), "second".to_owned());
    assert_eq!(pair(first, second), expected, "{first} {second}");
    let expected = ("ignored_out_of_order".to_owned(), "first".to_owned());
    assert_eq!(pair(second, first), expected, "{second} {first}");
}

#[test]
fn c22_text_of_digits_is_compared_as_a_number() {
    assert_second_wins("\"9674\"", "\"10008\"");
}

#[test]
fn c22_ten_is_above_nine() {
    assert_second_wins("9", "10");
}

#[test]
fn c22_versions_past_the_exact_range_of_a_float_differ() {
    assert_second_wins("9007199254740992", "9007199254740993");
    assert_second_wins("9223372036854775806", "9223372036854775807");
}

#[test]
fn c22_a_number_and_a_text_of_digits_compare_by_value() {
    assert_second_wins("9", "\"10\"");
    assert_second_wins("\"9\"", "10");
}

#[test]
fn c22_an_equal_version_under_another_id_is_ignored() {
    let expected = ("ignored_out_of_order".to_owned(), "first".to_owned());
    assert_eq!(pair("7", "7"), expected);
    assert_eq!(pair("7", "\"7\""), expected);
}

#[test]
fn c22_a_missing_version_stands_below_every_version_or_is_refused_without_a_time() {
    let server = Server::start(ORDERS);
    let versioned = event("o-1", "\"source_version\":0,", "versioned");
    assert_eq!(send(&server, "e1", versioned), "202 accepted");
    assert_eq!(
        send(&server, "e2", event("o-1", "", "unversioned")),
        "202 accepted"
    );
    assert_eq!(server.status("e2"), "ignored_out_of_order");
    let reason = "select status_reason from webhook_inbox where event_id = 'e2'";
    assert_eq!(server.column(reason, &[]), ["unversioned"]);
    assert_eq!(
        server.column("select status from orders", &[]),
        ["versioned"]
    );
    let nothing = r#"{"entity_id":"o-1","status":"paid"}"#.to_owned();
    assert_eq!(
        send(&server, "e3", nothing),
        "400 rejected_malformed position_missing"
    );
}

#[test]
fn c22_what_is_no_whole_number_from_zero_is_refused() {
    let server = Server::start(ORDERS);
    for version in [
        "1.0",
        "1e3",
        "-1",
        "\"1.5\"",
        "\"v2\"",
        "9223372036854775808",
        "true",
    ] {
        let body = event("o-1", &format!("\"source_version\":{version},"), "paid");
        let said = send(&server, "e", body);
        assert!(
            said.starts_with("400 rejected_malformed "),
            "{version}: {said}"
        );
    }
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
}
