//! What operators see: metrics, log lines, health, and the demo as a whole.

use serde_json::Value;

use super::support::{
    Connection, ORDERS, Server, Start, eventually, hook, now, order, orders_with,
};

fn typed(kind: &str, entity_id: &str, version: i64) -> String {
    format!(
        r#"{{"type":"order.{kind}","entity_id":"{entity_id}","source_version":{version},"occurred_at":"2026-01-02T03:04:05Z"}}"#
    )
}

/// Lets every kind of delivery and of attempt happen.
fn every_kind() -> Server {
    let settings = "retry = { base = \"10ms\", cap = \"10ms\", max_attempts = 2 }";
    let log = "[log]\nformat = \"json\"\nlevel = \"debug\"\n";
    let server = Server::start(&format!("{}\n{log}", orders_with(settings)));
    let at = now();
    let say = |id: &str, body: String, expected: &str| {
        let reply = hook(id, body).timestamp(at).send(&server);
        assert_eq!(reply.outcome(), expected, "{id}");
        server.wait_applied();
    };
    say("created", typed("created", "o-1", 2), "accepted");
    say("updated", typed("updated", "o-1", 3), "accepted");
    say("stale", typed("updated", "o-1", 1), "accepted");
    say("deleted", typed("deleted", "o-1", 4), "accepted");
    say("unmatched", typed("looked_at", "o-1", 9), "accepted");
    say("created", typed("created", "o-1", 2), "duplicate");
    let other = typed("created", "o-1", 7);
    say("created", other, "rejected_inconsistent_duplicate");
    say("replay", typed("updated", "o-1", 3), "rejected_replay");
    say("unusable", "{}".to_owned(), "rejected_malformed");
    let stranger =
        hook("forged", typed("created", "o-1", 9)).secret("not-ours-and-not-for-production");
    assert_eq!(stranger.send(&server).status, 401);
    let late = hook("late", typed("created", "o-1", 9)).timestamp(at - 400);
    assert_eq!(late.send(&server).status, 400);
    server.edit("alter table orders rename to hidden");
    say("failing", typed("created", "o-3", 1), "accepted");
    assert_eq!(server.status("failing"), "dead_letter");
    server
}

/// What the metrics say after [`every_kind`]; `S` stands for the source.
const NUMBERS: &[(&str, f64)] = &[
    ("deliveries_total{S,outcome=\"accepted\"}", 6.0),
    ("deliveries_total{S,outcome=\"duplicate\"}", 1.0),
    (
        "deliveries_total{S,outcome=\"rejected_inconsistent_duplicate\"}",
        1.0,
    ),
    ("deliveries_total{S,outcome=\"rejected_replay\"}", 1.0),
    ("deliveries_total{S,outcome=\"rejected_malformed\"}", 1.0),
    ("deliveries_total{S,outcome=\"rejected_signature\"}", 1.0),
    ("deliveries_total{S,outcome=\"rejected_timestamp\"}", 1.0),
    ("events_received_total{S,type=\"order.created\"}", 2.0),
    ("events_received_total{S,type=\"order.updated\"}", 2.0),
    ("events_received_total{S,type=\"order.deleted\"}", 1.0),
    ("events_received_total{S,type=\"order.looked_at\"}", 1.0),
    (
        "events_total{S,type=\"order.updated\",status=\"ignored_out_of_order\",reason=\"older_version\"}",
        1.0,
    ),
    (
        "events_total{S,type=\"order.looked_at\",status=\"ignored_unmatched\",reason=\"no_effect\"}",
        1.0,
    ),
    (
        "events_total{S,type=\"order.created\",status=\"failed\",reason=\"effect_failed\"}",
        1.0,
    ),
    (
        "events_total{S,type=\"order.created\",status=\"dead_letter\",reason=\"effect_failed\"}",
        1.0,
    ),
    ("worker_retries_total{S}", 1.0),
    ("occurred_to_processed_seconds_count{S}", 3.0),
    ("occurred_to_processed_seconds_bucket{le=\"+Inf\",S}", 3.0),
    // Every verified delivery: not the forged one, and the late one by 400 seconds.
    ("timestamp_drift_seconds_count{S}", 11.0),
    ("timestamp_drift_seconds_bucket{le=\"300.0\",S}", 10.0),
    ("received_to_answered_seconds_count{S}", 12.0),
    ("inbox_dead_letters", 1.0),
    ("inbox_pending", 0.0),
    ("inbox_oldest_age_seconds", 0.0),
];

#[test]
fn metrics_have_every_number_that_is_promised() {
    let server = every_kind();
    let source = "source=\"orders\"";
    for (line, expected) in NUMBERS {
        let line = format!("sekali_{} ", line.replace('S', source));
        let text = server.internal("/metrics").text();
        let found = text
            .lines()
            .find_map(|found| found.strip_prefix(line.as_str()));
        let found = found.unwrap_or_else(|| panic!("{line}is not in\n{text}"));
        assert_eq!(found.trim().parse(), Ok(*expected), "{line}");
    }
    let reply = server.internal("/metrics");
    let content_type = reply.header("content-type").unwrap_or_default();
    assert!(
        content_type.starts_with("application/openmetrics-text"),
        "{content_type}"
    );
    assert!(reply.text().ends_with("# EOF\n"));
    assert_eq!(
        Connection::open(server.address()).get("/metrics").status,
        404
    );
}

#[test]
fn depth_and_age_of_the_inbox_grow_while_nothing_is_applied() {
    let server = Server::start(&format!("{ORDERS}\n[worker]\ncount = 0\n"));
    for id in ["a", "b", "c"] {
        assert_eq!(hook(id, order(id, 1, "paid")).send(&server).status, 202);
    }
    assert_eq!(server.metric("sekali_inbox_pending "), 3.0);
    eventually("the oldest grows old", || {
        server.metric("sekali_inbox_oldest_age_seconds ") > 0.05
    });
}

/// Returns the log's lines as JSON.
fn lines(server: &Server) -> Vec<Value> {
    let parse = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|_| panic!("a line is no JSON: {line}"))
    };
    server.log().lines().map(parse).collect()
}

#[test]
fn every_line_about_an_event_names_event_entity_and_type() {
    let server = every_kind();
    let count = |start: &str| {
        let lines = lines(&server);
        let messages = lines.iter().filter_map(|line| line["message"].as_str());
        messages
            .filter(|message| message.starts_with(start))
            .count()
    };
    eventually("each of twelve deliveries has its line", || {
        count("delivery ") == 12
    });
    // Six events, one of them twice.
    eventually("each of seven attempts has its line", || {
        count("event ") == 7
    });
    for line in lines(&server) {
        let message = line["message"].as_str().unwrap();
        // What was refused has become no event; its line may still name what it claimed to be.
        let is_refused = matches!(
            line["outcome"].as_str(),
            Some("rejected_signature" | "rejected_malformed")
        );
        if line.get("event_id").is_none() && !message.contains("event ") || is_refused {
            continue;
        }
        let [event_id, entity_id, event_type] =
            ["event_id", "entity_id", "event_type"].map(|name| line[name].as_str().unwrap_or(""));
        assert!(!event_id.is_empty(), "{line}");
        assert!(entity_id.starts_with("o-"), "{line}");
        assert!(event_type.starts_with("order."), "{line}");
        assert_eq!(line["source"], "orders");
    }
}

#[test]
fn a_delivery_that_could_not_be_stored_is_logged_with_its_event() {
    let tables = "[log]\nformat = \"json\"\n[server]\nanswer_within = \"100ms\"\n";
    let server = Server::start(&format!("{ORDERS}\n{tables}"));
    let lock = server.lock();
    let reply = hook("e", typed("created", "o-1", 1)).send(&server);
    assert_eq!(reply.says(), "503 unavailable store_unavailable");
    assert!(reply.header("retry-after").is_some());
    drop(lock);
    let mut found = None;
    eventually("a line about the delivery", || {
        let mut all = lines(&server).into_iter();
        found = all.find(|line| line["outcome"] == "unavailable");
        found.is_some()
    });
    let line = found.unwrap();
    assert_eq!(line["event_id"], "e");
    assert_eq!(line["entity_id"], "o-1");
    assert_eq!(line["event_type"], "order.created");
}

#[test]
fn lines_for_a_person_name_the_event_too() {
    let server = Server::start(&format!("{ORDERS}\n[log]\nlevel = \"debug\"\n"));
    let body = typed("created", "o-1", 1);
    assert_eq!(hook("e", body).send(&server).status, 202);
    server.wait_applied();
    eventually("the attempt is logged", || {
        let log = server.log();
        let line = log.lines().find(|line| line.contains("event processed"));
        line.is_some_and(|line| {
            line.contains("event_id=\"e\"")
                && line.contains("entity_id=\"o-1\"")
                && line.contains("event_type=\"order.created\"")
        })
    });
}

#[test]
fn health_is_shown_on_both_listeners() {
    let server = Server::start(ORDERS);
    for path in ["/healthz", "/readyz"] {
        let public = Connection::open(server.address()).get(path);
        assert_eq!(public.status, 200, "{path}");
        assert_eq!(server.internal(path).text(), public.text());
    }
    // A store that is only busy is ready: deliveries wait for it.
    let lock = server.lock();
    assert_eq!(server.internal("/readyz").status, 200);
    drop(lock);
}

#[test]
fn the_demo_ends_in_the_expected_documents() {
    let start = Start::new(ORDERS);
    let folder = start
        .command(&["demo", "--folder", "demo", "--seed", "3"])
        .output();
    let output = folder.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("are exactly the expected ones"), "{said}");
    for kind in [
        "event",
        "duplicate",
        "parallel twin",
        "late event",
        "forged",
        "tampered",
        "expired",
    ] {
        assert!(
            said.lines().any(|line| line.trim_start().starts_with(kind)),
            "{kind}: {said}"
        );
    }
    // What it left can be looked at, and is not written over by the next one.
    let listed = start
        .command(&[
            "events",
            "list",
            "--config",
            "demo/sekali.toml",
            "--limit",
            "1000",
            "--json",
        ])
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 400);
    let again = start
        .command(&["demo", "--folder", "demo"])
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("holds a demo already"));
}
