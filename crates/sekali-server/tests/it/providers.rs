//! Every provider from its preset, against the real binary: what it sends, asks and hears.

use std::sync::LazyLock;

use sekali_verify::{Outgoing, Preset, Prover, Secret, Window};
use serde_json::Value;

use crate::support::{Connection, Reply, Server, Start, now_ms};

mod attacks;
mod batches;
mod explain;
mod handshakes;
mod keys;
mod pairs;
mod round_trip;
mod starts;

/// The vectors of the providers.
static VECTORS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let text = include_str!("../../../sekali-verify/testdata/vectors.json");
    serde_json::from_str(text).expect("the file is JSON")
});

/// The secret of a preset, in the form that it needs.
fn secret(preset: &Preset) -> String {
    match preset.name {
        "standard-webhooks" | "svix" | "clerk" | "resend" | "openai" | "gitlab" => {
            "whsec_ZmFrZS1zZWNyZXQtZm9yLXRlc3RzLW9ubHktMDAwMDE=".to_owned()
        }
        "adyen" => "0123456789abcdef".repeat(4),
        "postmark" => "hookuser:fake-password".to_owned(),
        "wise" | "sendgrid" | "discord" => vector(&preset.vectors.id)["secret"]
            .as_str()
            .unwrap()
            .to_owned(),
        name => format!("fake-secret-of-{name}"),
    }
}

fn vector(id: &str) -> &'static Value {
    VECTORS.iter().find(|vector| vector["id"] == id).unwrap()
}

/// The settings that a preset cannot do without.
fn settings(preset: &Preset) -> Vec<(String, String)> {
    let needed = preset
        .settings
        .iter()
        .filter(|(_, rule)| rule.default.is_none() && !rule.optional);
    needed
        .map(|(name, _)| (name.clone(), format!("fake-{name}")))
        .collect()
}

/// Writes the table of a source that is made from a preset.
fn table(preset: &Preset, more: &str) -> String {
    let settings: Vec<String> = settings(preset)
        .into_iter()
        .map(|(name, value)| format!("{name} = \"{value}\""))
        .collect();
    let secrets = match preset
        .schemes
        .iter()
        .all(|scheme| scheme.has_outside_keys())
    {
        true => String::new(),
        false => format!("secrets = [\"env:{}\"]", variable(preset)),
    };
    format!(
        "[[source]]\nid = \"{0}\"\npreset = \"{0}\"\n{secrets}\nsettings = {{ {1} }}\n{more}\n",
        preset.name,
        settings.join(", ")
    )
}

fn variable(preset: &Preset) -> String {
    format!("SECRET_{}", preset.name.to_uppercase().replace('-', "_"))
}

/// Starts a server with sources of these presets.
fn serve(presets: &[&'static Preset], more: &str) -> Server {
    start(presets, more).serve()
}

fn start(presets: &[&'static Preset], more: &str) -> Start {
    let tables: Vec<String> = presets.iter().map(|preset| table(preset, more)).collect();
    let start = Start::new(&tables.join("\n"));
    presets.iter().fold(start, |start, preset| {
        start.env(&variable(preset), &secret(preset))
    })
}

fn preset(name: &str) -> &'static Preset {
    Preset::find(name).unwrap()
}

/// Signs like the provider, for the address under test.
fn prover(preset: &Preset) -> Prover {
    let mut all = preset.defaults();
    for (name, value) in settings(preset) {
        all.insert(name, value);
    }
    let secrets = [Secret::new(secret(preset)).unwrap()];
    let window = Window {
        past_ms: 1000,
        future_ms: 1000,
    };
    Prover::new(&preset.schemes, &secrets, all, window).unwrap()
}

/// A request to a source of a server, not signed yet.
fn request(server: &Server, name: &str, body: &str) -> Outgoing {
    let mut request = Outgoing::post(
        server.url(&format!("/hooks/{name}")),
        http::HeaderMap::new(),
        bytes::Bytes::copy_from_slice(body.as_bytes()),
    );
    request
        .headers
        .insert("content-type", "application/json".parse().unwrap());
    request
}

/// Signs a request now and sends it.
fn send(server: &Server, preset: &Preset, request: Outgoing) -> Reply {
    let signed = prover(preset).sign_request(request, now_ms()).unwrap();
    send_as_is(server, &signed)
}

/// Sends a request as it stands.
fn send_as_is(server: &Server, request: &Outgoing) -> Reply {
    let path = request.url.split("://").nth(1).unwrap_or_default();
    let path = path.find('/').map_or("/", |at| &path[at..]);
    let mut head = format!(
        "{} {path} HTTP/1.1\r\nHost: {}\r\n",
        request.method,
        server.address()
    )
    .into_bytes();
    for (name, value) in &request.headers {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(format!("Content-Length: {}\r\n\r\n", request.body.len()).bytes());
    let mut connection = Connection::open(server.address());
    connection.write(&[&head[..], &request.body].concat());
    let reply = match request.method == http::Method::HEAD {
        true => connection.read_head(),
        false => connection.read(),
    };
    reply.expect("an answer")
}

/// The ids of all events, in the order in which they were stored.
fn stored(server: &Server) -> Vec<String> {
    server.column("select event_id from webhook_inbox order by seq", &[])
}
