//! Finds the elements of a delivery that carries several events, as bytes of the body.
//!
//! An element's bytes are what is hashed and stored for it, so they are cut out of the body and never
//! printed again. The body was read as JSON before; this walk relies on that and only counts brackets.

use std::ops::Range;

use serde::Deserialize;

use crate::json::Json;

/// More elements than this are no batch of webhooks; LINE and HubSpot send 100, Meta 1000.
pub const MAX_ELEMENTS: usize = 4096;

/// An object around a list has no more members than this: each element may look into it again.
const MAX_SIBLINGS: usize = 1000;

/// Where elements stand: a JSON pointer in which `*` is each item of an array.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Each,
}

impl Pattern {
    /// Gives the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!(
                "`{text}` is no batch pattern: it must start with `/`, as in `/events/*`"
            ));
        };
        let step = |step: &str| match step {
            "*" => Step::Each,
            key => Step::Key(key.replace("~1", "/").replace("~0", "~")),
        };
        let steps: Vec<Step> = rest.split('/').map(step).collect();
        match steps.contains(&Step::Each) {
            true => Ok(Self { text, steps }),
            false => Err(format!(
                "`{text}` is no batch pattern: no step of it is `*`"
            )),
        }
    }
}

/// One element of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its bytes in the body.
    pub bytes: Range<usize>,
    /// The way to it: the position of the member or item at each level.
    pub way: Vec<usize>,
}

impl Element {
    /// Gives its index in the list that it stands in.
    pub fn index(&self) -> usize {
        self.way.last().copied().unwrap_or_default()
    }

    /// Gives the values on the way to it, from the whole document to the element.
    pub fn lineage<'j, 'a>(&self, document: &'j Json<'a>) -> Vec<&'j Json<'a>> {
        let mut lineage = vec![document];
        for position in &self.way {
            let next = match lineage.last() {
                Some(Json::Array(items)) => items.get(*position),
                Some(Json::Object(members)) => members.get(*position).map(|(_, value)| value),
                _ => None,
            };
            lineage.extend(next);
        }
        lineage
    }
}

/// Says that a delivery has more elements, or more beside them, than are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyElements;

/// Finds the elements of a body that is known to be JSON; none where no pattern leads to a list.
pub fn elements(
    body: &[u8],
    patterns: &[Pattern],
) -> Result<Option<Vec<Element>>, TooManyElements> {
    let mut walk = Walk {
        body,
        at: 0,
        is_batch: false,
        found: Vec::new(),
        way: Vec::new(),
    };
    // A byte order mark is passed over as in the reader.
    if body.starts_with(b"\xef\xbb\xbf") {
        walk.at = 3;
    }
    let active: Vec<&[Step]> = patterns.iter().map(|pattern| &pattern.steps[..]).collect();
    walk.value(&active)?;
    Ok(walk.is_batch.then_some(walk.found))
}

struct Walk<'b> {
    body: &'b [u8],
    at: usize,
    is_batch: bool,
    found: Vec<Element>,
    way: Vec<usize>,
}

impl Walk<'_> {
    /// Walks over one value; `active` are the rests of the patterns that lead here.
    fn value(&mut self, active: &[&[Step]]) -> Result<(), TooManyElements> {
        self.skip_blanks();
        let start = self.at;
        let goes_on = active.iter().any(|steps| !steps.is_empty());
        match self.peek() {
            Some(b'{') if goes_on => self.object(active)?,
            Some(b'[') if goes_on => self.array(active)?,
            _ => self.skip_value(),
        }
        let is_element = active.iter().any(|steps| steps.is_empty());
        let has_inner = self
            .found
            .last()
            .is_some_and(|inner| inner.bytes.start >= start);
        if is_element && !has_inner {
            if self.found.len() == MAX_ELEMENTS {
                return Err(TooManyElements);
            }
            self.found.push(Element {
                bytes: start..self.at,
                way: self.way.clone(),
            });
        }
        Ok(())
    }

    fn object(&mut self, active: &[&[Step]]) -> Result<(), TooManyElements> {
        self.at += 1;
        let mut position = 0;
        let found_before = self.found.len();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'"') => {}
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                _ => break,
            }
            let start = self.at;
            self.skip_value();
            let key = Json::parse(&self.body[start..self.at]).ok();
            let key = key.as_ref().and_then(Json::as_str);
            self.skip_blanks();
            self.at += 1; // the colon
            let matches =
                |step: &Step| matches!(step, Step::Key(name) if Some(name.as_str()) == key);
            self.child(active, position, matches)?;
            position += 1;
        }
        self.at += 1;
        match position > MAX_SIBLINGS && self.found.len() > found_before {
            true => Err(TooManyElements),
            false => Ok(()),
        }
    }

    fn array(&mut self, active: &[&[Step]]) -> Result<(), TooManyElements> {
        let is_list = |steps: &&[Step]| matches!(steps.first(), Some(Step::Each));
        self.is_batch |= active.iter().any(is_list);
        self.at += 1;
        let mut position = 0;
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(b']') => break,
                Some(b',') => self.at += 1,
                Some(_) => {
                    self.child(active, position, |step| *step == Step::Each)?;
                    position += 1;
                }
            }
        }
        self.at += 1;
        Ok(())
    }

    fn child(
        &mut self,
        active: &[&[Step]],
        position: usize,
        matches: impl Fn(&Step) -> bool,
    ) -> Result<(), TooManyElements> {
        let inner: Vec<&[Step]> = active
            .iter()
            .filter_map(|steps| steps.split_first())
            .filter(|(first, _)| matches(first))
            .map(|(_, rest)| rest)
            .collect();
        self.way.push(position);
        let result = self.value(&inner);
        self.way.pop();
        result
    }

    /// Skips a value without recursion: brackets are counted, texts are passed over.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.skip_text(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b'}' | b']' => return,
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_text(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => 2,
                _ => 1,
            };
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(body: &str, patterns: &[&str]) -> Option<Vec<String>> {
        let patterns: Vec<Pattern> = patterns
            .iter()
            .map(|text| (*text).to_owned().try_into().unwrap())
            .collect();
        assert!(Json::parse(body.as_bytes()).is_ok(), "{body}");
        let elements = elements(body.as_bytes(), &patterns).unwrap()?;
        let cut = |element: &Element| body[element.bytes.clone()].to_owned();
        Some(elements.iter().map(cut).collect())
    }

    #[test]
    fn elements_are_bytes_of_the_body() {
        let list = |items: &[&str]| Some(items.iter().map(|item| (*item).to_owned()).collect());
        assert_eq!(
            found("[ {\"a\": 1} ,\r\n2, \"x,]\\\"\" ]", &["/*"]),
            list(&["{\"a\": 1}", "2", "\"x,]\\\"\""])
        );
        assert_eq!(found("{\"events\":[]}", &["/events/*"]), list(&[]));
        assert_eq!(found("{\"events\":{}}", &["/events/*"]), None);
        assert_eq!(found("{}", &["/*"]), None);
        assert_eq!(
            found("{\"e\\u0076\":[[1],[2]]}", &["/ev/*"]),
            list(&["[1]", "[2]"])
        );
    }

    #[test]
    fn an_element_with_elements_inside_is_none_itself() {
        let body =
            r#"{"entry":[{"changes":[{"value":{"m":[{"id":1},{"id":2}]}},{"value":{}}]},{"x":0}]}"#;
        let patterns = [
            "/entry/*/changes/*/value/m/*",
            "/entry/*/changes/*",
            "/entry/*",
        ];
        let items = found(body, &patterns).unwrap();
        assert_eq!(
            items,
            ["{\"id\":1}", "{\"id\":2}", "{\"value\":{}}", "{\"x\":0}"]
        );
    }

    #[test]
    fn the_way_leads_to_the_same_value() {
        let body = br#"{"z":0,"list":[{"n":[10,11]},{"n":[20]}]}"#;
        let patterns = ["/list/*/n/*".to_owned().try_into().unwrap()];
        let json = Json::parse(body).unwrap();
        let elements = elements(body, &patterns).unwrap().unwrap();
        let last = elements.last().unwrap();
        let lineage = last.lineage(&json);
        assert_eq!(lineage.len(), 5);
        assert_eq!(lineage[4], &Json::Number("20"));
        assert_eq!((last.index(), elements[1].index()), (0, 1));
    }

    #[test]
    fn too_many_elements_are_refused() {
        let patterns = ["/*".to_owned().try_into().unwrap()];
        let body = format!("[{}1]", "1,".repeat(MAX_ELEMENTS - 1));
        assert_eq!(
            elements(body.as_bytes(), &patterns)
                .unwrap()
                .map(|all| all.len()),
            Some(MAX_ELEMENTS)
        );
        let body = format!("[{}1]", "1,".repeat(MAX_ELEMENTS));
        assert_eq!(elements(body.as_bytes(), &patterns), Err(TooManyElements));
    }
}
