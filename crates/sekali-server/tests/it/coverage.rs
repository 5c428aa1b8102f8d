//! The list of what must have a test: the cases from the field by letter, and the classes of faults of rivals.
//!
//! A letter without a test of its name and without a reason why it has none fails here, and so does a reason for a
//! letter that has a test.

use std::path::Path;

/// Every case that counts so far, with its letters.
const CASES: &[(&str, &str)] = &[
    ("c01", "abcdef"),
    ("c02", ""),
    ("c03", "abcdefg"),
    ("c04", ""),
    ("c05", ""),
    ("c06", ""),
    ("c07", "abcdef"),
    ("c08", ""),
    ("c09", ""),
    ("c10", ""),
    ("c11", ""),
    ("c12", ""),
    ("c13", ""),
    ("c14", "abcde"),
    ("c15", "abcd"),
    ("c16", "abc"),
    ("c17", ""),
    ("c18", ""),
    ("c19", "abc"),
    ("c20", ""),
    ("c21", ""),
    ("c22", ""),
    ("c23", "abc"),
    ("c24", "abc"),
    ("c25", ""),
    ("c26", ""),
    ("c27", ""),
    ("c28", ""),
    ("c29", ""),
    ("c30", ""),
    ("c36", ""),
];

/// How many classes of faults of rivals there are.
const RIVALS: usize = 30;

/// What has no test of its own name, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "c24_a",
        "State machines are not part of the receiver yet; there is no transition to refuse.",
    ),
    (
        "c24_b",
        "State machines are not part of the receiver yet; versions decide, which c20 to c23 show.",
    ),
    (
        "c24_c",
        "State machines are not part of the receiver yet; a replay meets the gate in the engine's tests.",
    ),
    (
        "rival_13",
        "A late holder needs a second worker in the middle of a transaction, which the engine's tests arrange: \
                  leases::a_holder_whose_lease_was_taken_over_commits_nothing.",
    ),
    (
        "rival_19",
        "Nothing is expanded for anybody: references to files stand in the operator's config file only.",
    ),
    (
        "rival_22",
        "The rate limiter is part of the process and cannot be away while it receives.",
    ),
    (
        "rival_24",
        "There is no broker yet that a connection could be lost to.",
    ),
    (
        "rival_25",
        "There is one kind of store yet; the engine's tests are the contract for the next.",
    ),
];

#[test]
fn every_case_and_class_has_a_test_or_a_reason() {
    let names = test_names();
    let mut problems = Vec::new();
    for wanted in wanted() {
        let has_test = names
            .iter()
            .any(|name| name == &wanted || name.starts_with(&format!("{wanted}_")));
        let reason = EXCEPTIONS
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, reason)| *reason);
        match (has_test, reason) {
            (false, None) => problems.push(format!("{wanted} has neither a test nor a reason")),
            (true, Some(_)) => {
                problems.push(format!("{wanted} has a test and a reason for having none"))
            }
            (false, Some(reason)) if !reason.ends_with('.') || reason.len() < 40 => {
                problems.push(format!("the reason for {wanted} is no sentence"));
            }
            _ => {}
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn every_reason_is_for_something_that_is_wanted() {
    let wanted = wanted();
    for (name, _) in EXCEPTIONS {
        assert!(wanted.iter().any(|wanted| wanted == name), "{name}");
    }
}

fn wanted() -> Vec<String> {
    let cases = CASES
        .iter()
        .flat_map(|(case, letters)| match letters.is_empty() {
            true => vec![(*case).to_owned()],
            false => letters
                .chars()
                .map(|letter| format!("{case}_{letter}"))
                .collect(),
        });
    cases
        .chain((1..=RIVALS).map(|number| format!("rival_{number:02}")))
        .collect()
}

/// Reads the names of all tests of the server and of the engine out of their sources.
fn test_names() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut names = Vec::new();
    for tests in ["sekali-server/tests", "sekali/tests"] {
        collect(&crates.join(tests), &mut names);
    }
    assert!(names.len() > 100, "only {} tests were found", names.len());
    names
}

fn collect(folder: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            names.extend(on_both_stores(&text));
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                let name = line
                    .strip_prefix("async fn ")
                    .or_else(|| line.strip_prefix("fn "));
                match name.and_then(|rest| rest.split('(').next()) {
                    Some(name) if is_test => names.push(name.to_owned()),
                    _ => {}
                }
                is_test = line.starts_with("#[test")
                    || line.starts_with("#[tokio::test")
                    || is_test && line.starts_with("#[");
            }
        }
    }
}

/// Reads the names of the tests that a file has run on both databases of the network.
fn on_both_stores(text: &str) -> impl Iterator<Item = String> {
    let lists = text.split("on_both! {").skip(1);
    let lists = lists.filter_map(|rest| rest.split_once('}'));
    let names = lists.flat_map(|(list, _)| list.split(';'));
    names
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
}
