//! The text of one XML element, found by the names on the way to it.
//!
//! Only what Braintree sends is needed: elements and text. Entities other than the five of XML, and
//! document type declarations, are not expanded.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Deeper documents are not looked at.
const MAX_DEPTH: usize = 64;

/// Finds the text of the first element on a path; `*` stands for any name.
pub(super) fn find(xml: &str, steps: &[String]) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    let mut open: Vec<String> = Vec::new();
    let mut text: Option<String> = None;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                if open.len() == MAX_DEPTH {
                    return None;
                }
                open.push(start.name().as_ref().to_owned());
                if text.is_none() && is_at(&open, steps) {
                    text = Some(String::new());
                }
            }
            Event::Text(part) if is_at(&open, steps) => {
                text.as_mut()?.push_str(&part);
            }
            Event::GeneralRef(entity) if is_at(&open, steps) => {
                let character = match quick_xml::escape::resolve_xml_entity(&entity) {
                    Some(character) => character.to_owned(),
                    None => entity.resolve_char_ref().ok()??.to_string(),
                };
                text.as_mut()?.push_str(&character);
            }
            Event::End(_) => {
                if is_at(&open, steps) {
                    return text;
                }
                open.pop();
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn is_at(open: &[String], steps: &[String]) -> bool {
    let is_step = |(name, step): (&String, &String)| step == "*" || name == step;
    open.len() == steps.len() && open.iter().zip(steps).all(is_step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(xml: &str, path: &str) -> Option<String> {
        let steps: Vec<String> = path.split('/').map(str::to_owned).collect();
        find(xml, &steps)
    }

    #[test]
    fn texts_are_found_by_their_path() {
        let xml =
            "<n><kind>a&amp;b&#65;</kind><subject><s><id>7</id></s></subject><kind>2</kind></n>";
        assert_eq!(found(xml, "n/kind").as_deref(), Some("a&bA"));
        assert_eq!(found(xml, "n/subject/*/id").as_deref(), Some("7"));
        assert_eq!(found(xml, "n/id"), None);
        assert_eq!(found("<n><kind>a</n>", "n/kind"), None);
        assert_eq!(found("not xml", "n"), None);
        assert_eq!(found(&"<a>".repeat(1000), "a/b"), None);
    }
}
