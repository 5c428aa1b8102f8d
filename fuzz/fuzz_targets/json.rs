//! The JSON reader and the walks over it.
//!
//! It takes exactly what another reader takes, what it printed is read again as the same, and a batch has exactly the
//! elements that the parsed document has. In front of a zero byte an input may bring lines with pointers, patterns and
//! places of its own.
#![no_main]

use std::sync::LazyLock;

use bytes::Bytes;
use http::HeaderMap;
use libfuzzer_sys::fuzz_target;
use sekali_fuzz::expected;
use sekali_verify::{
    Decode, Json, JsonError, Path, Pattern, Place, Pointer, Request, TooManyElements, View,
    elements,
};

/// Patterns that are always tried, all at once.
static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let texts = ["/*", "/a/*", "/a/*/b/*", "/events/*", "/*/*", "/*/b"];
    texts.iter().filter_map(|text| pattern(text)).collect()
});

fn pattern(text: &str) -> Option<Pattern> {
    text.to_owned().try_into().ok()
}

fuzz_target!(|data: &[u8]| {
    let (words, text) = match data.iter().position(|byte| *byte == 0) {
        Some(zero) => (&data[..zero], &data[zero + 1..]),
        None => (&b""[..], data),
    };
    let parsed = Json::parse(text);
    compare_with_another_reader(text, parsed.as_ref().err());
    let Ok(json) = parsed else {
        return;
    };
    print_and_read(&json);
    let words = std::str::from_utf8(words).unwrap_or_default();
    let own: Vec<Pattern> = words.lines().take(4).filter_map(pattern).collect();
    find_elements(text, &json, &PATTERNS);
    find_elements(text, &json, &own);
    let fixed = [
        "",
        "/a",
        "/a/0/b",
        "/~0/~1",
        "/*",
        "/*/a",
        "/a/{/b}/c",
        "/*/*",
        "key:/*",
    ];
    for word in words.lines().take(4).chain(fixed) {
        look_up(word, text, &json);
    }
});

/// Holds the verdict against the one of serde_json, which passes over values without looking into them.
fn compare_with_another_reader(text: &[u8], error: Option<&JsonError>) {
    if error == Some(&JsonError::TooDeep) {
        return;
    }
    let is_text = std::str::from_utf8(text).is_ok();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let other: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(text);
    assert_eq!(error.is_none(), is_text && other.is_ok(), "{error:?}");
}

fn print_and_read(json: &Json<'_>) {
    let printed = json.to_string();
    let again = Json::parse(printed.as_bytes()).expect("what is printed can be read");
    assert_eq!(again.to_string(), printed);
    // Half a character has no UTF-8, and is printed as the replacement character.
    if is_whole(json) {
        assert_eq!(&again, json);
    }
}

fn is_whole(json: &Json<'_>) -> bool {
    match json {
        Json::String(text) => text.as_str().is_some(),
        Json::Array(items) => items.iter().all(is_whole),
        Json::Object(members) => members
            .iter()
            .all(|(name, value)| name.as_str().is_some() && is_whole(value)),
        _ => true,
    }
}

fn find_elements(text: &[u8], json: &Json<'_>, patterns: &[Pattern]) {
    let wanted = expected(json, patterns);
    let found = match elements(text, patterns) {
        Ok(found) => found,
        Err(TooManyElements) => {
            assert!(wanted.elements.len() > sekali_verify::MAX_ELEMENTS);
            return;
        }
    };
    assert_eq!(found.is_some(), wanted.is_batch);
    let Some(found) = found else {
        return;
    };
    assert_eq!(found.len(), wanted.elements.len());
    let mut end = 0;
    for (element, (way, value)) in found.iter().zip(&wanted.elements) {
        assert_eq!(
            (&element.way, element.lineage(json).last()),
            (way, Some(value))
        );
        let alone = Json::parse(&text[element.bytes.clone()]).expect("an element is a value");
        assert_eq!(&alone, *value);
        assert!(end <= element.bytes.start, "elements overlap");
        end = element.bytes.end;
    }
}

/// Looks a text up as a pointer and as a place.
fn look_up(word: &str, text: &[u8], json: &Json<'_>) {
    if let Ok(pointer) = word.parse::<Pointer>() {
        let found = json.get(&pointer);
        assert_eq!(
            found.as_ref().ok(),
            by_hand(json, pointer.tokens()).as_ref()
        );
        if let Err(ambiguous) = found {
            assert!(word.starts_with(ambiguous.at()));
        }
    }
    let Ok(place) = word.parse::<Place>() else {
        return;
    };
    let (headers, body) = (HeaderMap::new(), Bytes::copy_from_slice(text));
    let request = Request::post(&headers, &body);
    let opening = Decode::default().open(&request);
    let lineage = [json];
    let view = View::whole(&headers, Some(request), &opening, &body).with_json(&lineage, None);
    let found = view.json_at(&place);
    // A plain path is the pointer.
    if let Place::Body(Path::Plain(pointer)) = &place {
        assert_eq!(found, json.get(pointer));
    }
    let _ = view.scalar(&place);
}

/// Looks a value up; none where a name on the way is there twice.
fn by_hand<'j, 'a>(json: &'j Json<'a>, steps: &[String]) -> Option<Option<&'j Json<'a>>> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(Some(json));
    };
    let named: Vec<&Json<'_>> = match json {
        Json::Array(items) => {
            let numbered = items.iter().enumerate();
            let fitting = numbered.filter(|(index, _)| index.to_string() == *step);
            fitting.map(|(_, value)| value).collect()
        }
        Json::Object(members) => {
            let fitting = members
                .iter()
                .filter(|(name, _)| name.as_bytes() == step.as_bytes());
            fitting.map(|(_, value)| value).collect()
        }
        _ => Vec::new(),
    };
    match named[..] {
        [] => Some(None),
        [one] => by_hand(one, rest),
        _ => None,
    }
}
