//! Bodies that somebody on the way may have changed, changed back.

use std::fmt::Write as _;

use bytes::Bytes;

use crate::json::{Json, Text};

type Variant = (&'static str, &'static str, Bytes);

const LINE_END: &str =
    "a line end was added to or taken from the end of the body: pass the raw bytes on";
const LINE_ENDS: &str = "the line ends of the body were changed: pass the raw bytes on";
const MARK: &str = "a byte order mark was added to or taken from the body: pass the raw bytes on";
const PRINTED: &str =
    "the body was parsed and printed again: verify the raw bytes, before any JSON middleware";
const DECODED: &str = "the escapes in the body were decoded or written anew: verify the raw bytes";

/// Lists changed bodies, the likeliest first.
pub(super) fn variants(body: &Bytes) -> Vec<Variant> {
    let mut all: Vec<Variant> = Vec::new();
    let with = |end: &[u8]| Bytes::from([body, end].concat());
    for end in [&b"\n"[..], b"\r\n"] {
        all.push(("body_line_end", LINE_END, with(end)));
        if let Some(front) = body.strip_suffix(end) {
            all.push(("body_line_end", LINE_END, Bytes::copy_from_slice(front)));
        }
    }
    let text = String::from_utf8_lossy(body);
    all.push((
        "body_line_ends",
        LINE_ENDS,
        text.replace("\r\n", "\n").into(),
    ));
    let single = text.replace("\r\n", "\n").replace('\n', "\r\n");
    all.push(("body_line_ends", LINE_ENDS, single.into()));
    match body.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => all.push(("body_mark", MARK, Bytes::copy_from_slice(rest))),
        None => all.push((
            "body_mark",
            MARK,
            [b"\xef\xbb\xbf", &body[..]].concat().into(),
        )),
    }
    if let Ok(json) = Json::parse(body) {
        for style in Style::ALL {
            for escapes in Escapes::ALL {
                let code = match escapes {
                    Escapes::None => ("body_printed_again", PRINTED),
                    _ => ("body_escapes", DECODED),
                };
                all.push((code.0, code.1, print(&json, style, escapes).into()));
            }
        }
    }
    all.retain(|(_, _, changed)| changed != body);
    all
}

/// How printers of JSON use blanks.
#[derive(Clone, Copy)]
struct Style {
    indent: usize,
    after_comma: &'static str,
    after_colon: &'static str,
}

impl Style {
    /// JavaScript and Go, Python, and pretty printers.
    const ALL: [Self; 4] = [
        Self::of(0, "", ""),
        Self::of(0, " ", " "),
        Self::of(2, "", " "),
        Self::of(4, "", " "),
    ];

    const fn of(indent: usize, after_comma: &'static str, after_colon: &'static str) -> Self {
        Self {
            indent,
            after_comma,
            after_colon,
        }
    }
}

/// What printers of JSON escape beside what they must.
#[derive(Clone, Copy)]
enum Escapes {
    None,
    /// Python and PHP write all but ASCII as `\uXXXX`.
    NotAscii,
    /// PHP escapes slashes as well.
    NotAsciiAndSlash,
    /// Go escapes `<`, `>` and `&`.
    Html,
}

impl Escapes {
    const ALL: [Self; 4] = [
        Self::None,
        Self::NotAscii,
        Self::NotAsciiAndSlash,
        Self::Html,
    ];
}

fn print(json: &Json<'_>, style: Style, escapes: Escapes) -> String {
    let mut printer = Printer {
        out: String::new(),
        style,
        escapes,
    };
    printer.value(json, 0);
    printer.out
}

struct Printer {
    out: String,
    style: Style,
    escapes: Escapes,
}

impl Printer {
    fn value(&mut self, json: &Json<'_>, depth: usize) {
        match json {
            Json::Null => self.out.push_str("null"),
            Json::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Json::Number(number) => self.out.push_str(number),
            Json::String(text) => self.text(text),
            Json::Array(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.separate(index, depth + 1);
                    self.value(item, depth + 1);
                }
                self.end(items.is_empty(), depth);
                self.out.push(']');
            }
            Json::Object(members) => {
                self.out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    self.separate(index, depth + 1);
                    self.text(name);
                    self.out.push(':');
                    self.out.push_str(self.style.after_colon);
                    self.value(value, depth + 1);
                }
                self.end(members.is_empty(), depth);
                self.out.push('}');
            }
        }
    }

    fn separate(&mut self, index: usize, depth: usize) {
        if index > 0 {
            self.out.push(',');
            self.out.push_str(self.style.after_comma);
        }
        if self.style.indent > 0 {
            self.line(depth);
        }
    }

    fn end(&mut self, is_empty: bool, depth: usize) {
        if self.style.indent > 0 && !is_empty {
            self.line(depth);
        }
    }

    fn line(&mut self, depth: usize) {
        self.out.push('\n');
        let blanks = depth * self.style.indent;
        self.out.extend(std::iter::repeat_n(' ', blanks));
    }

    fn text(&mut self, text: &Text<'_>) {
        self.out.push('"');
        for character in String::from_utf8_lossy(text.as_bytes()).chars() {
            let is_escaped = match (self.escapes, character) {
                (_, '"' | '\\') => {
                    self.out.push('\\');
                    false
                }
                (Escapes::NotAsciiAndSlash, '/') => {
                    self.out.push('\\');
                    false
                }
                (_, '\n') => {
                    self.out.push_str("\\n");
                    continue;
                }
                (_, '\r') => {
                    self.out.push_str("\\r");
                    continue;
                }
                (_, '\t') => {
                    self.out.push_str("\\t");
                    continue;
                }
                (Escapes::NotAscii | Escapes::NotAsciiAndSlash, character) => {
                    !character.is_ascii() || character.is_ascii_control()
                }
                (Escapes::Html, '<' | '>' | '&') => true,
                (_, character) => character.is_ascii_control(),
            };
            if !is_escaped {
                self.out.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(self.out, "\\u{unit:04x}");
            }
        }
        self.out.push('"');
    }
}
