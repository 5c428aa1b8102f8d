//! `init`, `check`, `serve` without a config file, `migrate`, `prune`, `completions`, and wrong use.

use super::{alone, beside};
use crate::support::{ORDERS, Server, Start, eventually, hook, now_ms, order};

#[test]
fn init_writes_a_file_that_check_accepts_and_never_overwrites_one() {
    let start = Start::new(ORDERS);
    alone(&start, &["init", "new.toml"]).assert(0, "sekali check");
    alone(&start, &["check", "--config", "new.toml"]).assert(0, "can be used");
    let written = alone(&start, &["init", "-"]);
    written.assert(0, "[server]");
    alone(&start, &["init"]).assert(1, "was left as it is");
    // What was there is the configuration of the orders, still.
    alone(&start, &["check"]).assert(0, "source orders: POST /hooks/orders");
}

#[test]
fn serve_without_a_config_file_says_how_to_get_one() {
    let start = Start::new(ORDERS);
    for command in ["serve", "check", "migrate"] {
        let ran = alone(&start, &[command, "--config", "nowhere.toml"]);
        ran.assert(1, "there is no config file nowhere.toml");
        ran.assert(1, "sekali init");
    }
    let named = start.env("SEKALI_CONFIG", "elsewhere.toml");
    alone(&named, &["serve"]).assert(1, "there is no config file elsewhere.toml");
}

#[test]
fn check_accepts_a_good_file_and_makes_nothing() {
    let start = Start::new(ORDERS);
    alone(&start, &["check"]).assert(0, "the configuration can be used");
    let missing = alone(&start, &["events", "list"]);
    missing.assert(3, "sekali.db");
}

#[test]
fn check_names_the_line_and_the_nearest_key() {
    let start = Start::new(ORDERS).file("bad.toml", "[server]\n\nmax_bodi = \"1MiB\"\n");
    alone(&start, &["check", "--config", "bad.toml"]).assert(
        1,
        "bad.toml:3: the key `max_bodi` is unknown; did you mean `max_body`?",
    );
    let source = ORDERS.replace("event_id = ", "event_di = ");
    let start = Start::new(ORDERS).file("bad.toml", source);
    alone(&start, &["check", "--config", "bad.toml"]).assert(1, "did you mean `event_id`?");
}

#[test]
fn check_names_the_setting_of_a_secret_that_is_not_there() {
    let start = Start::new(ORDERS).without_env("ORDERS_SECRET");
    let ran = alone(&start, &["check"]);
    ran.assert(1, "the variable ORDERS_SECRET is not set");
    ran.assert(1, "source.orders.secrets");
}

#[test]
fn check_refuses_an_effect_on_a_table_or_column_that_is_not_there() {
    let start = Start::new(&ORDERS.replace("table = \"orders\"", "table = \"ordres\""));
    let ran = alone(&start, &["check"]);
    ran.assert(1, "source.orders.effect[0]");
    ran.assert(1, "no such table: ordres");
    let start = Start::new(&ORDERS.replace("status = {", "statsu = {"));
    alone(&start, &["check"]).assert(1, "statsu");
}

#[test]
fn migrate_makes_the_database_and_may_be_repeated_beside_a_server() {
    let start = Start::new(ORDERS);
    alone(&start, &["migrate"]).assert(0, "schema up to date");
    alone(&start, &["migrate"]).assert(0, "schema up to date");
    let listed = alone(&start, &["events", "list", "--json"]);
    listed.assert(0, "[]");
    let server = start.serve();
    beside(&server, &["migrate"]).assert(0, "schema up to date");
    beside(&server, &["check"]).assert(0, "the configuration can be used");
}

#[test]
fn prune_tells_what_it_removed() {
    let retention = "[retention]\npayloads = \"1ms\"\naudit = \"1ms\"\nkeys = \"forever\"\n";
    let server = Server::start(&format!("{ORDERS}\n{retention}"));
    for id in ["a", "b"] {
        assert_eq!(hook(id, order(id, 1, "paid")).send(&server).status, 202);
    }
    server.wait_applied();
    let received = now_ms();
    eventually("the rows are old enough", || now_ms() > received + 1);
    let pruned = beside(&server, &["prune", "--json"]).json();
    assert_eq!(pruned["payloads"], 2, "{pruned}");
    assert_eq!(pruned["deliveries"], 2, "{pruned}");
    assert_eq!(pruned["attempts"], 2, "{pruned}");
    assert_eq!(pruned["keys"], 0, "{pruned}");
    beside(&server, &["prune"]).assert(0, "payloads");
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 2);
}

#[test]
fn completions_are_written_for_known_shells() {
    let start = Start::new(ORDERS);
    let ran = alone(&start, &["completions", "bash"]);
    ran.assert(0, "_sekali()");
    ran.assert(0, "redrive");
    alone(&start, &["completions", "nonsense"]).assert(2, "bash");
}

#[test]
fn wrong_use_is_told_apart_from_failure() {
    let start = Start::new(ORDERS);
    for arguments in [
        &["nonsense"][..],
        &[],
        &["events"],
        &["events", "list", "--status", "nonsense"],
        &["events", "list", "--limit", "0"],
        &["events", "show"],
        &["send"],
        &["send", "--url", "http://127.0.0.1:1/"],
        &["serve", "--nonsense"],
    ] {
        alone(&start, arguments).assert(2, "");
    }
    alone(&start, &["--help"]).assert(0, "Exit codes");
    alone(&start, &["--version"]).assert(0, "sekali ");
}
