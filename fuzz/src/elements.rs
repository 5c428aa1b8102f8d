//! The elements of a batch, found in the parsed document: what the walk over the bytes is held against.

use sekali_verify::{Json, Pattern};

/// What a document has for some patterns.
#[derive(Default)]
pub struct Found<'j, 'a> {
    /// Whether a pattern leads to a list.
    pub is_batch: bool,
    /// The elements, with the way to each.
    pub elements: Vec<(Vec<usize>, &'j Json<'a>)>,
}

/// Finds the elements: what a pattern names and has no other element inside.
pub fn expected<'j, 'a>(document: &'j Json<'a>, patterns: &[Pattern]) -> Found<'j, 'a> {
    let steps = |pattern: &Pattern| {
        let steps = pattern.as_str().split('/').skip(1);
        steps.map(str::to_owned).collect()
    };
    let patterns: Vec<Vec<String>> = patterns.iter().map(steps).collect();
    let active: Vec<&[String]> = patterns.iter().map(Vec::as_slice).collect();
    let mut walk = Walk::default();
    walk.visit(document, &active);
    walk.found
}

#[derive(Default)]
struct Walk<'j, 'a> {
    found: Found<'j, 'a>,
    way: Vec<usize>,
}

impl<'j, 'a> Walk<'j, 'a> {
    fn visit(&mut self, value: &'j Json<'a>, active: &[&[String]]) {
        let before = self.found.elements.len();
        let firsts: Vec<(&String, &[String])> = active
            .iter()
            .filter_map(|steps| steps.split_first())
            .collect();
        match value {
            Json::Object(members) => {
                for (position, (name, value)) in members.iter().enumerate() {
                    let is_named = |step: &str| step != "*" && name.as_str() == Some(&key(step));
                    self.child(value, position, &firsts, is_named);
                }
            }
            Json::Array(items) => {
                self.found.is_batch |= firsts.iter().any(|(first, _)| *first == "*");
                for (position, value) in items.iter().enumerate() {
                    self.child(value, position, &firsts, |step| step == "*");
                }
            }
            _ => {}
        }
        let is_named = active.iter().any(|steps| steps.is_empty());
        if is_named && self.found.elements.len() == before {
            self.found.elements.push((self.way.clone(), value));
        }
    }

    fn child(
        &mut self,
        value: &'j Json<'a>,
        position: usize,
        firsts: &[(&String, &[String])],
        is_next: impl Fn(&str) -> bool,
    ) {
        let fitting = firsts.iter().filter(|(first, _)| is_next(first));
        let rests: Vec<&[String]> = fitting.map(|(_, rest)| *rest).collect();
        if !rests.is_empty() {
            self.way.push(position);
            self.visit(value, &rests);
            self.way.pop();
        }
    }
}

fn key(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
