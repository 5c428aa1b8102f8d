//! The JSON reader, held against another one.

use proptest::prelude::*;
use sekali_verify::{Json, JsonError, Pointer, Text};
use serde_json::Value;

/// Documents that differ on purpose: half characters, and numbers beyond a float.
fn is_beyond_the_other(json: &Json<'_>) -> bool {
    let is_half = |text: &Text<'_>| text.as_str().is_none();
    match json {
        Json::String(text) => is_half(text),
        Json::Number(text) => text.parse::<f64>().unwrap().is_infinite(),
        Json::Array(items) => items.iter().any(is_beyond_the_other),
        Json::Object(members) => members
            .iter()
            .any(|(key, value)| is_half(key) || is_beyond_the_other(value)),
        Json::Null | Json::Bool(_) => false,
    }
}

fn has_repeated_key(json: &Json<'_>) -> bool {
    match json {
        Json::Array(items) => items.iter().any(has_repeated_key),
        Json::Object(members) => members.iter().enumerate().any(|(index, (key, value))| {
            has_repeated_key(value) || members[..index].iter().any(|(other, _)| other == key)
        }),
        _ => false,
    }
}

fn is_same(ours: &Json<'_>, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(a), Value::Bool(b)) => a == b,
        (Json::Number(a), Value::Number(b)) => {
            serde_json::from_str::<serde_json::Number>(a).unwrap() == *b
        }
        (Json::String(a), Value::String(b)) => a.as_str() == Some(b),
        (Json::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Json::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| {
                    b.get(key.as_str().unwrap())
                        .is_some_and(|other| is_same(value, other))
                })
        }
        _ => false,
    }
}

fn agrees(text: &[u8]) {
    let theirs = serde_json::from_slice::<Value>(text);
    match Json::parse(text) {
        Ok(ours) if is_beyond_the_other(&ours) => {}
        Ok(ours) => {
            let theirs = theirs.unwrap_or_else(|error| panic!("only we accept {text:?}: {error}"));
            assert!(
                has_repeated_key(&ours) || is_same(&ours, &theirs),
                "{text:?}"
            );
        }
        Err(error) => assert!(theirs.is_err(), "only we refuse {text:?}: {error}"),
    }
}

fn document() -> impl Strategy<Value = Value> {
    let key = || "[a-c~/\"\\\\0é😀\n]{0,3}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        key().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Collects the pointer of every value in a document.
fn pointers(value: &Value, prefix: &str, out: &mut Vec<String>) {
    out.push(prefix.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{prefix}/{index}"), out);
            }
        }
        Value::Object(members) => {
            for (key, item) in members {
                let step = key.replace('~', "~0").replace('/', "~1");
                pointers(item, &format!("{prefix}/{step}"), out);
            }
        }
        _ => {}
    }
}

fn looks_up_the_same(value: &Value, ours: &Json<'_>, text: &str) {
    let pointer: Pointer = text.parse().unwrap();
    match (ours.get(&pointer).unwrap(), value.pointer(text)) {
        (None, None) => {}
        (Some(ours), Some(theirs)) => assert!(is_same(ours, theirs), "{text}"),
        (ours, theirs) => panic!("{text}: {ours:?} and {theirs:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn documents_are_read_alike(value in document(), is_pretty: bool) {
        let text = if is_pretty {
            serde_json::to_vec_pretty(&value).unwrap()
        } else {
            serde_json::to_vec(&value).unwrap()
        };
        prop_assert!(Json::parse(&text).is_ok());
        agrees(&text);
    }

    #[test]
    fn mutated_documents_are_accepted_alike(
        value in document(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4), 1..4),
    ) {
        const SPECIAL: &[u8] = b"{}[]\",:\\ \t\n\r0123456789-+.eEtfnu\x00\x1f\x7f\xc3\xff";
        let mut text = serde_json::to_vec(&value).unwrap();
        for (place, byte, kind) in edits {
            let at = place.index(text.len() + 1);
            let special = SPECIAL[usize::from(byte) % SPECIAL.len()];
            match kind {
                0 if at < text.len() => text[at] = byte,
                1 if at < text.len() => text[at] = special,
                2 if at < text.len() => drop(text.remove(at)),
                _ => text.insert(at, special),
            }
        }
        agrees(&text);
    }

    #[test]
    fn arbitrary_small_texts_are_accepted_alike(
        text in "[\\[\\]{}\",:\\\\ \t0-9.eE+\\-truefalsn\u{7f}é]{0,12}", bytes: Vec<u8>,
    ) {
        agrees(text.as_bytes());
        if !bytes.starts_with(b"\xef\xbb\xbf") {
            agrees(&bytes);
        }
    }

    #[test]
    fn strings_and_numbers_are_accepted_alike(
        string in "(\\\\(u[0-9a-fA-FdD]{3,4}|[\"\\\\/bfnrtux])|[a\u{1f}\u{7f}é😀 ]){0,12}",
        number in "-?[0-9]{0,3}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{0,4})?",
    ) {
        agrees(format!("\"{string}\"").as_bytes());
        agrees(number.as_bytes());
        agrees(format!("[{number}]").as_bytes());
    }

    #[test]
    fn pointers_find_alike(value in document(), other in "(/([a-c0-9é-]|~0|~1){0,2}){0,3}") {
        let text = serde_json::to_vec(&value).unwrap();
        // Read again: the other reader may lose the last bit of a float.
        let value = serde_json::from_slice(&text).unwrap();
        let ours = Json::parse(&text).unwrap();
        let mut all = vec![other];
        pointers(&value, "", &mut all);
        for pointer in all {
            looks_up_the_same(&value, &ours, &pointer);
        }
    }
}

#[test]
fn unusable_bodies_have_a_reason() {
    for text in [
        "null",
        "\"x\"",
        "[]",
        r#"[{"entity_id":"a"},{"entity_id":"b"}]"#,
    ] {
        assert!(Json::parse(text.as_bytes()).is_ok(), "{text}");
    }
    assert_eq!(Json::parse(b""), Err(JsonError::Empty));
    assert_eq!(Json::parse(b" \r\n"), Err(JsonError::Empty));
    assert_eq!(Json::parse(b"{\"t\":\"\xff\"}"), Err(JsonError::NotUtf8));
    assert_eq!(
        Json::parse(b"{\"a\":"),
        Err(JsonError::Syntax { offset: 5 })
    );
    assert_eq!(
        Json::parse(b"payload=%7B%7D"),
        Err(JsonError::Syntax { offset: 0 })
    );
}

#[test]
fn half_a_character_is_kept_but_is_no_text() {
    let text = br#"{"entity_id":"o-1","note":"\ud800","pair":"\ud83d\ude00"}"#;
    let json = Json::parse(text).unwrap();
    let find = |pointer: &str| json.get(&pointer.parse().unwrap()).unwrap().unwrap();
    assert_eq!(find("/note").as_str(), None);
    assert_eq!(find("/pair").as_str(), Some("😀"));
    assert_ne!(Json::parse(br#""\ud800""#), Json::parse(br#""\udc00""#));
}
