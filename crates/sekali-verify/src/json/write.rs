//! Writes a value back as compact JSON: numbers as they were read, members in their order.

use std::fmt;

use super::{Json, Text};

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => write_text(f, text),
            Self::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (key, value)) in members.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    write_text(f, key)?;
                    f.write_str(":")?;
                    value.fmt(f)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Writes a string; half a character cannot be UTF-8 and becomes the replacement character.
fn write_text(f: &mut fmt::Formatter<'_>, text: &Text<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in String::from_utf8_lossy(text.as_bytes()).chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            control if u32::from(control) < 0x20 => write!(f, "\\u{:04x}", u32::from(control))?,
            other => fmt::Write::write_char(f, other)?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn what_is_written_reads_back_the_same() {
        let text =
            r#"{"a":[1.50,1e2,-0],"b\"\\":"x\ny","c":{"d":null,"e":true},"f":[],"g":{},"é":"😀"}"#;
        let json = Json::parse(text.as_bytes()).unwrap();
        let written = json.to_string();
        assert!(written.contains("1.50,1e2,-0"));
        assert_eq!(Json::parse(written.as_bytes()).unwrap(), json);
    }
}
