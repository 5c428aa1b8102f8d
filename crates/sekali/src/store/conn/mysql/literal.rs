//! Values written into the text of a statement.
//!
//! Many rows in one statement would need as many prepared statements as there are numbers of rows. Texts and bytes are
//! written as hexadecimal digits, so that nothing in them can end the literal, whatever the server takes for an escape.

use std::fmt::Write as _;

use crate::store::Value;
use crate::store::rows::Rows;

/// A longer value is written as base64, which takes less of the largest packet that the server accepts.
const LONG: usize = 64 * 1024;

/// Writes rows as `(…), (…)`.
pub(super) fn rows(rows: &Rows<'_>) -> String {
    let mut out = String::with_capacity(rows.len() * 512);
    for (index, row) in rows.iter().enumerate() {
        out.push_str(if index == 0 { "(" } else { ", (" });
        for (index, value) in row.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            push(&mut out, value);
        }
        out.push(')');
    }
    out
}

/// Writes values in the places of the question marks; names must not hold any.
pub(in crate::store) fn rendered<'v>(
    sql: &str,
    values: impl IntoIterator<Item = &'v Value<'v>>,
) -> String {
    let mut values = values.into_iter();
    let mut out = String::with_capacity(sql.len() + 128);
    for (index, part) in sql.split('?').enumerate() {
        if index > 0 {
            match values.next() {
                Some(value) => push(&mut out, value),
                // The statement is refused by the server as one with a missing value would be.
                None => out.push('?'),
            }
        }
        out.push_str(part);
    }
    out
}

fn push(out: &mut String, value: &Value<'_>) {
    match *value {
        Value::Null(_) => out.push_str("null"),
        // Writing to a text cannot fail.
        Value::Int(value) => drop(write!(out, "{value}")),
        Value::Text(text) if is_plain(text) => {
            out.push('\'');
            out.push_str(text);
            out.push('\'');
        }
        Value::Text(text) if text.len() > LONG => {
            out.push_str("convert(");
            push_long(out, text.as_bytes());
            out.push_str(" using utf8mb4)");
        }
        Value::Text(text) => {
            out.push_str("_utf8mb4 ");
            push_digits(out, text.as_bytes());
        }
        Value::Bytes(bytes) if bytes.len() > LONG => push_long(out, bytes),
        Value::Bytes(bytes) => push_digits(out, bytes),
    }
}

/// Tells whether a text is short and has no character that any server could take for more than itself.
fn is_plain(text: &str) -> bool {
    let is_harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/ ".contains(byte);
    text.len() < 256 && text.as_bytes().iter().all(is_harmless)
}

fn push_digits(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push_str("x'");
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out.push('\'');
}

fn push_long(out: &mut String, bytes: &[u8]) {
    use base64::Engine as _;
    out.push_str("from_base64('");
    base64::prelude::BASE64_STANDARD.encode_string(bytes, out);
    out.push_str("')");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Kind;

    #[test]
    fn nothing_in_a_value_can_end_its_literal() {
        let values = [
            i64::MIN.into(),
            "order.paid".into(),
            "it's \\ ü?".into(),
            Value::Bytes(b"\x00'"),
            Value::Null(Kind::Text),
            "".into(),
        ];
        assert_eq!(
            rendered("? ? ? ? ? ? end", &values),
            "-9223372036854775808 'order.paid' _utf8mb4 x'69742773205c20c3bc3f' x'0027' null '' end"
        );
        let long = "ü".repeat(LONG);
        let text = rendered("?", &[Value::Text(&long)]);
        assert!(
            text.starts_with("convert(from_base64('w7zDvMO8"),
            "{}",
            &text[..40]
        );
        assert!(text.len() < long.len() * 3 / 2);
    }

    #[test]
    fn rows_stand_behind_one_another() {
        let mut two = Rows::with_capacity(2, 2);
        two.push([1.into(), "a".into()]);
        two.push([2.into(), Value::Bytes(b"\xff")]);
        assert_eq!(rows(&two), "(1, 'a'), (2, x'ff')");
    }
}
