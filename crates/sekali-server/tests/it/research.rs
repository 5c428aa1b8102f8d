//! The shipped example, over the wire: its events in any order, more than once, end in the expected documents.

use std::collections::BTreeMap;

use serde_json::Value;

use super::support::{Connection, RESEARCH, Server, at_once, research_hook};

const EVENTS: &str = include_str!("../../../../fixtures/research-events.jsonl");
const EXPECTED: &str = include_str!("../../../../fixtures/research-events.final.json");
const CONNECTIONS: usize = 6;

/// What stands in the documents: version, event, content and summary by entity.
type Documents = BTreeMap<String, [String; 4]>;

fn expected() -> Documents {
    let all: BTreeMap<String, Value> = serde_json::from_str(EXPECTED).unwrap();
    let kept = all.into_iter().filter(|(_, row)| row["deleted"] == false);
    kept.map(|(id, row)| {
        let text = |name: &str| match &row[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let columns = ["version", "event_id", "content_hash", "summary"];
        (id, columns.map(text))
    })
    .collect()
}

fn found(server: &Server) -> Documents {
    let db = server.db();
    let columns = "entity_id, cast(current_source_version as text), last_event_id, source_content_hash, summary";
    let mut documents = db
        .prepare(&format!("select {columns} from research_documents"))
        .unwrap();
    let rows = documents.query_map([], |row| {
        let columns = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        Ok((row.get(0)?, columns))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn any_order_with_any_duplicates_ends_in_the_expected_documents() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut lines: Vec<&str> = EVENTS.lines().collect();
    let events = lines.len() as i64;
    for _ in 0..200 {
        lines.push(lines[dice.usize(..400)]);
    }
    dice.shuffle(&mut lines);
    let server = Server::start(RESEARCH);
    at_once(CONNECTIONS, |lane| {
        let mut connection = Connection::open(server.address());
        for line in lines.iter().skip(lane).step_by(CONNECTIONS) {
            let event: Value = serde_json::from_str(line).unwrap();
            let id = event["event_id"].as_str().unwrap();
            let reply = research_hook(id, line).send_on(&mut connection);
            let says = reply.expect("an answer").says();
            assert!(
                matches!(says.as_str(), "202 accepted" | "200 duplicate"),
                "{says}"
            );
        }
    });
    server.wait_applied();
    assert_eq!(
        server.count("select count(*) from webhook_inbox", &[]),
        events
    );
    assert_eq!(found(&server), expected());
}
