//! JSON pointers after RFC 6901.
//!
//! They name one value and have no wildcards. Configuration is read with them, so a bad one is
//! refused when it is parsed and not when the first event comes.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use super::{Ambiguous, Json};

/// A parsed pointer: `""` for the whole document, else `/` in front of each step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Pointer {
    text: String,
    steps: Vec<String>,
}

impl Pointer {
    /// Gives the pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Gives the keys and indexes of the path, unescaped.
    pub fn tokens(&self) -> &[String] {
        &self.steps
    }

    pub(super) fn find<'j, 'a>(
        &self,
        document: &'j Json<'a>,
    ) -> Result<Option<&'j Json<'a>>, Ambiguous> {
        let mut found = document;
        for (index, step) in self.steps.iter().enumerate() {
            let next = match found {
                Json::Object(members) => {
                    member(members, step).map_err(|Repeated| self.ambiguous(index))?
                }
                Json::Array(items) => array_index(step).and_then(|index| items.get(index)),
                _ => None,
            };
            let Some(next) = next else {
                return Ok(None);
            };
            found = next;
        }
        Ok(Some(found))
    }

    /// Shows the pointer up to the step that is ambiguous.
    fn ambiguous(&self, index: usize) -> Ambiguous {
        let ends = self
            .text
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([self.text.len()]);
        let end = ends.skip(1).nth(index).unwrap_or(self.text.len());
        Ambiguous {
            at: self.text[..end].to_owned(),
        }
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for Pointer {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        let steps = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').map(unescape).collect::<Option<_>>(),
            None if text.is_empty() => Some(Vec::new()),
            None => return Err(PointerError::NoSlash(text)),
        };
        match steps {
            Some(steps) => Ok(Self { text, steps }),
            None => Err(PointerError::BadEscape(text)),
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The reason why a text is no JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PointerError {
    /// Says that the text names no place.
    #[error("`{0}` is no JSON pointer: it must start with `/`, as in `/data/id`")]
    NoSlash(String),
    /// Says that a `~` stands for nothing.
    #[error("`{0}` is no JSON pointer: after `~` only `0` (for `~`) or `1` (for `/`) may follow")]
    BadEscape(String),
}

struct Repeated;

fn member<'j, 'a>(
    members: &'j [(super::Text<'a>, Json<'a>)],
    key: &str,
) -> Result<Option<&'j Json<'a>>, Repeated> {
    let mut named = members
        .iter()
        .filter(|(name, _)| name.as_bytes() == key.as_bytes());
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(Repeated),
        (first, None) => Ok(first.map(|(_, value)| value)),
    }
}

/// Leading zeros and signs are no index, as RFC 6901 has it.
fn array_index(step: &str) -> Option<usize> {
    let is_index = step.bytes().all(|byte| byte.is_ascii_digit());
    let is_shortest = step == "0" || !step.starts_with('0');
    if is_index && is_shortest {
        step.parse().ok()
    } else {
        None
    }
}

fn unescape(step: &str) -> Option<String> {
    let mut pieces = step.split('~');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (sign, rest) = match piece.as_bytes().first()? {
            b'0' => ('~', &piece[1..]),
            b'1' => ('/', &piece[1..]),
            _ => return None,
        };
        out.push(sign);
        out.push_str(rest);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> Pointer {
        text.parse().unwrap()
    }

    #[test]
    fn pointers_of_the_rfc_find_their_values() {
        let text = br#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"m~n":8," ":7,"~1":9}"#;
        let document = Json::parse(text).unwrap();
        let number = |text: &str| document.get(&pointer(text)).unwrap().unwrap().clone();
        assert_eq!(number(""), document);
        assert_eq!(number("/"), Json::Number("0"));
        assert_eq!(number("/a~1b"), Json::Number("1"));
        assert_eq!(number("/c%d"), Json::Number("2"));
        assert_eq!(number("/m~0n"), Json::Number("8"));
        assert_eq!(number("/ "), Json::Number("7"));
        assert_eq!(number("/~01"), Json::Number("9"));
        assert_eq!(number("/foo/1").as_str(), Some("baz"));
    }

    #[test]
    fn what_is_not_there_is_none() {
        let document = Json::parse(br#"{"a":[1,2],"b":null}"#).unwrap();
        for text in [
            "/c",
            "/a/2",
            "/a/-",
            "/a/01",
            "/a/+1",
            "/a/",
            "/b/c",
            "/a/99999999999999999999",
        ] {
            assert_eq!(document.get(&pointer(text)), Ok(None), "{text}");
        }
    }

    #[test]
    fn repeated_keys_on_the_path_are_ambiguous() {
        let document = Json::parse(br#"{"x":{"a":1,"\u0061":1,"b":2},"y":1,"y":2}"#).unwrap();
        let at = |text: &str| document.get(&pointer(text)).unwrap_err().at().to_owned();
        assert_eq!(at("/x/a"), "/x/a");
        assert_eq!(at("/x/a/b"), "/x/a");
        assert_eq!(at("/y"), "/y");
        assert_eq!(document.get(&pointer("/x/b")), Ok(Some(&Json::Number("2"))));
    }

    #[test]
    fn bad_pointers_are_refused_with_the_reason() {
        let refusal = |text: &str| text.parse::<Pointer>().unwrap_err().to_string();
        assert!(refusal("a/b").contains("must start with `/`"));
        assert!(refusal("/a~").contains("after `~`"));
        assert!(refusal("/a~2b").contains("after `~`"));
        assert!(
            serde_json::from_str::<Pointer>("\"id\"")
                .unwrap_err()
                .to_string()
                .contains("`id`")
        );
        assert_eq!(
            serde_json::from_str::<Pointer>("\"/id\"")
                .unwrap()
                .to_string(),
            "/id"
        );
    }
}
