//! Statements about many rows at once, each written once for all databases.
//!
//! In their texts `{0}`, `{1}`, … stand for the values of a row. SQLite, which needs no network, runs such a statement for
//! one row after the other. PostgreSQL gets the columns as arrays and MySQL all rows as one JSON document, and both see
//! them as a table, so that a batch costs one round trip whatever its size, and one prepared statement serves all sizes.
//! MySQL gets new rows as literals instead, which costs it half as much.

use std::sync::OnceLock;

use super::Value;

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

/// The three ways in which a statement is written.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) sqlite: String,
    pub(super) postgres: String,
    pub(super) mysql: String,
}

/// What an insert does with a row whose key is there already.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// Fails.
    Fails,
    /// Leaves the row as it is.
    Stays,
    /// Adds to its column; the key is the one that decides.
    Adds {
        /// The columns of the key.
        key: &'static str,
        /// The column.
        column: &'static str,
    },
}

/// Inserts rows.
pub(crate) struct Insert {
    table: &'static str,
    columns: &'static [(&'static str, Kind)],
    known: Known,
    /// What is told of the rows that are new, their number first.
    returning: &'static str,
    /// The column, the last one, whose value is only in the rows that this insert makes.
    mark: &'static str,
    texts: OnceLock<Texts>,
}

impl Insert {
    pub(crate) const fn new(
        table: &'static str,
        columns: &'static [(&'static str, Kind)],
        known: Known,
    ) -> Self {
        Self {
            table,
            columns,
            known,
            returning: "",
            mark: "",
            texts: OnceLock::new(),
        }
    }

    /// Also has the database tell something of each new row.
    pub(crate) const fn returning(mut self, columns: &'static str) -> Self {
        self.returning = columns;
        self
    }

    /// Names the column, the last one, by which MySQL finds the rows that are new.
    pub(crate) const fn marked_by(mut self, column: &'static str) -> Self {
        self.mark = column;
        self
    }

    /// Finds the rows that an insert made, from the number of the first of them on.
    pub(super) fn new_rows(&self) -> String {
        let (returning, table, mark) = (self.returning, self.table, self.mark);
        let number = returning.split(',').next().unwrap_or_default();
        format!("select {returning} from {table} where {number} >= ? and {mark} = ? limit ?")
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.columns.iter().map(|(_, kind)| *kind)
    }

    pub(super) fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| {
            let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
            let kinds: Vec<Kind> = self.kinds().collect();
            let marks: Vec<String> = (0..names.len()).map(|index| format!("{{{index}}}")).collect();
            let (table, marks) = (self.table, marks.join(", "));
            let head = format!("insert into {table} ({})", names.join(", "));
            let (known, mysql_known) = match self.known {
                Known::Fails => (String::new(), String::new()),
                Known::Stays => (
                    " on conflict do nothing".to_owned(),
                    format!(" on duplicate key update {0} = {table}.{0}", names[0]),
                ),
                Known::Adds { key, column } => (
                    format!(" on conflict ({key}) do update set {column} = {table}.{column} + excluded.{column}"),
                    format!(" on duplicate key update {column} = {table}.{column} + values({column})"),
                ),
            };
            let returning = match self.returning {
                "" => String::new(),
                columns => format!(" returning {columns}"),
            };
            Texts {
                sqlite: format!("{head} values ({}){known}", sqlite(&marks)),
                postgres: format!(
                    "{head} select {} from {}{known}{returning}",
                    postgres(&marks),
                    unnest(&kinds, "")
                ),
                mysql: format!("{head} values ?{mysql_known}"),
            }
        })
    }
}

/// Changes the rows that match, which are found by their primary key.
pub(crate) struct Update {
    table: &'static str,
    set: &'static str,
    matching: &'static str,
    kinds: &'static [Kind],
    texts: OnceLock<Texts>,
}

impl Update {
    pub(crate) const fn new(
        table: &'static str,
        set: &'static str,
        matching: &'static str,
        kinds: &'static [Kind],
    ) -> Self {
        Self {
            table,
            set,
            matching,
            kinds,
            texts: OnceLock::new(),
        }
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.kinds.iter().copied()
    }

    pub(super) fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| {
            let (table, set, matching, kinds) = (self.table, self.set, self.matching, self.kinds);
            Texts {
                sqlite: format!(
                    "update {table} set {} where {}",
                    sqlite(set),
                    sqlite(matching)
                ),
                postgres: format!(
                    "update {table} set {} from {} where {}",
                    postgres(set),
                    unnest(kinds, ""),
                    postgres(matching)
                ),
                // Locked is what is read on the way: all of a small table, unless its rows are found by their keys.
                mysql: format!(
                    "update {} straight_join {table} force index (primary) on {} set {}",
                    json_table(kinds),
                    mysql(matching, kinds),
                    mysql(set, kinds)
                ),
            }
        })
    }
}

/// Deletes the rows that match.
pub(crate) struct Delete {
    table: &'static str,
    matching: &'static str,
    kinds: &'static [Kind],
    texts: OnceLock<Texts>,
}

impl Delete {
    pub(crate) const fn new(
        table: &'static str,
        matching: &'static str,
        kinds: &'static [Kind],
    ) -> Self {
        Self {
            table,
            matching,
            kinds,
            texts: OnceLock::new(),
        }
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.kinds.iter().copied()
    }

    pub(super) fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| {
            let (table, matching, kinds) = (self.table, self.matching, self.kinds);
            Texts {
                sqlite: format!("delete from {table} where {}", sqlite(matching)),
                postgres: format!(
                    "delete from {table} using {} where {}",
                    unnest(kinds, ""),
                    postgres(matching)
                ),
                mysql: format!(
                    "delete {table} from {} join {table} on {}",
                    json_table(kinds),
                    mysql(matching, kinds)
                ),
            }
        })
    }
}

/// Finds rows by the values of others.
pub(crate) struct Select {
    columns: &'static str,
    from: &'static str,
    matching: &'static str,
    kinds: &'static [Kind],
    locks: bool,
    /// Whether the first match of each row is enough.
    is_enough: bool,
    texts: OnceLock<Texts>,
}

impl Select {
    pub(crate) const fn new(
        columns: &'static str,
        from: &'static str,
        matching: &'static str,
        kinds: &'static [Kind],
    ) -> Self {
        Self {
            columns,
            from,
            matching,
            kinds,
            locks: false,
            is_enough: false,
            texts: OnceLock::new(),
        }
    }

    /// Looks for no more than one match of each row where the database can stop there.
    pub(crate) const fn first(mut self) -> Self {
        self.is_enough = true;
        self
    }

    /// Locks the rows, which are found by their primary key, in the order in which they are looked for.
    pub(crate) const fn locking(mut self) -> Self {
        self.locks = true;
        self
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.kinds.iter().copied()
    }

    pub(super) fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| {
            let (columns, from, matching) = (self.columns, self.from, self.matching);
            let lock = if self.locks { " for update" } else { "" };
            let by_key = match self.locks {
                true => " force index (primary)",
                false => "",
            };
            let limit = if self.is_enough { " limit 1" } else { "" };
            Texts {
                sqlite: format!(
                    "select {columns} from {from} where {}{limit}",
                    sqlite(matching)
                ),
                // A lateral query is run for one row after the other, by the index.
                postgres: format!(
                    "select v.n, q.* from {} cross join lateral (select {columns} from {from} where {}{limit}{lock}) q",
                    unnest(self.kinds, " with ordinality"),
                    postgres(matching)
                ),
                mysql: format!(
                    "select straight_join v.n, {columns} from {} join ({from}{by_key}) on {}{lock}",
                    json_table(self.kinds),
                    mysql(matching, self.kinds)
                ),
            }
        })
    }
}

/// Replaces `{n}` by what `value` makes of it.
fn filled(text: &str, value: impl Fn(usize) -> String) -> String {
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

fn sqlite(text: &str) -> String {
    filled(text, |index| format!("?{}", index + 1))
}

fn postgres(text: &str) -> String {
    filled(text, |index| format!("v.c{index}"))
}

fn mysql(text: &str, kinds: &[Kind]) -> String {
    filled(text, |index| match kinds[index] {
        Kind::Bytes => format!("from_base64(v.c{index})"),
        _ => format!("v.c{index}"),
    })
}

/// Makes a table of arrays, one for each column; with a number for each row where that is asked for.
fn unnest(kinds: &[Kind], ordinality: &str) -> String {
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
fn json_table(kinds: &[Kind]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_written_for_each_database() {
        static INSERT: Insert =
            Insert::new("t", &[("a", Kind::Int), ("b", Kind::Bytes)], Known::Stays).returning("a");
        let texts = INSERT.texts();
        assert_eq!(
            texts.sqlite,
            "insert into t (a, b) values (?1, ?2) on conflict do nothing"
        );
        assert_eq!(
            texts.postgres,
            "insert into t (a, b) select v.c0, v.c1 from unnest($1::bigint[], $2::bytea[]) as v(c0, c1) \
             on conflict do nothing returning a"
        );
        assert_eq!(
            texts.mysql,
            "insert into t (a, b) values ? on duplicate key update a = t.a"
        );
        static UPDATE: Update = Update::new(
            "t",
            "a = a - {1}, b = null",
            "k = {0}",
            &[Kind::Key, Kind::Int],
        );
        assert_eq!(
            UPDATE.texts().sqlite,
            "update t set a = a - ?2, b = null where k = ?1"
        );
        assert!(
            UPDATE
                .texts()
                .postgres
                .ends_with("as v(c0, c1) where k = v.c0")
        );
        assert!(UPDATE.texts().mysql.ends_with(
            "v straight_join t force index (primary) on k = v.c0 set a = a - v.c1, b = null"
        ));
    }

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
