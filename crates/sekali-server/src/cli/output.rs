//! What commands print: tables and sentences for a person, JSON for a script.

use std::borrow::Cow;
use std::io::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// Writes a line to standard output; a reader that went away, such as `head`, is no error.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{}", shown(text));
}

/// Writes a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    // JSON itself escapes the other control characters. These can only stand inside of its strings.
    let text = serde_json::to_string_pretty(value)?;
    let text = escaped(&text, |character| {
        format!("\\u{:04x}", u32::from(character))
    });
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(())
}

/// Escapes control characters: a text of a stranger must not command the operator's terminal.
fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character.escape_default().to_string())
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    let is_command = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let shown = |character: char| match is_command(character) {
        true => escape(character),
        false => character.to_string(),
    };
    text.chars().map(shown).collect()
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
        table.add_row(row.iter().map(|cell| shown(cell)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(shown("a\tb\nc ü"), "a\tb\nc ü");
        assert_eq!(
            shown("\u{1b}]0;x\u{7}\r\u{9b}2J\0"),
            "\\u{1b}]0;x\\u{7}\\r\\u{9b}2J\\u{0}"
        );
    }
}
