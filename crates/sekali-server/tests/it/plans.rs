//! How PostgreSQL runs the statements of a receiver whose tables are young.
//!
//! It makes its plans while the tables are empty, keeps them, and counts no rows before a minute has passed. What it then
//! takes for small it would read as a whole, for each batch, while it grows. The server writes each plan to its log.

use super::support::{Database, Kind, Start, counted, eventually, hook, order};

const USER: &str = "receiver";
/// More often than PostgreSQL plans a statement anew for its values.
const ROUNDS: usize = 30;
const GROWING: [&str; 6] = [
    "webhook_inbox",
    "webhook_payloads",
    "webhook_deliveries",
    "webhook_entities",
    "webhook_positions",
    "webhook_attempts",
];

#[test]
fn a_young_table_is_never_read_as_a_whole() {
    let settings = [
        "autovacuum=off",
        "session_preload_libraries=auto_explain",
        "auto_explain.log_min_duration=0",
        "log_line_prefix=@%u@",
    ];
    let database = Database::start(Kind::Postgres, &[USER], &settings);
    database.sql(&counted::tables(Kind::Postgres));
    let server = Start::new("")
        .file("sekali.toml", counted::config(&database.url(USER)))
        .serve();
    for round in 0..ROUNDS {
        let id = format!("e-{round}");
        // Each is sent twice: what is known is found by other statements than what is new.
        for says in ["202 accepted", "200 duplicate"] {
            let body = order(&format!("o-{}", round % 3), round as i64, "paid");
            let reply = hook(&id, body).send(&server);
            assert_eq!(reply.says(), says, "{id}");
        }
        let applied = format!(
            "select count(*) from webhook_inbox where event_id = '{id}' and processing_status = 'processed'"
        );
        eventually("it is applied", || database.count(&applied) == 1);
    }
    let log = std::fs::read_to_string(database.folder().join("log")).unwrap();
    let plans: Vec<&str> = log
        .split("\n@")
        .filter_map(|entry| entry.strip_prefix(USER))
        .filter(|entry| entry.contains("plan:"))
        .collect();
    assert!(plans.len() > 10 * ROUNDS, "{} plans", plans.len());
    for plan in plans {
        for table in GROWING {
            let whole = format!("Seq Scan on {table}");
            assert!(!plan.contains(&whole), "{plan}");
        }
    }
}
