//! Compressed bodies: none is received, so that nothing is ever unpacked before it is verified.

use crate::support::{Hook, ORDERS, Server, assert_lives, hook, order};

/// The body of an order as `gzip -9` packs `{"entity_id":"o-1","source_version":1}`.
const PACKED: &str = "1f8b0800000000000203ab564acd2bc92ca98ccf4c51b252cad73554d2512ace2f2d4a4e8d2f4b2d2acecccf53b232ac05004b885d6726000000";

fn refused(server: &Server, hook: Hook, coding: &str) {
    let reply = hook.header("Content-Encoding", coding).send(server);
    assert_eq!(
        reply.says(),
        "415 rejected_malformed content_encoding",
        "{coding:?}"
    );
    assert_lives(server, &format!("after {}", coding.trim()));
}

fn packed() -> Vec<u8> {
    hex::decode(PACKED).unwrap()
}

#[test]
fn c07_a_a_signature_over_the_packed_bytes_is_refused() {
    refused(&Server::start(ORDERS), hook("a", packed()), "gzip");
}

#[test]
fn c07_b_a_signature_over_the_plain_bytes_is_refused() {
    let hook = hook("b", packed()).signed_over(r#"{"entity_id":"o-1","source_version":1}"#);
    refused(&Server::start(ORDERS), hook, "gzip");
}

#[test]
fn c07_c_a_plain_body_that_claims_to_be_packed_is_refused() {
    refused(
        &Server::start(ORDERS),
        hook("c", order("o-1", 1, "paid")),
        "gzip",
    );
}

#[test]
fn c07_d_every_coding_is_refused() {
    let server = Server::start(ORDERS);
    for coding in ["br", "zstd", "deflate", "gzip, gzip", "nonsense"] {
        refused(&server, hook("d", packed()), coding);
    }
    let plain = hook("plain", order("plain", 1, "paid")).header("Content-Encoding", "identity");
    assert_eq!(plain.send(&server).says(), "202 accepted");
}

#[test]
fn c07_e_the_spelling_of_the_coding_does_not_matter() {
    let server = Server::start(ORDERS);
    for coding in ["GZIP", " gzip ", "X-GZip"] {
        refused(&server, hook("e", packed()), coding);
    }
}

#[test]
fn c07_f_a_large_packed_body_is_answered_and_never_unpacked() {
    let server = Server::start(ORDERS);
    let bomb = [packed(), vec![0; 1 << 20]].concat();
    let before = server.peak_memory_bytes();
    refused(&server, hook("f", bomb), "gzip");
    let grown = server.peak_memory_bytes() - before;
    assert!(grown < 8 << 20, "{grown} bytes for a body of one MiB");
}
