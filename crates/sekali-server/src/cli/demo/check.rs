//! What became of it all: the table, and whether the documents are the expected ones.

use std::collections::BTreeMap;

use sekali::store::{Conn, DbError, Row, Transaction};
use sekali::{Error, Store};

use super::trouble::KINDS;
use super::{EVENTS, EXPECTED};
use crate::cli::output;
use crate::cli::traffic::Reply;

/// Prints what was sent, answered and made of it, and tells whether the documents are the expected ones.
pub(super) async fn report(store: &Store, replies: &[Reply]) -> anyhow::Result<bool> {
    print_table(replies);
    let statuses = store
        .read(Query(
            "select processing_status, count(*) from webhook_inbox group by 1 order by 1",
        ))
        .await?;
    let inbox: Vec<_> = statuses
        .iter()
        .map(|row| format!("{} {}", row[1], row[0]))
        .collect();
    output::line(&format!(
        "\nIn the inbox, each event once: {}.",
        inbox.join(", ")
    ));
    let variants = store
        .read(Query("select count(*), 'kept' from webhook_variants"))
        .await?;
    output::line(&format!(
        "Bodies kept as evidence: {}.",
        variants.first().map_or("0", |row| &row[0])
    ));
    let found = store.read(Query(DOCUMENTS)).await?;
    let problems = compare(&expected()?, &found);
    let accepted = replies
        .iter()
        .filter(|reply| reply.outcome == "accepted")
        .count();
    for problem in problems.iter().take(10) {
        output::line(&format!("WRONG: {problem}"));
    }
    let agrees = problems.is_empty() && accepted == EVENTS.lines().count();
    output::line(&match agrees {
        true => format!(
            "The {} documents in research_documents are exactly the expected ones.",
            found.len()
        ),
        false => format!(
            "The documents are NOT the expected ones: {} differ, {accepted} events were accepted.",
            problems.len()
        ),
    });
    Ok(agrees)
}

/// Prints what was sent, what was answered and what it means, by kind.
fn print_table(replies: &[Reply]) {
    let mut rows = Vec::new();
    for (kind, meaning) in KINDS {
        let mut answers: BTreeMap<String, usize> = BTreeMap::new();
        let of_kind = replies.iter().filter(|reply| reply.kind == *kind);
        for reply in of_kind.clone() {
            let status = reply
                .status
                .map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            *answers
                .entry(format!("{status} {}", reply.outcome))
                .or_default() += 1;
        }
        let answers: Vec<_> = answers
            .into_iter()
            .map(|(answer, count)| format!("{count} × {answer}"))
            .collect();
        rows.push(vec![
            (*kind).to_owned(),
            of_kind.count().to_string(),
            answers.join(", "),
            (*meaning).to_owned(),
        ]);
    }
    output::table(&["what", "sent", "answered", "what it means"], rows);
}

const DOCUMENTS: &str = "select entity_id, current_source_version, last_event_id, source_url, source_content_hash, summary, \
    updated_at from research_documents order by 1";

/// Reads rows of text.
struct Query(&'static str);

impl Transaction for Query {
    type Output = Vec<Vec<String>>;
    const STEP: &'static str = "read the result";

    async fn run(&self, conn: &mut Conn<'_>) -> sekali::Result<Self::Output> {
        let columns = self
            .0
            .split(" from ")
            .next()
            .unwrap_or_default()
            .split(',')
            .count();
        let read = |row: &Row<'_>| -> Result<Vec<String>, DbError> {
            let text = |index| {
                row.text(index)
                    .or_else(|_| row.int(index).map(|number| number.to_string()))
            };
            (0..columns).map(text).collect()
        };
        let rows = conn.fetch(self.0, &[], read).await;
        rows.map_err(|source| Error::Store {
            step: Self::STEP,
            source,
        })
    }
}

/// The expected rows, without the documents that were withdrawn.
pub(super) fn expected() -> anyhow::Result<BTreeMap<String, Option<Vec<String>>>> {
    let all: BTreeMap<String, serde_json::Value> = serde_json::from_str(EXPECTED)?;
    let row = |(id, document): (String, serde_json::Value)| {
        let is_deleted = document["deleted"].as_bool().unwrap_or_default();
        let text = |name: &str| match &document[name] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let names = [
            "version",
            "event_id",
            "url",
            "content_hash",
            "summary",
            "occurred_at",
        ];
        let columns = [id.clone()].into_iter().chain(names.map(text)).collect();
        (id, (!is_deleted).then_some(columns))
    };
    Ok(all.into_iter().map(row).collect())
}

fn compare(expected: &BTreeMap<String, Option<Vec<String>>>, found: &[Vec<String>]) -> Vec<String> {
    let found: BTreeMap<&str, &Vec<String>> =
        found.iter().map(|row| (row[0].as_str(), row)).collect();
    let mut problems = Vec::new();
    for (id, row) in expected {
        match (row, found.get(id.as_str())) {
            (Some(row), Some(stands)) if row == *stands => {}
            (None, None) => {}
            (row, stands) => problems.push(format!("{id} should be {row:?} and is {stands:?}")),
        }
    }
    let surplus = found.keys().filter(|id| !expected.contains_key(**id));
    problems.extend(surplus.map(|id| format!("{id} should not be there")));
    problems
}
