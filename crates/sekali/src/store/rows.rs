//! Rows of values, and statements about many of them at once, each written once for all databases.
//!
//! In their texts `{0}`, `{1}`, … stand for the values of a row. SQLite, which needs no network, runs such a statement for
//! one row after the other. PostgreSQL gets the columns as arrays and MySQL all rows as one JSON document, and both see
//! them as a table, so that a batch costs one round trip whatever its size, and one prepared statement serves all sizes.
//! MySQL gets new rows as literals instead, which costs it half as much.

use super::Value;

mod dialect;
mod statement;

pub(crate) use statement::{Delete, Insert, Known, Select, Update};

/// What a value is, where nothing shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Is an integer of 64 bits.
    Int,
    /// Is text of any length.
    Text,
    /// Is text of at most 255 bytes, which rows are found by.
    Key,
    /// Is bytes.
    Bytes,
}

/// Rows of values, all of one width.
pub(crate) struct Rows<'v> {
    width: usize,
    values: Vec<Value<'v>>,
}

impl<'v> Rows<'v> {
    pub(crate) fn with_capacity(width: usize, len: usize) -> Self {
        Self {
            width,
            values: Vec::with_capacity(width * len),
        }
    }

    pub(crate) fn push<const N: usize>(&mut self, row: [Value<'v>; N]) {
        debug_assert_eq!(N, self.width, "a row has another width");
        self.values.extend(row);
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.width
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[Value<'v>]> {
        self.values.chunks_exact(self.width)
    }

    /// Gives the values of one column.
    pub(super) fn column(&self, index: usize) -> impl Iterator<Item = Value<'v>> {
        self.values.iter().skip(index).step_by(self.width).copied()
    }
}

impl<'v> FromIterator<i64> for Rows<'v> {
    fn from_iter<T: IntoIterator<Item = i64>>(numbers: T) -> Self {
        Self {
            width: 1,
            values: numbers.into_iter().map(Value::Int).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_rows_are_taken_out() {
        let mut rows = Rows::with_capacity(2, 2);
        rows.push([1.into(), Value::Text("a")]);
        rows.push([2.into(), Value::Null(Kind::Text)]);
        let numbers: Vec<_> = rows.column(0).collect();
        assert!(matches!(numbers[..], [Value::Int(1), Value::Int(2)]));
        assert_eq!((rows.len(), rows.iter().len()), (2, 2));
    }
}
