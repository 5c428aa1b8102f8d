//! Secrets with stray characters, in the environment and in files.

use crate::support::{ORDERS, Start, hook, order};

fn from_file(content: &str) -> Start {
    let config = ORDERS.replace("env:ORDERS_SECRET", "file:secret.txt");
    Start::new(&config).file("secret.txt", content)
}

fn both(content: &str) -> [Start; 2] {
    [
        Start::new(ORDERS).env("ORDERS_SECRET", content),
        from_file(content),
    ]
}

#[test]
fn c04_line_ends_behind_a_secret_are_cut() {
    for content in ["s3cret-s3cret\n", "s3cret-s3cret\r\n"] {
        for start in both(content) {
            let server = start.serve();
            let hook = hook("e", order("o-1", 1, "paid")).secret("s3cret-s3cret");
            assert_eq!(hook.send(&server).says(), "202 accepted", "{content:?}");
        }
    }
}

#[test]
fn c04_a_prefix_is_part_of_the_secret() {
    for content in ["v1,whsec_c2VjcmV0", "whsec_c2VjcmV0"] {
        for start in both(content) {
            let server = start.serve();
            let signed = |secret| {
                hook("e", order("o-1", 1, "paid"))
                    .secret(secret)
                    .send(&server)
            };
            assert_eq!(signed("c2VjcmV0").status, 401, "the text behind the prefix");
            assert_eq!(signed("secret").status, 401, "the decoded text");
            assert_eq!(signed(content).says(), "202 accepted");
        }
    }
}

#[test]
fn c04_weak_secrets_are_refused_at_the_start() {
    for (content, problem) in [
        ("", "the secret is empty"),
        ("   \t ", "the secret has only blanks in it"),
        ("\n", "the secret has only blanks in it"),
        (" s3cret-s3cret", "the secret begins or ends with a blank"),
        ("s3cret-s3cret ", "the secret begins or ends with a blank"),
        ("x", "the secret is shorter than 8 bytes"),
        ("s3cret\n", "the secret is shorter than 8 bytes"),
    ] {
        for (start, place) in both(content)
            .into_iter()
            .zip(["env:ORDERS_SECRET", "file:secret.txt"])
        {
            let said = start.refusal();
            assert!(
                said.contains("source.orders.secrets"),
                "{content:?}: {said}"
            );
            assert!(
                said.contains(place) && said.contains(problem),
                "{content:?}: {said}"
            );
            assert!(
                !said.contains("s3cret"),
                "{content:?}: the value is shown: {said}"
            );
        }
    }
}

#[test]
fn c04_a_secret_that_is_not_there_is_refused_by_its_name() {
    let said = Start::new(ORDERS).without_env("ORDERS_SECRET").refusal();
    assert!(
        said.contains("the variable ORDERS_SECRET is not set"),
        "{said}"
    );
    let said = Start::new(&ORDERS.replace("env:ORDERS_SECRET", "file:gone.txt")).refusal();
    assert!(
        said.contains("source.orders.secrets") && said.contains("gone.txt"),
        "{said}"
    );
}
