//! The bytes that were received are the bytes that are signed, stored and compared.

use sha2::{Digest as _, Sha256};

use crate::support::{Hook, ORDERS, Server, hook};

const MIXED: &str = "{\"entity_id\":\"o-1\",\"source_version\":1,\"t\":\"\\u00e9 é \\/ 😀 \\ud83d\\ude00 \u{2028}\"}";
const PRETTY: &str = "{\n  \"t\": \"z\",\n  \"source_version\": 1,\n  \"entity_id\": \"o-1\"\n}";

/// Sends a body and holds the stored bytes and their hash against those that were sent.
fn accepted_unchanged(id: &str, body: &[u8], change: impl FnOnce(Hook) -> Hook) {
    let server = Server::start(ORDERS);
    let reply = change(hook(id, body)).send(&server);
    assert_eq!(reply.says(), "202 accepted", "{}", reply.text());
    server.wait_applied();
    assert_eq!(server.status(id), "processed");
    let (stored, hash): (Vec<u8>, Vec<u8>) = server
        .db()
        .query_row(
            "select p.body, i.payload_hash from webhook_payloads p join webhook_inbox i using (seq)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(stored, body);
    assert_eq!(hash, Sha256::digest(body).to_vec());
}

#[test]
fn c01_a_escaped_and_literal_characters_stay_as_they_are() {
    accepted_unchanged("evt_a", MIXED.as_bytes(), |hook| hook);
}

#[test]
fn c01_b_a_byte_order_mark_is_stored_and_only_left_out_for_reading() {
    let body = ["\u{feff}", MIXED].concat();
    accepted_unchanged("evt_b", body.as_bytes(), |hook| hook);
}

#[test]
fn c01_c_a_line_end_behind_the_body_is_part_of_it() {
    let body = [MIXED, "\r\n"].concat();
    accepted_unchanged("evt_c", body.as_bytes(), |hook| hook);
}

#[test]
fn c01_d_layout_and_order_of_keys_are_part_of_the_body() {
    accepted_unchanged("evt_d", PRETTY.as_bytes(), |hook| hook);
}

#[test]
fn c01_e_the_charset_of_the_header_changes_nothing() {
    accepted_unchanged("evt_e", MIXED.as_bytes(), |hook| {
        hook.header("Content-Type", "application/json; charset=iso-8859-1")
    });
}

#[test]
fn c01_f_no_content_type_is_needed() {
    accepted_unchanged("evt_f", MIXED.as_bytes(), |hook| {
        hook.without("Content-Type")
    });
}

#[test]
fn c01_negative_a_body_that_was_serialized_again_is_not_the_signed_one() {
    let server = Server::start(ORDERS);
    let value: serde_json::Value = serde_json::from_str(PRETTY).unwrap();
    let again = hook("evt_n", value.to_string()).signed_over(PRETTY);
    assert_eq!(
        again.send(&server).says(),
        "401 rejected_signature signature_wrong"
    );
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
}
