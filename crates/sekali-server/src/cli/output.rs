//! What commands print: tables and sentences for a person, JSON for a script.

use std::io::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// Writes a line to standard output; a reader that went away, such as `head`, is no error.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Writes a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Writes a note to standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes an error and its causes, one a line.
pub(crate) fn error(error: &anyhow::Error) {
    let mut causes = error.chain();
    if let Some(first) = causes.next() {
        note(&format!("error: {first}"));
    }
    for cause in causes {
        note(&format!("  because: {cause}"));
    }
}

/// Writes a table.
pub(crate) fn table(head: &[&str], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.iter().map(|name| name.to_uppercase()));
    for row in rows {
        table.add_row(row);
    }
    line(&table.trim_fmt());
}

/// Writes a time in milliseconds UTC.
pub(crate) fn time(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms).map_or_else(|_| at_ms.to_string(), |at| at.to_string())
}

/// Writes a time in nanoseconds UTC.
pub(crate) fn time_ns(at_ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(at_ns))
        .map_or_else(|_| at_ns.to_string(), |at| at.to_string())
}

/// Writes a value, or a dash where there is none.
pub(crate) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
