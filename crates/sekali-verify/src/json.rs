//! Strict JSON that keeps what a webhook's text says.
//!
//! Numbers stay as written, duplicate keys stay, half characters stay: what is ambiguous is seen
//! and refused by whoever looks it up, not settled here in silence. There is no conversion to
//! other types; a value is written back with the numbers it was read with.

mod parse;
mod pointer;
mod string;
mod text;
mod write;

use thiserror::Error;

pub use pointer::{Pointer, PointerError};
pub use text::Text;

/// The deepest nesting of arrays and objects that is read.
pub const MAX_DEPTH: usize = 128;

/// The most values that are read in one document, so that memory is bounded by more than the body's size.
pub const MAX_VALUES: usize = 500_000;

/// A JSON value that borrows from its text; numbers as written, duplicate keys kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json<'a> {
    /// Is `null`.
    Null,
    /// Is `true` or `false`.
    Bool(bool),
    /// Is a number, with the digits that were written.
    Number(&'a str),
    /// Is a string.
    String(Text<'a>),
    /// Is an array.
    Array(Vec<Json<'a>>),
    /// Is an object, with its members in the order of the text.
    Object(Vec<(Text<'a>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Reads exactly one document after RFC 8259; a leading UTF-8 byte order mark is passed over.
    pub fn parse(text: &'a [u8]) -> Result<Self, JsonError> {
        parse::document(text)
    }

    /// Finds the value that a pointer names, if there is one.
    ///
    /// # Errors
    ///
    /// A key on the way that occurs twice in its object is refused: two readers may well take two
    /// different ones.
    pub fn get(&self, pointer: &Pointer) -> Result<Option<&Self>, Ambiguous> {
        pointer.find(self)
    }

    /// Gives the text of a string, unless half a character is in it.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => text.as_str(),
            _ => None,
        }
    }
}

/// The reason why a text is no JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum JsonError {
    /// Says that the bytes are no UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// Says that the grammar is violated at this byte.
    #[error("the body is not JSON: unexpected content at byte {offset}")]
    Syntax {
        /// The byte at which reading stopped, counted from 0.
        offset: usize,
    },
    /// Says that arrays and objects are nested too deeply.
    #[error("the body is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Says that there are too many values.
    #[error("the body has more than {MAX_VALUES} values")]
    TooManyValues,
    /// Says that there is nothing but blanks.
    #[error("the body is empty")]
    Empty,
}

/// The reason why a pointer names more than one value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the key at `{at}` occurs more than once in its object")]
pub struct Ambiguous {
    at: String,
}

impl Ambiguous {
    /// Gives the pointer to the key that is repeated.
    pub fn at(&self) -> &str {
        &self.at
    }
}
