//! Signed times: their window, their unit and their grammar.

use crate::support::{ORDERS, Server, Start, hook, now, now_ms, order};

/// The scheme of the orders with times in milliseconds.
const MILLIS: &str = r#"scheme = { signed = ["timestamp", { literal = "." }, "body"], algorithm = "hmac_sha256", key = "text", signature = { header = "X-Webhook-Signature", separator = ",", label = "v1=", encoding = "hex" }, time = { header = "X-Webhook-Timestamp", unit = "unix_millis" } }"#;

fn answer(server: &Server, id: &str, timestamp: impl ToString) -> String {
    let hook = hook(id, order(id, 1, "paid")).timestamp(timestamp);
    hook.send(server).says()
}

/// Rounds now up, so that a time that is just inside stays inside while the request travels.
fn now_rounded_up() -> i64 {
    (now_ms() + 999) / 1000
}

#[test]
fn c05_the_window_has_two_sides() {
    let server = Server::start(ORDERS);
    assert_eq!(
        answer(&server, "past", now_rounded_up() - 299),
        "202 accepted"
    );
    assert_eq!(answer(&server, "future", now() + 299), "202 accepted");
    assert_eq!(
        answer(&server, "e", now() - 301),
        "400 rejected_timestamp timestamp_expired"
    );
    let says = answer(&server, "e", now_rounded_up() + 301);
    assert_eq!(says, "400 rejected_timestamp timestamp_in_future");
    assert_eq!(server.status("e"), "", "nothing is stored");
}

#[test]
fn c05_another_unit_is_named() {
    let server = Server::start(ORDERS);
    for timestamp in [now() * 1000, now() * 1_000_000] {
        assert_eq!(
            answer(&server, "e", timestamp),
            "400 rejected_timestamp timestamp_unit"
        );
    }
    let server = Server::start(&ORDERS.replace("scheme = \"timestamped\"", MILLIS));
    assert_eq!(answer(&server, "past", now_ms() - 298_000), "202 accepted");
    assert_eq!(
        answer(&server, "future", now_ms() + 299_000),
        "202 accepted"
    );
    assert_eq!(
        answer(&server, "e", now_ms() - 300_001),
        "400 rejected_timestamp timestamp_expired"
    );
    assert_eq!(
        answer(&server, "e", now()),
        "400 rejected_timestamp timestamp_unit"
    );
}

#[test]
fn c05_a_tolerance_that_would_switch_the_check_off_is_refused() {
    for tolerance in ["\"0s\"", "\"-5m\"", "\"none\"", "0", "\"\""] {
        let settings = format!("id = \"orders\"\ntolerance = {tolerance}\n");
        let said = Start::new(&ORDERS.replace("id = \"orders\"\n", &settings)).refusal();
        assert!(
            said.contains("tolerance") || said.contains("sekali.toml:"),
            "{tolerance}: {said}"
        );
    }
}

#[test]
fn c06_only_plain_digits_are_a_time() {
    let server = Server::start(ORDERS);
    let now = now();
    let half = now.to_string();
    let texts = [
        "abc".to_owned(),
        String::new(),
        format!("{now}abc"),
        format!("+{now}"),
        format!("{now}.0"),
        format!("{now}.5"),
        "1.7e9".into(),
        format!("0x{now:x}"),
        format!("-{now}"),
        "NaN".into(),
        format!("{} {}", &half[..5], &half[5..]),
        format!("{now},{now}"),
        "１７６７２２５６００".into(),
    ];
    for text in texts {
        let says = answer(&server, "e", &text);
        assert_eq!(
            says, "400 rejected_timestamp timestamp_not_a_number",
            "{text:?}"
        );
    }
    let says = answer(&server, "e", "9".repeat(400));
    assert_eq!(says, "400 rejected_timestamp timestamp_out_of_range");
    assert_eq!(server.status("e"), "", "nothing is stored");
}

#[test]
fn c06_a_missing_time_is_a_missing_signature() {
    let server = Server::start(ORDERS);
    let hook = hook("e", order("e", 1, "paid")).without("X-Webhook-Timestamp");
    assert_eq!(
        hook.send(&server).says(),
        "401 rejected_signature signature_missing"
    );
}

#[test]
fn c06_the_text_is_signed_as_it_was_sent() {
    let server = Server::start(ORDERS);
    let padded = format!("00{}", now());
    assert_eq!(answer(&server, "padded", &padded), "202 accepted");
    let hook = hook("other", order("other", 1, "paid"));
    let reprinted = hook.good_signature();
    let hook = hook.timestamp(padded).signature(reprinted);
    assert_eq!(
        hook.send(&server).says(),
        "401 rejected_signature signature_wrong"
    );
}
