//! How a text with `{0}`, `{1}`, … is filled for each database, and how rows become a table there.

use super::Kind;

/// Replaces `{n}` by what `value` makes of it.
pub(super) fn filled(text: &str, value: impl Fn(usize) -> String) -> String {
    let mut parts = text.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((index, rest)) if let Ok(index) = index.parse() => {
                out.push_str(&value(index));
                out.push_str(rest);
            }
            _ => {
                out.push('{');
                out.push_str(part);
            }
        }
    }
    out
}

pub(super) fn sqlite(text: &str) -> String {
    filled(text, |index| format!("?{}", index + 1))
}

pub(super) fn postgres(text: &str) -> String {
    filled(text, |index| format!("v.c{index}"))
}

pub(super) fn mysql(text: &str, kinds: &[Kind]) -> String {
    filled(text, |index| match kinds[index] {
        Kind::Bytes => format!("from_base64(v.c{index})"),
        _ => format!("v.c{index}"),
    })
}

/// Makes a table of arrays, one for each column; with a number for each row where that is asked for.
pub(super) fn unnest(kinds: &[Kind], ordinality: &str) -> String {
    let array = |(index, kind): (usize, &Kind)| {
        let name = match kind {
            Kind::Int => "bigint",
            Kind::Text | Kind::Key => "text",
            Kind::Bytes => "bytea",
        };
        format!("${}::{name}[]", index + 1)
    };
    let arrays: Vec<String> = kinds.iter().enumerate().map(array).collect();
    let mut names: Vec<String> = (0..kinds.len()).map(|index| format!("c{index}")).collect();
    if !ordinality.is_empty() {
        names.push("n".to_owned());
    }
    format!(
        "unnest({}){ordinality} as v({})",
        arrays.join(", "),
        names.join(", ")
    )
}

/// Makes a table of a JSON array of arrays; `n` numbers its rows.
pub(super) fn json_table(kinds: &[Kind]) -> String {
    let column = |(index, kind): (usize, &Kind)| {
        let name = match kind {
            Kind::Int => "bigint",
            Kind::Text | Kind::Bytes => "longtext character set utf8mb4",
            Kind::Key => "varchar(255) character set utf8mb4",
        };
        format!("c{index} {name} path '$[{index}]'")
    };
    let columns: Vec<String> = kinds.iter().enumerate().map(column).collect();
    format!(
        "json_table(?, '$[*]' columns (n for ordinality, {})) v",
        columns.join(", ")
    )
}
