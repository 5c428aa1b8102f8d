//! JSON pointers with steps that are found in the document.

use std::fmt;
use std::str::FromStr;

use crate::json::{Ambiguous, Json, Pointer};

/// A JSON pointer whose steps may also be `*` or `{/pointer}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// Has only plain steps.
    Plain(Pointer),
    /// Has other steps.
    Free(Vec<PathStep>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A member's name or an item's index.
    Key(String),
    /// The first member through which the rest leads somewhere.
    Any,
    /// The name that stands at this pointer.
    At(Pointer),
}

impl Path {
    /// Finds the value, and the name of the member that it is.
    ///
    /// # Errors
    ///
    /// A key on the way that occurs twice in its object is refused.
    pub fn find<'j, 'a>(
        &self,
        document: &'j Json<'a>,
    ) -> Result<Option<(&'j str, &'j Json<'a>)>, Ambiguous> {
        match self {
            Self::Plain(pointer) => Ok(document.get(pointer)?.map(|found| ("", found))),
            Self::Free(steps) => walk(document, ("", document), steps),
        }
    }

    /// Gives the pointer, where every step is plain.
    pub fn pointer(&self) -> Option<&Pointer> {
        match self {
            Self::Plain(pointer) => Some(pointer),
            Self::Free(_) => None,
        }
    }
}

type Member<'j, 'a> = (&'j str, &'j Json<'a>);

fn walk<'j, 'a>(
    document: &'j Json<'a>,
    at: Member<'j, 'a>,
    steps: &[PathStep],
) -> Result<Option<Member<'j, 'a>>, Ambiguous> {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(Some(at));
    };
    let key = match step {
        PathStep::Key(key) => key.clone(),
        PathStep::At(pointer) => match document.get(pointer)?.and_then(Json::as_str) {
            Some(key) => key.to_owned(),
            None => return Ok(None),
        },
        PathStep::Any => {
            let Json::Object(members) = at.1 else {
                return Ok(None);
            };
            for (name, value) in members {
                let leads = !rest.is_empty() || matches!(value, Json::Object(_));
                let member = (name.as_str().unwrap_or_default(), value);
                if leads && let Some(found) = walk(document, member, rest)? {
                    return Ok(Some(found));
                }
            }
            return Ok(None);
        }
    };
    let escaped = key.replace('~', "~0").replace('/', "~1");
    let Ok(pointer) = Pointer::try_from(format!("/{escaped}")) else {
        return Ok(None);
    };
    let Some(value) = at.1.get(&pointer)? else {
        return Ok(None);
    };
    let name = match at.1 {
        Json::Object(members) => members
            .iter()
            .find_map(|(name, _)| name.as_str().filter(|name| *name == key)),
        _ => None,
    };
    walk(document, (name.unwrap_or_default(), value), rest)
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let has_free = text.split('/').any(|step| step == "*") || text.contains("{/");
        if !has_free {
            let pointer: Result<Pointer, _> = text.parse();
            return pointer
                .map(Self::Plain)
                .map_err(|problem| problem.to_string());
        }
        let mut rest = text
            .strip_prefix('/')
            .ok_or_else(|| format!("`{text}` must start with `/`"))?;
        let mut steps = Vec::new();
        loop {
            if let Some(inner) = rest.strip_prefix('{') {
                let (pointer, after) = inner
                    .split_once('}')
                    .ok_or_else(|| format!("`{text}` lacks a closing brace"))?;
                let pointer: Result<Pointer, _> = pointer.parse();
                steps.push(PathStep::At(
                    pointer.map_err(|problem| problem.to_string())?,
                ));
                match after.strip_prefix('/') {
                    Some(after) => rest = after,
                    None if after.is_empty() => return Ok(Self::Free(steps)),
                    None => return Err(format!("`{text}` has text behind a brace")),
                }
                continue;
            }
            let (step, after) = match rest.split_once('/') {
                Some((step, after)) => (step, Some(after)),
                None => (rest, None),
            };
            steps.push(match step {
                "*" => PathStep::Any,
                key => PathStep::Key(key.replace("~1", "/").replace("~0", "~")),
            });
            match after {
                Some(after) => rest = after,
                None => return Ok(Self::Free(steps)),
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Free(steps) = self else {
            return match self {
                Self::Plain(pointer) => pointer.fmt(f),
                Self::Free(_) => Ok(()),
            };
        };
        for step in steps {
            match step {
                PathStep::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1"))?,
                PathStep::Any => f.write_str("/*")?,
                PathStep::At(pointer) => write!(f, "/{{{pointer}}}")?,
            }
        }
        Ok(())
    }
}
