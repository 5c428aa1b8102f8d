//! Effects: what applying an event does to the user's tables, declared in the configuration.
//!
//! An effect is checked once, when its source is built, and planned for each event away from the database: the values
//! are taken out of the payload there. Running the plan belongs to the worker, inside the apply transaction.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::identify::Lookup;
use crate::order::EffectOrder;
use crate::reason::Reason;
use crate::source::FieldRefs;
use crate::store::{Claimed, Value, Write, WriteKind};

mod value;

use value::Cell;

/// Why an effect could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The stable code.
    pub reason: Reason,
    /// What happened, for a person.
    pub message: String,
    /// Whether trying again cannot help.
    pub is_permanent: bool,
}

/// What an effect does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Writes the entity's row.
    Upsert,
    /// Deletes the entity's row and leaves a tombstone.
    Delete,
}

/// Where a column's value comes from.
#[derive(Clone, Debug)]
pub struct ColumnConfig {
    /// The places, in the order in which they are tried.
    pub from: FieldRefs,
    /// Whether the column becomes NULL where none of them holds a value; without it the event goes to the dead letter.
    pub optional: bool,
}

impl<'de> Deserialize<'de> for ColumnConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            from: FieldRefs,
            #[serde(default)]
            optional: bool,
        }
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "a place (\"/a/b\", \"header:Name\", \"event:field\"), a list of them, or { from = …, optional = true }"
        )]
        enum Form {
            Plain(FieldRefs),
            Table(Table),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Plain(from) => Self {
                from,
                optional: false,
            },
            Form::Table(Table { from, optional }) => Self { from, optional },
        })
    }
}

/// The settings of an effect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectConfig {
    /// What it does.
    pub kind: EffectKind,
    /// Event types it applies to; `*` stands for any text. All by default.
    #[serde(default)]
    pub when: Vec<String>,
    /// The table it writes.
    pub table: String,
    /// The columns that identify the row.
    pub key: BTreeMap<String, ColumnConfig>,
    /// The other columns that an upsert writes.
    #[serde(default)]
    pub columns: BTreeMap<String, ColumnConfig>,
    /// The column that holds the entity's version; it guards the write.
    pub version_column: Option<String>,
    /// Whether stale events have the effect.
    #[serde(default)]
    pub order: EffectOrder,
}

/// An effect, checked and with its statement made.
#[derive(Clone, Debug)]
pub struct Effect {
    name: String,
    kind: EffectKind,
    when: Vec<String>,
    order: EffectOrder,
    /// In the order in which the statement binds them.
    columns: Vec<(String, ColumnConfig)>,
    binds_version: bool,
    write: Write,
}

/// An effect with its values, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    values: Vec<Cell>,
}

impl Plan {
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        self.values.iter().map(Cell::as_value).collect()
    }
}

impl EffectConfig {
    fn check(&self) -> Result<(), String> {
        let names = [&self.table]
            .into_iter()
            .chain(self.key.keys())
            .chain(self.columns.keys());
        for name in names.chain(&self.version_column) {
            check_name(name)?;
        }
        if self.key.is_empty() {
            return Err("an effect needs at least one key column".into());
        }
        if let Some(name) = self
            .columns
            .keys()
            .find(|name| self.key.contains_key(*name))
        {
            return Err(format!("{name} is both a key and a column"));
        }
        if self
            .version_column
            .as_ref()
            .is_some_and(|name| self.columns.contains_key(name) || self.key.contains_key(name))
        {
            return Err(
                "version_column is written by itself and must not stand among the columns".into(),
            );
        }
        if self.kind == EffectKind::Delete && !self.columns.is_empty() {
            return Err("a delete writes no columns".into());
        }
        if self.order == EffectOrder::None && self.version_column.is_some() {
            return Err(
                "version_column guards the order of versions, and order = \"none\" has none".into(),
            );
        }
        Ok(())
    }
}

impl Effect {
    /// Checks an effect's settings; the message reads after its place in the configuration.
    pub fn build(config: &EffectConfig) -> Result<Self, String> {
        config.check()?;
        let is_upsert = config.kind == EffectKind::Upsert;
        let version = config.version_column.clone();
        let columns = crate::store::Columns {
            table: config.table.clone(),
            keys: config.key.keys().cloned().collect(),
            others: config.columns.keys().chain(&version).cloned().collect(),
            version: version.clone(),
        };
        let kind = if is_upsert {
            WriteKind::Upsert
        } else {
            WriteKind::Delete
        };
        let bound = config.key.iter().chain(&config.columns);
        Ok(Self {
            name: format!(
                "{} {}",
                if is_upsert { "upsert" } else { "delete" },
                config.table
            ),
            kind: config.kind,
            when: config.when.clone(),
            order: config.order,
            columns: bound
                .map(|(name, column)| (name.clone(), column.clone()))
                .collect(),
            binds_version: version.is_some(),
            write: Write::new(kind, columns),
        })
    }

    /// Returns what it does to which table, for decisions and logs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the table it writes.
    pub(crate) fn table(&self) -> &str {
        self.write.table()
    }

    /// Returns what it does.
    pub fn kind(&self) -> EffectKind {
        self.kind
    }

    /// Tells whether stale events have the effect.
    pub fn order(&self) -> EffectOrder {
        self.order
    }

    pub(crate) fn write(&self) -> &Write {
        &self.write
    }

    /// Tells whether it applies to an event type.
    pub fn matches(&self, event_type: &str) -> bool {
        self.when.is_empty()
            || self
                .when
                .iter()
                .any(|pattern| matches_pattern(pattern, event_type))
    }

    /// Tells whether a column would get a text that no database holds: with half a character or a NUL.
    pub(crate) fn meets_unwritable_text(&self, lookup: &Lookup<'_>) -> bool {
        self.columns
            .iter()
            .any(|(_, column)| value::is_unwritable(lookup, column))
    }

    /// Takes the values for one event out of its payload.
    pub(crate) fn plan(&self, event: &Claimed, lookup: &Lookup<'_>) -> Result<Plan, Failure> {
        if let (EffectOrder::LatestWins, Some(reason)) = (self.order, unordered(event)) {
            let message = format!("{}: {}", self.name, reason.sentence());
            return Err(Failure {
                reason,
                message,
                is_permanent: true,
            });
        }
        let mut values = Vec::with_capacity(self.columns.len() + 1);
        for (name, column) in &self.columns {
            values.push(value::read(event, lookup, name, column)?);
        }
        if self.binds_version {
            values.push(event.position.version.map_or(Cell::Null, Cell::Int));
        }
        Ok(Plan { values })
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_word = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && part
                .bytes()
                .next()
                .is_some_and(|first| !first.is_ascii_digit())
    };
    let is_ours = name.to_ascii_lowercase().starts_with("webhook_");
    match name.split('.').count() <= 2 && name.split('.').all(is_word) {
        true if is_ours => Err(format!("{name} is one of Sekali's own names (webhook_…)")),
        true => Ok(()),
        false => Err(format!(
            "{name} is no name of a table or column; it may have letters, digits and _"
        )),
    }
}

/// Matches a pattern in which `*` stands for any text, also none.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Tells why an event cannot be ordered; such a one is stored where the configuration was another when it came.
fn unordered(event: &Claimed) -> Option<Reason> {
    let position = &event.position;
    match (
        event.entity_id.is_empty(),
        position.version.or(position.occurred_at),
    ) {
        (true, _) => Some(Reason::EntityMissing),
        (false, None) => Some(Reason::PositionMissing),
        (false, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_types() {
        for (pattern, text, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("a.*", "a.b.c", true),
            ("*", "", true),
            ("*.deleted", "x.deleted", true),
            ("*.deleted", "deleted", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "ace", true),
            ("a*cc*e", "ace", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn names_cannot_smuggle_sql() {
        for name in [
            "a;drop",
            "a\"b",
            "",
            "1a",
            "a.b.c",
            "a b",
            "webhook_inbox",
            "main.é",
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("main.research_documents").is_ok());
    }
}
