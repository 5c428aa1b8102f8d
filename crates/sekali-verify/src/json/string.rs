//! The strings of JSON documents, and their escapes.
//!
//! Scanned eight bytes at a time and borrowed whole; nothing is copied that has no escape in it.
//! Half characters are passed on and judged by nobody here.

use super::parse::Parser;
use super::{JsonError, Text};

impl<'a> Parser<'a> {
    /// Reads a string whose opening quote is next.
    pub(super) fn string(&mut self) -> Result<Text<'a>, JsonError> {
        self.at += 1;
        let start = self.at;
        self.at = plain_end(self.text.as_bytes(), start);
        if self.peek() == Some(b'\\') {
            return self.escaped_string(start);
        }
        let text = &self.text[start..self.at];
        self.expect(b'"')?;
        Ok(Text::Borrowed(text))
    }

    #[cold]
    fn escaped_string(&mut self, start: usize) -> Result<Text<'a>, JsonError> {
        let mut out = self.text.as_bytes()[start..self.at].to_vec();
        while self.eat(b'\\') {
            self.escape(&mut out)?;
            let end = plain_end(self.text.as_bytes(), self.at);
            out.extend_from_slice(&self.text.as_bytes()[self.at..end]);
            self.at = end;
        }
        self.expect(b'"')?;
        Ok(Text::from_unescaped(out))
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => b'\x08',
            Some(b'f') => b'\x0c',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode_escape(out),
            _ => return Err(self.syntax()),
        };
        self.at += 1;
        out.push(byte);
        Ok(())
    }

    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        self.at += 1;
        let unit = self.code_unit(self.at).ok_or_else(|| self.syntax())?;
        self.at += 4;
        let mut code = unit;
        if (0xd800..0xdc00).contains(&unit)
            && self.rest().starts_with(b"\\u")
            && let Some(low @ 0xdc00..0xe000) = self.code_unit(self.at + 2)
        {
            self.at += 6;
            code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        }
        push_code(code, out);
        Ok(())
    }

    fn code_unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.as_bytes().get(at..at + 4)?;
        digits.iter().try_fold(0, |unit, digit| {
            Some(unit << 4 | char::from(*digit).to_digit(16)?)
        })
    }
}

/// Finds the first quote, backslash or control character, which all are ASCII.
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        // The high bit of each byte that is zero, or below 0x20. A borrow can only mark bytes
        // above a true hit, so the lowest mark is exact.
        let marks = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let marks = marks & (ONES * 0x80);
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes[at..]
        .iter()
        .position(is_special)
        .map_or(bytes.len(), |offset| at + offset)
}

/// Surrogates are no characters; they get the three bytes that UTF-8 would have for them.
fn push_code(code: u32, out: &mut Vec<u8>) {
    if let Some(character) = char::from_u32(code) {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let tail = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
        out.extend_from_slice(&[0xe0 | (code >> 12) as u8, tail(6), tail(0)]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Json, parse::document};
    use super::*;

    fn string(text: &str) -> Text<'_> {
        match document(text.as_bytes()) {
            Ok(Json::String(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        assert!(matches!(
            string("\"long enough for the é scan\""),
            Text::Borrowed(_)
        ));
        assert_eq!(
            string(r#""\"\\\/\b\f\n\r\t""#).as_str(),
            Some("\"\\/\x08\x0c\n\r\t")
        );
        assert_eq!(string(r#""aé\u00e9 \u20AC z""#).as_str(), Some("aéé € z"));
    }

    #[test]
    fn pairs_are_joined_and_halves_kept() {
        assert_eq!(string(r#""\ud83d\ude00""#).as_str(), Some("😀"));
        for text in [
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud800\ud83d\ude00""#,
            r#""\ud800x""#,
        ] {
            assert_eq!(string(text).as_str(), None, "{text}");
        }
        assert_eq!(string(r#""\ud800""#).as_bytes(), [0xed, 0xa0, 0x80]);
        assert_ne!(string(r#""\ud800""#), string(r#""\ud801""#));
    }

    #[test]
    fn the_scan_finds_every_special_byte_at_every_place() {
        for special in (0..0x20).chain([b'"', b'\\']) {
            for place in 0..20 {
                let mut bytes = [0xc3, b'!', b'#', b' ', 0xff, 0x80, b'[', b']'].repeat(3);
                bytes[place] = special;
                bytes[place + 1] = b'"';
                assert_eq!(plain_end(&bytes, 0), place, "{special:#x}");
            }
        }
        assert_eq!(plain_end(b"plain text", 2), 10);
    }
}
