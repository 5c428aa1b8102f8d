//! A retry that was serialized again: canonical JSON decides, numbers as they are written.

use sha2::{Digest as _, Sha256};

use crate::support::{ORDERS, Server, hook, orders_with};

const A: &str = r#"{"entity_id":"o-1","source_version":1,"x":1}"#;
const B: &str = "{ \"x\": 1,\n  \"source_version\": 1, \"entity_id\": \"o-1\" }";
const C: &str = r#"{"entity_id":"o-1","source_version":1,"x":1.0}"#;
const D: &str = r#"{"entity_id":"o-1","source_version":1,"x":1,"attempt":2}"#;

/// Sends the first body, then another one under the same id, and returns the second answer.
fn second(server: &Server, body: &str) -> String {
    assert_eq!(hook("e", A).send(server).says(), "202 accepted");
    server.wait_applied();
    let says = hook("e", body).send(server).says();
    server.wait_applied();
    assert_eq!(server.writes("e"), 1, "the second body is never applied");
    let stored: Vec<u8> = server
        .db()
        .query_row("select body from webhook_payloads", [], |row| row.get(0))
        .unwrap();
    assert_eq!(stored, A.as_bytes(), "the original is untouched");
    says
}

/// Holds the evidence against the two bodies: the hash of each, and the other body itself.
fn assert_evidence(server: &Server, body: &str) {
    let hash = |body: &str| hex::encode_upper(Sha256::digest(body));
    let original = server.column("select hex(payload_hash) from webhook_inbox", &[]);
    assert_eq!(original, [hash(A)]);
    let variant = server.column(
        "select hex(payload_hash) || ' ' || cast(body as text) from webhook_variants",
        &[],
    );
    assert_eq!(variant, [format!("{} {body}", hash(body))]);
    let story = server.run(&["events", "show", "e", "--json"]);
    let story = String::from_utf8_lossy(&story.stdout).to_uppercase();
    assert!(
        story.contains(&hash(A)) && story.contains(&hash(body)),
        "{story}"
    );
}

#[test]
fn c15_a_the_first_body_counts_and_its_bytes_are_a_duplicate() {
    let server = Server::start(ORDERS);
    assert_eq!(second(&server, A), "200 duplicate");
    assert_eq!(
        server.count("select count(*) from webhook_variants", &[]),
        0
    );
}

#[test]
fn c15_b_another_order_of_keys_is_a_duplicate() {
    let server = Server::start(ORDERS);
    assert_eq!(second(&server, B), "200 duplicate");
    let hashes = "select count(distinct payload_hash) from webhook_deliveries";
    assert_eq!(
        server.count(hashes, &[]),
        2,
        "the record tells the bytes apart"
    );
}

#[test]
fn c15_c_a_number_written_otherwise_is_other_content() {
    let server = Server::start(ORDERS);
    assert_eq!(second(&server, C), "200 rejected_inconsistent_duplicate");
    assert_evidence(&server, C);
}

#[test]
fn c15_d_a_new_field_is_other_content_unless_it_is_volatile() {
    let server = Server::start(ORDERS);
    assert_eq!(second(&server, D), "200 rejected_inconsistent_duplicate");
    assert_evidence(&server, D);
    let server = Server::start(&orders_with("volatile = [\"/attempt\"]"));
    assert_eq!(second(&server, D), "200 duplicate");
}
