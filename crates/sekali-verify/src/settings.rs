//! Values that an operator configures beside the secrets: a webhook id, an audience, a public key.

use std::collections::BTreeMap;
use std::fmt;

/// Configured values by name; some are secret, so that none is ever printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Finds a value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds a value, or replaces it.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Replaces every `{name}` by its value; none where a value is missing.
    pub fn expand(&self, text: &str) -> Option<String> {
        let mut expanded = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => expanded.push_str(text),
                Piece::Name(name) => expanded.push_str(self.get(name)?),
            }
        }
        Some(expanded)
    }

    /// Lists the names that a text refers to.
    pub fn names(text: &str) -> impl Iterator<Item = &str> {
        pieces(text).filter_map(|piece| match piece {
            Piece::Name(name) => Some(name),
            Piece::Text(_) => None,
        })
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Settings {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let owned = pairs
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()));
        Self(owned.collect())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

enum Piece<'t> {
    Text(&'t str),
    Name(&'t str),
}

/// Splits a text at its `{name}`s; a brace that never closes is text.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(inner) = rest.strip_prefix('{')
            && let Some((name, after)) = inner.split_once('}')
        {
            rest = after;
            return Some(Piece::Name(name));
        }
        let end = rest[1..].find('{').map_or(rest.len(), |found| found + 1);
        let (text, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Text(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_nothing_is_printed() {
        let settings: Settings = [("a", "1"), ("b", "two")].into_iter().collect();
        assert_eq!(settings.expand("x{a}-{b}{").as_deref(), Some("x1-two{"));
        assert_eq!(settings.expand("{c}"), None);
        assert_eq!(settings.expand(""), Some(String::new()));
        assert_eq!(Settings::names("{a}|{c}").collect::<Vec<_>>(), ["a", "c"]);
        assert!(!format!("{settings:?}").contains("two"));
    }
}
