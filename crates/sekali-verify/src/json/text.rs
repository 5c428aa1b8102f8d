//! The strings of a JSON document.
//!
//! Borrowed from the document where they can be; half characters are kept as bytes, so that two
//! different texts never become equal.

use std::hash::{Hash, Hasher};

/// A JSON string with its escapes resolved; equal where its bytes are, however it was written.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Borrows a string that has no escapes.
    Borrowed(&'a str),
    /// Owns a string that had escapes.
    Unescaped(String),
    /// Holds a string with a lone surrogate, in the bytes of WTF-8.
    LoneSurrogate(Vec<u8>),
}

impl Text<'_> {
    /// Gives the string, unless half a character is in it.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Borrowed(text) => Some(text),
            Self::Unescaped(text) => Some(text),
            Self::LoneSurrogate(_) => None,
        }
    }

    /// Gives the bytes of the string: UTF-8, or WTF-8 where half a character is in it.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(text) => text.as_bytes(),
            Self::Unescaped(text) => text.as_bytes(),
            Self::LoneSurrogate(bytes) => bytes,
        }
    }

    /// Takes resolved bytes; that they are no UTF-8 means that a surrogate stands alone in them.
    pub(super) fn from_unescaped(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Unescaped(text),
            Err(error) => Self::LoneSurrogate(error.into_bytes()),
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text<'_> {}

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_of_the_bytes() {
        assert_eq!(Text::Borrowed("a"), Text::Unescaped("a".to_owned()));
        assert_ne!(
            Text::Borrowed("a"),
            Text::LoneSurrogate(vec![0xed, 0xa0, 0x80])
        );
    }

    #[test]
    fn half_a_character_is_no_str() {
        let half = Text::from_unescaped(vec![0xed, 0xa0, 0x80]);
        assert_eq!(
            (half.as_str(), half.as_bytes()),
            (None, &[0xed, 0xa0, 0x80][..])
        );
        assert_eq!(Text::from_unescaped(b"ab".to_vec()).as_str(), Some("ab"));
    }
}
