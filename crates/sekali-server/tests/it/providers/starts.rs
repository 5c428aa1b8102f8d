//! What a start with a preset refuses, and how it says so.

use sekali_verify::Preset;

use super::{preset, secret, start, variable};
use crate::support::Start;

#[test]
fn every_preset_starts() {
    let all: Vec<&'static Preset> = Preset::all().collect();
    assert!(all.len() >= 57);
    let server = super::serve(&all, "");
    let checked = server.run(&["check"]);
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}

#[test]
fn an_unknown_preset_is_told_with_the_nearest_ones() {
    for (name, near) in [
        ("strpie", "stripe"),
        ("shopfy", "shopify"),
        ("webhooks", "standard-webhooks"),
        ("hub", "github"),
    ] {
        let said = Start::new(&format!(
            "[[source]]\nid = \"a\"\npreset = \"{name}\"\nsecrets = [\"env:ORDERS_SECRET\"]\n"
        ))
        .refusal();
        assert!(
            said.contains("is unknown; did you mean") && said.contains(near),
            "{said}"
        );
    }
    let said = Start::new("[[source]]\nid = \"a\"\npreset = \"qqqqqqqq\"\n").refusal();
    assert!(said.contains("sekali providers"), "{said}");
    let said = Start::new("[[source]]\nid = \"a\"\nscheme = \"stripe\"\n").refusal();
    assert!(said.contains("preset = \"stripe\""), "{said}");
}

#[test]
fn secrets_that_cannot_be_used_are_refused_for_every_preset() {
    let needy = Preset::all().filter(|preset| {
        let has_own_keys = !preset
            .schemes
            .iter()
            .all(|scheme| scheme.has_outside_keys());
        has_own_keys && preset.name != "notion"
    });
    for preset in needy {
        for (value, says) in [
            ("", "empty"),
            ("   ", "blanks"),
            (" fake-secret", "blank"),
            ("short", "shorter"),
        ] {
            let said = start(&[preset], "").env(&variable(preset), value).refusal();
            assert!(said.contains(says), "{} {value:?}: {said}", preset.name);
        }
        let said = start(&[preset], "")
            .without_env(&variable(preset))
            .refusal();
        assert!(said.contains("is not set"), "{}: {said}", preset.name);
    }
}

#[test]
fn a_secret_of_the_wrong_form_is_refused() {
    for (name, value) in [
        ("openai", "whsec_not base64!"),
        ("adyen", "not-hexadecimal"),
        ("wise", "no pem here"),
        ("discord", "abcdef0123"),
    ] {
        let said = start(&[preset(name)], "")
            .env(&variable(preset(name)), value)
            .refusal();
        assert!(
            said.contains("has not the form that the scheme needs"),
            "{name}: {said}"
        );
        assert!(!said.contains(value), "{said}");
    }
}

#[test]
fn settings_are_asked_for_by_their_names() {
    let paypal = "[[source]]\nid = \"a\"\npreset = \"paypal\"\n";
    let said = Start::new(paypal).refusal();
    assert!(
        said.contains("settings.webhook_id") && said.contains("PayPal shows"),
        "{said}"
    );
    let said = Start::new(&format!(
        "{paypal}settings = {{ webhook_id = \"w\", colour = \"red\" }}\n"
    ))
    .refusal();
    assert!(said.contains("settings.colour"), "{said}");
    let meta = "[[source]]\nid = \"a\"\npreset = \"meta\"\nsecrets = [\"env:SECRET_META\"]\nsettings = { verify_token = \"plain\" }\n";
    let said = Start::new(meta)
        .env("SECRET_META", &secret(preset("meta")))
        .refusal();
    assert!(
        said.contains("is a secret") && !said.contains("plain\""),
        "{said}"
    );
}
