//! Deliveries through proxies: whose word counts about where they come from.

use crate::support::{Hook, ORDERS, Server, Start, hook, order, orders_with};

/// Allows an address one wrong signature.
const STRICT: &str = "unverified_rate = { per_second = 1, burst = 1 }";

fn server(settings: &str) -> Server {
    Server::start(&format!("[server]\n{STRICT}\n{settings}\n{ORDERS}"))
}

fn delivery(id: &str) -> Hook {
    hook(id, order(id, 1, "paid"))
}

fn forged(id: &str) -> Hook {
    delivery(id).secret("not-the-secret")
}

fn address_of(server: &Server, id: &str) -> String {
    let sql = "select delivery.remote_address from webhook_deliveries delivery \
        join webhook_inbox event on event.seq = delivery.inbox_seq where event.event_id = ?";
    server.column(sql, &[&id]).join(",")
}

#[test]
fn a_header_of_an_untrusted_peer_is_ignored() {
    let server = server("trusted_proxies = [\"10.0.0.0/8\"]");
    let sent = delivery("o-1").header("X-Forwarded-For", "203.0.113.7");
    assert_eq!(sent.send(&server).says(), "202 accepted");
    assert_eq!(address_of(&server, "o-1"), "127.0.0.1");
    // Whatever addresses it makes up, it is held against the one it has.
    let first = forged("o-2").header("X-Forwarded-For", "203.0.113.7");
    let second = forged("o-3").header("Forwarded", "for=203.0.113.8");
    assert_eq!(first.send(&server).status, 401);
    assert_eq!(second.send(&server).status, 429);
}

#[test]
fn a_header_of_a_trusted_proxy_tells_the_client() {
    let server = server("trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]");
    let chain = "198.51.100.1, 203.0.113.7, 10.0.0.1";
    let sent = delivery("o-1").header("X-Forwarded-For", chain);
    assert_eq!(sent.send(&server).says(), "202 accepted");
    assert_eq!(address_of(&server, "o-1"), "203.0.113.7");
    let sent = delivery("o-2").header("Forwarded", "for=\"[2001:db8::1]:4711\";proto=https");
    assert_eq!(sent.send(&server).says(), "202 accepted");
    assert_eq!(address_of(&server, "o-2"), "2001:db8::1");
    assert_eq!(delivery("o-3").send(&server).says(), "202 accepted");
    assert_eq!(address_of(&server, "o-3"), "127.0.0.1");
    // The forger is slowed down, and nobody else behind the same proxy.
    let forged = |id, address| forged(id).header("X-Forwarded-For", address).send(&server);
    assert_eq!(forged("o-4", "203.0.113.7").status, 401);
    assert_eq!(forged("o-5", "198.51.100.1, 203.0.113.7").status, 429);
    assert_eq!(forged("o-6", "203.0.113.8").status, 401);
}

#[test]
fn a_list_of_addresses_is_held_against_the_client() {
    let orders = orders_with("allow_from = [\"203.0.113.0/24\"]");
    let send = |server: &Server, address| {
        let sent = delivery("o-1").header("X-Forwarded-For", address);
        sent.send(server).says()
    };
    let refused = "401 rejected_signature address_not_allowed";
    let behind = Server::start(&format!(
        "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n{orders}"
    ));
    assert_eq!(send(&behind, "203.0.113.7"), "202 accepted");
    assert_eq!(send(&behind, "203.0.113.7, 198.51.100.1"), refused);
    let invented = delivery("o-2").header("X-Forwarded-For", "198.51.100.1");
    let invented = invented.header("Forwarded", "for=203.0.113.7");
    assert_eq!(invented.send(&behind).says(), refused);
    let direct = Server::start(&orders);
    assert_eq!(send(&direct, "203.0.113.7"), refused);
}

#[test]
fn addresses_that_cannot_be_meant_are_refused_at_start() {
    let config = format!("[server]\ntrusted_proxies = [\"10.0.0.1/8\"]\n{ORDERS}");
    let said = Start::new(&config).refusal();
    assert!(said.contains("10.0.0.1/8"), "{said}");
}
