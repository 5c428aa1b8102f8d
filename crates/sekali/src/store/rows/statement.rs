//! The statements: what each does, and how it is written for the three databases.

use std::sync::OnceLock;

use super::Kind;
use super::dialect::{json_table, mysql, postgres, sqlite, unnest};

/// The three ways in which a statement is written.
#[derive(Debug)]
pub(in crate::store) struct Texts {
    pub(in crate::store) sqlite: String,
    pub(in crate::store) postgres: String,
    pub(in crate::store) mysql: String,
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
    pub(in crate::store) fn new_rows(&self) -> String {
        let (returning, table, mark) = (self.returning, self.table, self.mark);
        let number = returning.split(',').next().unwrap_or_default();
        format!("select {returning} from {table} where {number} >= ? and {mark} = ? limit ?")
    }

    pub(in crate::store) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.columns.iter().map(|(_, kind)| *kind)
    }

    pub(in crate::store) fn texts(&self) -> &Texts {
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

    pub(in crate::store) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.kinds.iter().copied()
    }

    pub(in crate::store) fn texts(&self) -> &Texts {
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

    pub(in crate::store) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.kinds.iter().copied()
    }

    pub(in crate::store) fn texts(&self) -> &Texts {
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

    pub(in crate::store) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.kinds.iter().copied()
    }

    pub(in crate::store) fn texts(&self) -> &Texts {
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
}
