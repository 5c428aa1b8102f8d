//! `send`: signs like the provider, and tells what was answered.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Ran, alone};
use crate::support::{ORDERS, Server, Start, order};

/// A client's folder with ten events in it; the ids are those of the orders.
fn client() -> Start {
    let lines: Vec<_> = (0..10)
        .map(|number| order(&format!("o-{number}"), 1, "paid"))
        .collect();
    Start::new(ORDERS)
        .file("events.jsonl", lines.join("\n"))
        .file("one.json", order("single", 1, "paid"))
}

fn send(client: &Start, server: &Server, more: &[&str]) -> Ran {
    let url = server.url("/hooks/orders");
    let first = ["send", "--url", &url, "--secret", "env:ORDERS_SECRET"];
    let arguments = [&first[..], &["--id", "/entity_id"], more].concat();
    alone(client, &arguments)
}

/// Returns how often each answer came, as `status outcome`.
fn answers(figures: &Value) -> Vec<String> {
    let answers = figures["answers"].as_array().unwrap().iter().map(|answer| {
        let outcome = answer["outcome"].as_str().unwrap();
        format!("{} × {} {outcome}", answer["count"], answer["status"])
    });
    answers.collect()
}

fn arrival(server: &Server) -> Vec<String> {
    server.column("select event_id from webhook_inbox order by seq", &[])
}

#[test]
fn a_file_of_lines_is_sent_in_its_order() {
    let (client, server) = (client(), Server::start(ORDERS));
    send(&client, &server, &["events.jsonl"]).assert(0, "10 sent");
    let expected: Vec<_> = (0..10).map(|number| format!("o-{number}")).collect();
    assert_eq!(arrival(&server), expected);
    server.wait_applied();
    assert_eq!(server.count("select count(*) from orders", &[]), 10);
    let whole = send(&client, &server, &["one.json"]);
    whole.assert(0, "accepted");
    assert!(!server.status("single").is_empty());
}

#[test]
fn standard_input_is_sent_line_by_line() {
    let (client, server) = (client(), Server::start(ORDERS));
    let url = server.url("/hooks/orders");
    let arguments = [
        "send",
        "--url",
        &url,
        "--secret",
        "env:ORDERS_SECRET",
        "--id",
        "/entity_id",
        "--json",
    ];
    let mut process = client
        .command(&arguments)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = format!("{}\r\n{}\n", order("a", 1, "paid"), order("b", 1, "paid"));
    process
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let ran = Ran::from(process.wait_with_output().unwrap());
    assert_eq!(answers(&ran.json()), ["2 × 202 accepted"]);
    assert_eq!(arrival(&server), ["a", "b"]);
}

#[test]
fn duplicates_in_a_shuffled_order_are_counted_in_the_figures() {
    let (client, server) = (client(), Server::start(ORDERS));
    let more = [
        "events.jsonl",
        "--duplicates",
        "2",
        "--shuffle",
        "7",
        "--concurrency",
        "4",
        "--json",
    ];
    let ran = send(&client, &server, &more);
    ran.assert(0, "");
    let figures = ran.json();
    assert_eq!(figures["sent"], 30);
    assert_eq!(
        answers(&figures),
        ["20 × 200 duplicate", "10 × 202 accepted"]
    );
    for name in ["per_second", "median_ms", "p99_ms", "longest_ms"] {
        let value = figures[name].as_f64().unwrap_or_default();
        assert!(value > 0.0, "{name} in {figures}");
    }
    let mut sorted = arrival(&server);
    sorted.sort_unstable();
    assert_ne!(arrival(&server), sorted, "nothing was shuffled");
    server.wait_applied();
    assert_eq!(server.count("select count(*) from order_writes", &[]), 10);
}

#[test]
fn a_rate_is_kept() {
    let (client, server) = (client(), Server::start(ORDERS));
    let started = Instant::now();
    send(&client, &server, &["events.jsonl", "--rate", "20"]).assert(0, "10 sent");
    // The tenth is due after nine twentieths of a second.
    assert!(started.elapsed() >= Duration::from_millis(450));
}

#[test]
fn a_source_of_the_config_file_gives_address_scheme_and_secret() {
    let server = Server::start(ORDERS);
    let config = format!("[server]\nlisten = \"{}\"\n{ORDERS}", server.address());
    let client = client().file("client.toml", config);
    let first = ["send", "--config", "client.toml", "--id", "/entity_id"];
    let ran = alone(
        &client,
        &[&first[..], &["--source", "orders", "events.jsonl"]].concat(),
    );
    ran.assert(0, "10 sent");
    let ran = alone(
        &client,
        &[&first[..], &["--source", "nobody", "events.jsonl"]].concat(),
    );
    ran.assert(3, "no source is known as nobody");
}

#[test]
fn a_refused_event_and_a_silent_receiver_are_failures() {
    let server = Server::start(ORDERS);
    let forger = client().env("ORDERS_SECRET", "another-secret-not-for-production");
    let ran = send(&forger, &server, &["events.jsonl", "--json"]);
    ran.assert(1, "");
    assert_eq!(answers(&ran.json()), ["10 × 401 rejected_signature"]);
    let nowhere = [
        "send",
        "--url",
        "http://127.0.0.1:9/",
        "--secret",
        "env:ORDERS_SECRET",
    ];
    let more = ["--id", "/entity_id", "one.json"];
    alone(&client(), &[&nowhere[..], &more].concat()).assert(1, "no answer");
    send(&client(), &server, &["missing.jsonl"]).assert(1, "could not read missing.jsonl");
    let empty = client().file("empty.jsonl", "\n");
    send(&empty, &server, &["empty.jsonl"]).assert(1, "holds no events");
}
