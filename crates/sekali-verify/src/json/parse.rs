//! The reader of JSON documents.
//!
//! A recursive descent with a limit on its depth. It settles nothing that the grammar leaves open,
//! and strings are read next door.

use super::{Json, JsonError, MAX_DEPTH, MAX_VALUES};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads one document with nothing but blanks around it.
pub(super) fn document(text: &[u8]) -> Result<Json<'_>, JsonError> {
    let text = std::str::from_utf8(text).map_err(|_| JsonError::NotUtf8)?;
    let at = if text.as_bytes().starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    };
    let mut parser = Parser {
        text,
        at,
        depth: 0,
        values: 0,
    };
    parser.skip_blanks();
    if parser.peek().is_none() {
        return Err(JsonError::Empty);
    }
    let value = parser.value()?;
    parser.skip_blanks();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.syntax()),
    }
}

/// A place in a document.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    depth: usize,
    values: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self) -> Result<Json<'a>, JsonError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(JsonError::TooManyValues);
        }
        match self.peek() {
            Some(b'"') => self.string().map(Json::String),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.syntax()),
        }
    }

    /// Counts the depth, so that no document can exhaust the stack.
    fn nested(
        &mut self,
        container: fn(&mut Self) -> Result<Json<'a>, JsonError>,
    ) -> Result<Json<'a>, JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.depth += 1;
        self.at += 1;
        self.skip_blanks();
        let value = container(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Json<'a>, JsonError> {
        let mut members = Vec::new();
        if self.eat(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.syntax());
            }
            let key = self.string()?;
            self.skip_blanks();
            self.expect(b':')?;
            self.skip_blanks();
            members.push((key, self.value()?));
            if self.is_last(b'}')? {
                return Ok(Json::Object(members));
            }
        }
    }

    fn array(&mut self) -> Result<Json<'a>, JsonError> {
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.is_last(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    /// Takes the comma in front of the next element, or the end of the container.
    fn is_last(&mut self, end: u8) -> Result<bool, JsonError> {
        self.skip_blanks();
        if self.eat(b',') {
            self.skip_blanks();
            return Ok(false);
        }
        self.expect(end)?;
        Ok(true)
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.syntax());
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Ok(Json::Number(&self.text[start..self.at]))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let count = self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        self.at += count;
        if count == 0 {
            Err(self.syntax())
        } else {
            Ok(())
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    pub(super) fn syntax(&self) -> JsonError {
        JsonError::Syntax { offset: self.at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_limited() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(document(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(
            document(nested(MAX_DEPTH + 1).as_bytes()),
            Err(JsonError::TooDeep)
        );
        assert_eq!(
            document("[".repeat(1_000_000).as_bytes()),
            Err(JsonError::TooDeep)
        );
        assert!(document(format!("[{}1]", "[[]],".repeat(1000)).as_bytes()).is_ok());
    }

    #[test]
    fn values_are_counted() {
        let list = |items: usize| format!("[{}1]", "1,".repeat(items - 1));
        assert!(document(list(MAX_VALUES - 1).as_bytes()).is_ok());
        assert_eq!(
            document(list(MAX_VALUES).as_bytes()),
            Err(JsonError::TooManyValues)
        );
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(document(b""), Err(JsonError::Empty));
        assert_eq!(document(b"\xef\xbb\xbf \r\n"), Err(JsonError::Empty));
        assert_eq!(document(b"\"\xff\""), Err(JsonError::NotUtf8));
        assert_eq!(
            document(b"\xef\xbb\xbf{]"),
            Err(JsonError::Syntax { offset: 4 })
        );
        assert_eq!(document(b"{} {}"), Err(JsonError::Syntax { offset: 3 }));
        assert_eq!(document(b"[1,]"), Err(JsonError::Syntax { offset: 3 }));
    }

    #[test]
    fn numbers_stay_as_written() {
        for text in ["0", "-0", "1.50", "1E+2", "9007199254740993", "1e999"] {
            assert_eq!(document(text.as_bytes()), Ok(Json::Number(text)));
        }
        for text in ["01", "+1", ".5", "1.", "1e", "-", "0x1", "NaN", "1_0"] {
            assert!(document(text.as_bytes()).is_err(), "{text}");
        }
    }
}
