//! Several signatures in one header, and secrets while they are being replaced.

use crate::support::{ORDERS, Server, Start, eventually, hook, now_ms, order};

const OLD: &str = "old-secret-not-for-production";
const NEW: &str = "new-secret-not-for-production";
const BAD: &str = "v1=0000000000000000000000000000000000000000000000000000000000000000";

fn start(old: &str) -> Server {
    let secrets = format!("secrets = [{old}, \"env:NEW\"]");
    let config = ORDERS.replace("secrets = [\"env:ORDERS_SECRET\"]", &secrets);
    Start::new(&config).env("OLD", OLD).env("NEW", NEW).serve()
}

/// Sends a header made out of the good entry.
fn answer(server: &Server, id: &str, header: impl Fn(&str) -> String) -> String {
    let hook = hook(id, order(id, 1, "paid")).secret(NEW);
    let header = header(&hook.good_signature());
    hook.signature(header).send(server).says()
}

#[test]
fn c03_a_the_good_one_may_come_last() {
    let server = start("\"env:OLD\"");
    assert_eq!(
        answer(&server, "a", |good| format!("{BAD},{good}")),
        "202 accepted"
    );
}

#[test]
fn c03_b_the_good_one_may_come_first() {
    let server = start("\"env:OLD\"");
    assert_eq!(
        answer(&server, "b", |good| format!("{good},{BAD}")),
        "202 accepted"
    );
}

#[test]
fn c03_c_blanks_separate_like_commas() {
    let server = start("\"env:OLD\"");
    for (number, separator) in [", ", " "].into_iter().enumerate() {
        let last = format!("last-{number}");
        let says = answer(&server, &last, |good| [BAD, separator, good].concat());
        assert_eq!(says, "202 accepted", "{separator:?}");
        let first = format!("first-{number}");
        let says = answer(&server, &first, |good| [good, separator, BAD].concat());
        assert_eq!(says, "202 accepted", "{separator:?}");
    }
}

#[test]
fn c03_d_the_old_secret_still_counts() {
    let server = start("\"env:OLD\"");
    let hook = hook("d", order("d", 1, "paid")).secret(OLD);
    assert_eq!(hook.send(&server).says(), "202 accepted");
}

#[test]
fn c03_e_the_new_secret_counts_already() {
    let server = start("\"env:OLD\"");
    let hook = hook("e", order("e", 1, "paid")).secret(NEW);
    assert_eq!(hook.send(&server).says(), "202 accepted");
}

#[test]
fn c03_f_an_entry_of_another_version_proves_nothing() {
    let server = start("\"env:OLD\"");
    let says = answer(&server, "f", |good| good.replace("v1=", "v0="));
    assert_eq!(says, "401 rejected_signature signature_malformed");
    let says = answer(&server, "f", |good| {
        format!("{},{BAD}", good.replace("v1=", "v0="))
    });
    assert_eq!(says, "401 rejected_signature signature_wrong");
}

#[test]
fn c03_g_a_secret_retires_at_its_time_without_a_restart() {
    let until = jiff::Timestamp::from_millisecond(now_ms() + 1500).unwrap();
    let server = start(&format!("{{ from = \"env:OLD\", until = \"{until}\" }}"));
    let send = |id: &str, secret| hook(id, order(id, 1, "paid")).secret(secret).send(&server);
    assert_eq!(send("before", OLD).says(), "202 accepted");
    eventually("the old secret is retired", || {
        send("before", OLD).status == 401
    });
    assert!(now_ms() >= until.as_millisecond(), "retired too early");
    assert_eq!(send("after", NEW).says(), "202 accepted");
}

#[test]
fn c03_only_a_fixed_number_of_entries_is_looked_at() {
    let server = start("\"env:OLD\"");
    let within = format!("{BAD},").repeat(15);
    assert_eq!(
        answer(&server, "last", |good| [&within, good].concat()),
        "202 accepted"
    );
    let beyond = format!("{BAD},").repeat(16);
    let says = answer(&server, "beyond", |good| [&beyond, good].concat());
    assert_eq!(says, "401 rejected_signature signature_too_many");
}
