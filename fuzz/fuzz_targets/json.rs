//! The JSON reader and the walks over it: whatever is read, is printed and read again as the same; elements of a batch
//! are values of the document.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sekali_verify::{Json, Path, Pattern, Pointer, elements};

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let texts = ["/*", "/a/*", "/a/*/b/*", "/events/*", "/*/*"];
    texts.map(|text| text.to_owned().try_into().expect("a pattern")).into()
});

fuzz_target!(|data: &[u8]| {
    let Ok(json) = Json::parse(data) else {
        return;
    };
    // Half a character has no UTF-8, and is printed as the replacement character.
    let printed = json.to_string();
    let again = Json::parse(printed.as_bytes()).expect("what is printed can be read");
    assert_eq!(again.to_string(), printed);
    for text in ["", "/a", "/a/0/b", "/~0/~1", "/events"] {
        let pointer: Pointer = text.parse().expect("a pointer");
        let _ = json.get(&pointer);
    }
    for text in ["/*", "/*/a", "/a/{/b}/c", "/*/*"] {
        let place: sekali_verify::Place = text.parse().expect("a place");
        let sekali_verify::Place::Body(path) = &place else {
            continue;
        };
        assert!(matches!(path, Path::Free(_)));
        let _ = path.find(&json);
    }
    if let Ok(Some(found)) = elements(data, &PATTERNS) {
        for element in &found {
            let value = Json::parse(&data[element.bytes.clone()]).expect("an element is a value");
            assert_eq!(element.lineage(&json).last(), Some(&&value));
        }
    }
});
