//! Secrets: never empty, never literal, never in a log or a record.

use crate::support::{ORDERS, ORDERS_SECRET, Server, Start, hook, order};

#[test]
fn rival_16_an_empty_secret_never_means_everybody() {
    for value in ["", "   ", "\n"] {
        let said = Start::new(ORDERS).env("ORDERS_SECRET", value).refusal();
        assert!(said.contains("ORDERS_SECRET"), "{value:?}: {said}");
    }
    let said =
        Start::new(&ORDERS.replace("secrets = [\"env:ORDERS_SECRET\"]", "secrets = []")).refusal();
    assert!(said.contains("at least one secret is needed"), "{said}");
}

#[test]
fn rival_17_a_reference_is_never_the_secret_itself() {
    let said = Start::new(ORDERS).without_env("ORDERS_SECRET").refusal();
    assert!(said.contains("ORDERS_SECRET is not set"), "{said}");
    let server = Server::start(ORDERS);
    let literal = hook("e", order("o-1", 1, "paid")).secret("env:ORDERS_SECRET");
    assert_eq!(literal.send(&server).status, 401);
}

#[test]
fn rival_18_the_right_signature_is_never_told() {
    let server = Server::start(&format!("[log]\nlevel = \"trace\"\n{ORDERS}"));
    let delivery = hook("e", order("o-1", 1, "paid"));
    let good = delivery.good_signature().replace("v1=", "");
    let reply = delivery.signature("v1=00").send(&server);
    assert_eq!(reply.status, 401);
    for text in [server.log(), reply.text()] {
        assert!(
            !text.contains(&good) && !text.contains(&good[..16]),
            "{text}"
        );
        assert!(!text.contains(ORDERS_SECRET), "{text}");
    }
}

#[test]
fn rival_20_every_signature_is_tried() {
    let server = Server::start(ORDERS);
    let delivery = hook("e", order("o-1", 1, "paid"));
    let wrong = format!("v1={}", "0".repeat(64));
    let many = format!("{wrong},{wrong},{}", delivery.good_signature());
    assert_eq!(
        delivery.signature(many).send(&server).says(),
        "202 accepted"
    );
}

#[test]
fn rival_28_credentials_are_not_kept_with_the_payload() {
    let keeps = crate::support::orders_with("store_headers = [\"Authorization\", \"X-Trace\"]");
    let server = Server::start(&keeps);
    let delivery = hook("e", order("o-1", 1, "paid"));
    let delivery = delivery
        .header("Authorization", "Bearer not-a-real-token")
        .header("Cookie", "session=not-a-real-one");
    assert_eq!(
        delivery.header("X-Trace", "seen").send(&server).says(),
        "202 accepted"
    );
    let kept = server
        .column("select headers from webhook_payloads", &[])
        .join("");
    assert!(kept.contains("seen") && kept.contains("sha256:"), "{kept}");
    assert!(!kept.contains("not-a-real"), "{kept}");
}
