//! What declarations are read and which are refused.

use super::*;

const BODY_ONLY: &str = "signed = [\"body\"]\nalgorithm = \"hmac_sha256\"\nkey = \"text\"\n\
    signature = { header = \"X-Sig\", encoding = \"hex\" }\n";

fn refusal(text: &str) -> String {
    toml::from_str::<Scheme>(text).unwrap_err().to_string()
}

#[test]
fn a_consistent_declaration_is_read() {
    let scheme: Scheme = toml::from_str(BODY_ONLY).unwrap();
    assert!(scheme.covers_whole_body());
    assert!(!scheme.signs_time());
    assert_eq!(scheme.coverage(), Coverage::Body);
}

#[test]
fn unknown_fields_are_refused() {
    assert!(refusal(&format!("{BODY_ONLY}colour = \"red\"")).contains("colour"));
    let text = BODY_ONLY.replace("encoding", "colour = 1, encoding");
    assert!(refusal(&text).contains("colour"));
}

#[test]
fn contradictions_are_refused() {
    let time = "time = { header = \"X-Time\", unit = \"unix_seconds\" }";
    assert!(refusal(&format!("{BODY_ONLY}{time}")).contains("unsigned time"));
    let timed = BODY_ONLY.replace("\"body\"", "\"timestamp\", \"body\"");
    assert!(refusal(&timed).contains("where it stands"));
    let same = format!("{timed}{}", time.replace("X-Time", "x-SIG"));
    assert!(refusal(&same).contains("same entry"));
    assert!(toml::from_str::<Scheme>(&format!("{timed}{time}")).is_ok());
}

#[test]
fn texts_that_prove_nothing_are_refused() {
    assert!(refusal(&BODY_ONLY.replace("\"body\"", "")).contains("prove nothing"));
    let literal = BODY_ONLY.replace("\"body\"", "{ literal = \"x\" }");
    assert!(refusal(&literal).contains("prove nothing"));
}

#[test]
fn labels_and_header_names_are_checked() {
    let labelled = |separator: &str, label: &str| {
        let entries = format!("separator = \"{separator}\", label = \"{label}\", encoding");
        BODY_ONLY.replace("encoding", &entries)
    };
    for (separator, label) in [(",", "v1="), ("", "sha256="), ("", "Bearer "), (" ", "v1,")] {
        assert!(
            toml::from_str::<Scheme>(&labelled(separator, label)).is_ok(),
            "{label:?}"
        );
    }
    for (separator, label) in [(",", "a,b"), (" ", "Bearer "), ("", "é="), ("", " a")] {
        assert!(
            refusal(&labelled(separator, label)).contains("`label`"),
            "{label:?}"
        );
    }
    assert!(refusal(&BODY_ONLY.replace("X-Sig", "X Sig")).contains("no header name"));
    let two = BODY_ONLY.replace("encoding", "query = \"sig\", encoding");
    assert!(refusal(&two).contains("only one"));
}

#[test]
fn keys_fit_their_algorithms() {
    let with = |from: &str, to: &str| refusal(&BODY_ONLY.replace(from, to));
    assert!(with("hmac_sha256", "ed25519").contains("does not fit"));
    assert!(with("hmac_sha256", "sha256").contains("\"key\""));
    assert!(with("\"body\"", "\"body\", \"key\"").contains("\"key\""));
    assert!(with("hmac_sha256", "equals").contains("no meaning"));
    let jwt = BODY_ONLY
        .replace("hmac_sha256", "jwt")
        .replace("\"body\"", "");
    assert!(refusal(&jwt).contains("`jwt`"));
}

#[test]
fn conditions_have_one_place_and_one_test() {
    let with = |condition: &str| format!("when = [{condition}]\n{BODY_ONLY}");
    for condition in [
        "{ header = \"X-A\" }",
        "{ query = \"a\", hex = [2, 4] }",
        "{ content_type = true, one_of = [\"a/b\"] }",
    ] {
        assert!(
            toml::from_str::<Scheme>(&with(condition)).is_ok(),
            "{condition}"
        );
    }
    assert!(refusal(&with("{ is = \"x\" }")).contains("only one"));
    let two = "{ header = \"X-A\", is = \"x\", absent = true }";
    assert!(refusal(&with(two)).contains("at most one"));
}
