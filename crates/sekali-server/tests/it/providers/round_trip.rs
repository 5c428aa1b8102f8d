//! `send --preset` against `serve` with the same preset, for every provider that a receiver's secret can sign for.

use sekali_verify::Preset;

use super::{secret, serve, settings, variable, vector};
use crate::support::{Server, Start};

/// Sends the body of the preset's own vector, and returns what `send` says.
fn send(server: &Server, preset: &Preset) -> serde_json::Value {
    let vector = vector(&preset.vectors.id);
    let body = match preset.name {
        "braintree" => {
            "<notification><kind>check</kind><subject><check><id>7</id></check></subject></notification>"
        }
        _ => vector["body"].as_str().unwrap(),
    };
    let client = Start::new("")
        .env(&variable(preset), &secret(preset))
        .file("event.json", body);
    let (url, from) = (
        server.url(&format!("/hooks/{}", preset.name)),
        format!("env:{}", variable(preset)),
    );
    let mut arguments: Vec<String> = [
        "send",
        "--url",
        &url,
        "--secret",
        &from,
        "--preset",
        preset.name,
        "--json",
        "event.json",
    ]
    .map(str::to_owned)
    .into();
    for (name, value) in settings(preset) {
        arguments.extend(["--setting".to_owned(), format!("{name}={value}")]);
    }
    let kind = vector["headers"]["Content-Type"]
        .as_str()
        .filter(|_| preset.name != "braintree");
    arguments.extend(kind.map(|kind| format!("--header=Content-Type:{kind}")));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = client.command(&arguments).output().unwrap();
    serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|_| panic!("{}: {}", preset.name, String::from_utf8_lossy(&ran.stderr)))
}

#[test]
fn what_send_signs_is_taken_with_the_provider_s_own_answer() {
    let able: Vec<&'static Preset> = Preset::all().filter(|preset| preset.can_sign()).collect();
    assert!(able.len() >= 49, "only {} presets can sign", able.len());
    let server = serve(&able, "");
    for preset in &able {
        let success = preset.answer.status.unwrap_or(202);
        let first = send(&server, preset);
        assert_eq!(
            first["answers"][0]["status"], success,
            "{}: {first}",
            preset.name
        );
        let again = send(&server, preset);
        let known = preset.answer.status.unwrap_or(200);
        // Who has no ids sends an event each time, and a time in the body makes another body.
        let is_known =
            again["answers"][0]["status"] == known || again["answers"][0]["status"] == success;
        assert!(is_known, "{}: {again}", preset.name);
    }
    for preset in able {
        let count = server.count(
            "select count(*) from webhook_inbox where source = ?",
            &[&preset.name],
        );
        let minted = ["orcid", "dropbox"].contains(&preset.name);
        assert!(
            count == 1 || minted && count == 2,
            "{} stored {count}",
            preset.name
        );
    }
}

#[test]
fn only_the_provider_can_sign_with_its_private_key() {
    let client = Start::new("")
        .env("KEY", &secret(super::preset("discord")))
        .file("event.json", "{}");
    let arguments = [
        "send",
        "--url",
        "http://127.0.0.1:1/",
        "--secret",
        "env:KEY",
        "--preset",
        "discord",
        "event.json",
    ];
    let ran = client.command(&arguments).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("only the provider can sign"));
}
