//! Signature headers that cannot be read.

use crate::support::{ORDERS, Server, assert_lives, hook, order};

/// Sends a header made out of the good hexadecimal digits, then a valid delivery.
fn answer(server: &Server, number: usize, header: impl Fn(&str) -> Vec<u8>) -> String {
    let order = order(&format!("o-{number}"), 1, "paid");
    let hook = hook(&format!("evt_{number}"), order);
    let good = hook.good_signature();
    let hook = hook.signature(header(good.strip_prefix("v1=").unwrap()));
    let says = hook.send(server).says();
    assert_lives(server, &format!("after_{number}"));
    says
}

#[test]
fn c02_a_header_without_a_readable_signature_is_unauthenticated() {
    let server = Server::start(ORDERS);
    let missing = hook("evt_m", order("o-1", 1, "paid")).without("X-Webhook-Signature");
    assert_eq!(
        missing.send(&server).says(),
        "401 rejected_signature signature_missing"
    );
    assert_lives(&server, "after_m");

    type Header = fn(&str) -> String;
    let malformed: [Header; 9] = [
        |_| "v1=".into(),
        |_| "v1=abc".into(),
        |good| format!("v1={}", &good[1..]),
        |good| format!("v1={good}0"),
        |_| format!("v1={}", "z".repeat(64)),
        |_| "v1=kANy0+Ntu7VQLA4LVXiGmVMMjyfEJaLqqosIw9/CXms=".into(),
        |_| format!("v1={}", "é".repeat(64)),
        |good| format!("sha256={good}"),
        |good| good.into(),
    ];
    for (number, header) in malformed.into_iter().enumerate() {
        let says = answer(&server, number, |good| header(good).into_bytes());
        assert_eq!(
            says, "401 rejected_signature signature_malformed",
            "input {number}"
        );
    }
    let blank = answer(&server, 100, |_| Vec::new());
    assert_eq!(blank, "401 rejected_signature signature_missing");
    let says = answer(&server, 20, |_| "v1=00,".repeat(10_000).into_bytes());
    assert_eq!(says, "401 rejected_signature signature_too_many");
    assert_eq!(
        server.count(
            "select count(*) from webhook_inbox where event_id glob 'evt_*'",
            &[]
        ),
        0
    );
}

#[test]
fn c02_upper_case_and_blanks_around_are_read() {
    let server = Server::start(ORDERS);
    let upper = |good: &str| format!("v1={}", good.to_uppercase()).into_bytes();
    assert_eq!(answer(&server, 0, upper), "202 accepted");
    let blanks = |good: &str| format!(" \t v1={good} \t ").into_bytes();
    assert_eq!(answer(&server, 1, blanks), "202 accepted");
}

#[test]
fn c02_a_single_wrong_digit_is_enough() {
    let server = Server::start(ORDERS);
    let flipped = |good: &str| {
        let (rest, last) = good.split_at(63);
        let other = if last == "0" { "1" } else { "0" };
        format!("v1={rest}{other}").into_bytes()
    };
    assert_eq!(
        answer(&server, 0, flipped),
        "401 rejected_signature signature_wrong"
    );
}
