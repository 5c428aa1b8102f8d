//! Secrets and personal data in logs and records.

use crate::support::{Hook, Server, Start, eventually, hook, now, order, orders_with};

const SECRET: &str = "MARKER-secret-not-for-production-6f1c";
const HEADERS: [(&str, &str); 4] = [
    ("Authorization", "Bearer MARKER-authorization-77aa"),
    ("Cookie", "session=MARKER-cookie-88bb"),
    ("X-Custom-Key", "MARKER-custom-key-99cc"),
    ("X-Unlisted", "MARKER-unlisted-00dd"),
];
const BODY: &str = "MARKER-body-11ee";

fn marked(id: &str, entity_id: &str, version: i64) -> Hook {
    marked_body(id, &order(entity_id, version, BODY))
}

fn marked_body(id: &str, body: &str) -> Hook {
    HEADERS
        .iter()
        .fold(hook(id, body).secret(SECRET), |hook, (name, value)| {
            hook.header(name, value)
        })
}

fn start() -> Server {
    let settings = "store_headers = [\"Authorization\", \"Cookie\", \"X-Custom-Key\"]\n\
        retry = { base = \"10ms\", cap = \"10ms\", max_attempts = 2 }";
    let config = format!(
        "{}\n[log]\nformat = \"json\"\nlevel = \"trace\"\n[server]\nmax_body = \"4KiB\"\n",
        orders_with(settings)
    );
    let server = Start::new(&config).env("ORDERS_SECRET", SECRET).serve();
    server.edit(
        "create trigger order_refused before insert on orders when new.entity_id = 'refused'
        begin select raise(abort, 'refused'); end;
        create unique index order_status on orders (status) where entity_id like 'unique%'",
    );
    server
}

/// Takes every way that a delivery or an event can go, and returns all answers.
fn every_path(server: &Server) -> String {
    let big = format!("{{\"entity_id\":\"{BODY}{}\"}}", " ".repeat(5000));
    let replies = [
        marked("fine", "o-1", 1),
        marked("fine", "o-1", 1),
        marked("fine", "o-1", 2),
        marked("stale", "o-1", 1),
        marked("refused", "refused", 1),
        marked("unique-1", "unique-1", 1),
        marked("unique-2", "unique-2", 1),
        marked("forged", "o-1", 3).secret("MARKER-secret-of-a-stranger-22ff"),
        marked("malformed", "o-1", 3).signature("v1=MARKER-signature-33aa"),
        marked("expired", "o-1", 3).timestamp(now() - 4000),
        marked("unit", "o-1", 3).timestamp(now() * 1000),
        marked("unreadable", "o-1", 3).timestamp("MARKER-timestamp-44bb"),
        marked_body("no-json", &format!("{{\"{BODY}\"")),
        marked_body("no-entity", &format!("{{\"x\":\"{BODY}\"}}")),
        marked_body("big", &big),
    ];
    let answers = replies.iter().map(|hook| {
        let reply = hook.send(server);
        format!("{:?} {}\n", reply.headers, reply.text())
    });
    let answers = answers.collect();
    server.wait_applied();
    server.edit("alter table orders rename to hidden");
    assert_eq!(marked("missing", "o-2", 1).send(server).status, 202);
    eventually("it is given up", || {
        server.status("missing") == "dead_letter"
    });
    answers
}

#[test]
fn c36_no_marker_of_secrets_headers_or_bodies_stands_in_logs_rows_answers_or_metrics() {
    let server = start();
    let answers = every_path(&server);
    assert_eq!(server.status("refused"), "dead_letter");
    assert_eq!(server.status("unique-2"), "dead_letter");
    let outcomes = "select distinct outcome from webhook_deliveries";
    eventually("every outcome has its row", || {
        server.column(outcomes, &[]).len() >= 6
    });
    let log = server.log();
    assert!(
        log.contains("\"level\":\"DEBUG\""),
        "the log is not at debug"
    );
    assert!(!answers.contains("MARKER"), "{answers}");
    let leak = log.lines().find(|line| line.contains("MARKER"));
    assert_eq!(leak, None, "in the log");
    let metrics = server.internal("/metrics").text();
    assert!(!metrics.contains("MARKER"), "{metrics}");
    for table in [
        "webhook_deliveries",
        "webhook_attempts",
        "webhook_inbox",
        "webhook_rejections",
    ] {
        assert_eq!(leaks(&server, table, None), [""; 0], "in {table}");
    }
    // Bodies stand in these two, and nowhere else; headers are digests there.
    for table in ["webhook_payloads", "webhook_variants"] {
        assert_eq!(leaks(&server, table, Some("body")), [""; 0], "in {table}");
    }
    let digests =
        "select count(*) from webhook_payloads where headers like '%\"authorization\":\"sha256:%'";
    assert!(server.count(digests, &[]) > 0, "the digests are not there");
}

#[test]
fn c36_commands_show_bodies_only_where_asked() {
    let server = start();
    every_path(&server);
    for arguments in [
        &["events", "list"][..],
        &["events", "list", "--json"],
        &["events", "show", "fine"],
        &["events", "show", "fine", "--json"],
        &["entities", "show", "orders", "", "o-1"],
        &["check"],
        &["prune"],
    ] {
        let output = server.run(arguments);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(!said.contains("MARKER"), "{arguments:?}: {said}");
    }
    let shown = server.run(&["events", "show", "fine", "--body"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains(BODY));
}

/// Returns the columns of a table in which a marker stands.
fn leaks(server: &Server, table: &str, except: Option<&str>) -> Vec<String> {
    let names = server.column("select name from pragma_table_info(?)", &[&table]);
    assert!(names.len() > 2, "{table} has no columns");
    let is_leak = |name: &String| {
        let sql =
            format!("select count(*) from {table} where instr(cast({name} as text), 'MARKER') > 0");
        except != Some(name) && server.count(&sql, &[]) > 0
    };
    names.into_iter().filter(is_leak).collect()
}
