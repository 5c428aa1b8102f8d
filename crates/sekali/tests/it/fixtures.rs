//! The real events of the research source, and the state in which they end.

use std::collections::BTreeMap;

use serde_json::Value;

use super::support::Rig;

pub(crate) const CONFIG: &str = include_str!("../../../../examples/research-sync/sekali.toml");
pub(crate) const SCHEMA: &str = include_str!("../../../../examples/research-sync/schema.sql");
const EVENTS: &str = include_str!("../../../../fixtures/research-events.jsonl");
const FINAL: &str = include_str!("../../../../fixtures/research-events.final.json");

/// Returns the events' ids and bodies.
pub(crate) fn events() -> Vec<(String, String)> {
    let event = |line: &str| {
        let json: Value = serde_json::from_str(line).unwrap();
        (
            json["event_id"].as_str().unwrap().to_owned(),
            line.to_owned(),
        )
    };
    EVENTS.lines().map(event).collect()
}

/// Compares the table and the tombstones with the expected final state.
pub(crate) async fn mismatches(rig: &Rig) -> Vec<String> {
    let (documents, entities) = expected();
    let sql = "select entity_id, current_source_version, source_url, source_content_hash, summary, last_event_id, \
        updated_at from research_documents";
    let mut mismatches = differences("document", &documents, rig.query(sql).await);
    let sql = "select entity_id, version, last_event_id, deleted from webhook_entities";
    mismatches.extend(differences("entity", &entities, rig.query(sql).await));
    mismatches
}

type Rows = BTreeMap<String, Vec<String>>;

fn expected() -> (Rows, Rows) {
    let all: BTreeMap<String, Value> = serde_json::from_str(FINAL).unwrap();
    let (mut documents, mut entities) = (Rows::new(), Rows::new());
    for (id, document) in all {
        let text = |name: &str| document[name].as_str().unwrap().to_owned();
        let is_deleted = document["deleted"].as_bool().unwrap();
        let version = document["version"].to_string();
        let entity = [
            version.clone(),
            text("event_id"),
            u8::from(is_deleted).to_string(),
        ];
        entities.insert(id.clone(), entity.to_vec());
        if !is_deleted {
            let row = [
                version,
                text("url"),
                text("content_hash"),
                text("summary"),
                text("event_id"),
                text("occurred_at"),
            ];
            documents.insert(id, row.to_vec());
        }
    }
    (documents, entities)
}

/// Lists the differences between expected rows and those found, whose first column is the key.
pub(crate) fn differences(
    what: &str,
    expected: &BTreeMap<String, Vec<String>>,
    found: Vec<Vec<String>>,
) -> Vec<String> {
    let found: Rows = found
        .into_iter()
        .map(|mut row| (row.remove(0), row))
        .collect();
    let keys: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    keys.into_iter()
        .filter(|key| expected.get(*key) != found.get(*key))
        .map(|key| {
            let (expected, found) = (expected.get(key), found.get(key));
            format!("{what} {key}: expected {expected:?}, found {found:?}")
        })
        .collect()
}
