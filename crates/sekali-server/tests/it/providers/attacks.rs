//! What somebody tries who has no secret, or only one delivery that was captured.

use sekali_verify::{Outgoing, Prover, Secret, Settings, Window};
use sha2::{Digest as _, Sha256};

use super::{preset, prover, request, send_as_is, serve, start, stored};
use crate::support::{Server, eventually, now_ms};

fn with(mut request: Outgoing, name: &'static str, value: &str) -> Outgoing {
    request.headers.insert(name, value.parse().unwrap());
    request
}

#[test]
fn the_query_of_a_request_is_its_own_whatever_the_public_url_is() {
    let event_grid = preset("azure-event-grid");
    let body = r#"[{"id":"e-1","eventType":"a","subject":"s","eventTime":"2026-01-01T00:00:00Z","data":{}}]"#;
    let known = "public_url = \"https://hooks.example/hooks/azure-event-grid\"";
    let server = serve(&[event_grid], known);
    for query in ["", "?code=wrong", "?code="] {
        let mut sent = request(&server, "azure-event-grid", body);
        sent.url += query;
        assert_eq!(send_as_is(&server, &sent).status, 401, "{query}");
    }
    let mut sent = request(&server, "azure-event-grid", body);
    sent.url += "?code=fake-secret-of-azure-event-grid";
    assert_eq!(send_as_is(&server, &sent).status, 200);
    assert_eq!(stored(&server), ["e-1"]);
    for url in [
        "https://h/hooks/a?code=x",
        "https://h/#a",
        "h/hooks/a",
        "ftp://h/a",
    ] {
        let said = start(&[event_grid], &format!("public_url = \"{url}\"")).refusal();
        assert!(said.contains("public_url"), "{said}");
    }
}

#[test]
fn a_label_makes_no_form_of_signed_json() {
    let server = serve(&["slack", "github"].map(preset), "");
    let evil = "%7B%22type%22%3A%22event_callback%22%2C%22event_id%22%3A%22EVIL%22%7D";
    let body =
        format!(r#"{{"event_id":"e-1","event":{{"type":"message","text":"a&payload={evil}&b"}}}}"#);
    for name in ["slack", "github"] {
        let asked = request(&server, name, &body);
        let asked = with(asked, "x-github-delivery", "d-1");
        let signed = prover(preset(name)).sign_request(asked, now_ms()).unwrap();
        let lying = with(signed, "content-type", "application/x-www-form-urlencoded");
        let reply = send_as_is(&server, &lying);
        assert!(reply.status < 300, "{}", reply.says());
    }
    assert_eq!(stored(&server), ["e-1", "d-1"]);
    let bodies = server.column("select cast(body as text) from webhook_payloads", &[]);
    assert!(bodies.iter().all(|stored| *stored == body), "{bodies:?}");
}

#[test]
fn a_plain_hash_is_not_extended() {
    let server = serve(&[preset("hubspot")], "");
    let secret = "fake-secret-of-hubspot";
    // The padding of SHA-256 behind the text, and then anything: only its first byte matters here.
    let extended = [b"[]\x80\x00\x00&x=[evil]".as_slice()].concat();
    let digest = Sha256::digest([secret.as_bytes(), &extended].concat());
    let mut sent = request(&server, "hubspot", "");
    sent.body = extended.into();
    let sent = with(sent, "x-hubspot-signature-version", "v1");
    let sent = with(sent, "x-hubspot-signature", &hex::encode(digest));
    assert_eq!(
        send_as_is(&server, &sent).says(),
        "401 rejected_signature signature_malformed"
    );
    assert!(stored(&server).is_empty());
}

/// Asks like Notion does, with a token of one's own.
fn token(server: &Server, token: &str) -> u16 {
    let window = Window {
        past_ms: 1,
        future_ms: 1,
    };
    let secrets = [Secret::new(token).unwrap()];
    let schemes = &preset("notion").schemes;
    let sender = Prover::new(schemes, &secrets, Settings::default(), window).unwrap();
    let body = format!("{{\"verification_token\":\"{token}\"}}");
    let asked = request(server, "notion", &body);
    send_as_is(server, &sender.sign_request(asked, 0).unwrap()).status
}

#[test]
fn a_stranger_s_token_is_not_taken_beside_the_configured_one() {
    let server = serve(&[preset("notion")], "");
    assert_eq!(token(&server, "secret_of_a_stranger"), 401);
    assert_eq!(token(&server, "fake-secret-of-notion"), 200);
    // Before there is one, all are shown, and the operator is told that they may be anybody's.
    let server = Server::start("[[source]]\nid = \"notion\"\npreset = \"notion\"\n");
    for name in ["secret_a_0000000", "secret_\u{9b}2J_0000"] {
        assert_eq!(token(&server, name), 200);
    }
    let sql = "select count(*) from webhook_handshakes";
    eventually("both are recorded", || server.count(sql, &[]) == 2);
    let shown = server.run(&["handshakes", "--reveal"]);
    let [shown, told] = [shown.stdout, shown.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(told.contains("more than one secret"), "{told}");
    assert!(
        !shown.contains('\u{9b}') && shown.contains("\\u{9b}2J"),
        "{shown}"
    );
}

#[test]
fn what_stands_beside_a_batch_is_bounded() {
    let server = serve(&[preset("line")], "");
    let junk: Vec<String> = (0..2000).map(|number| format!("\"k{number}\":0")).collect();
    let event =
        r#"{"type":"message","webhookEventId":"w-1","timestamp":1,"source":{"userId":"u"}}"#;
    let body = format!("{{{},\"events\":[{event}]}}", junk.join(","));
    let signed = prover(preset("line")).sign_request(request(&server, "line", &body), now_ms());
    let reply = send_as_is(&server, &signed.unwrap());
    assert!(
        reply.says().ends_with("batch_too_large"),
        "{}",
        reply.says()
    );
    assert!(stored(&server).is_empty());
}

#[test]
fn more_values_than_are_read_are_told_as_that() {
    let server = serve(&[preset("sentry")], "unusable = \"refuse\"");
    let body = format!("[{}1]", "1,".repeat(600_000));
    let asked = with(request(&server, "sentry", &body), "request-id", "r-1");
    let signed = prover(preset("sentry"))
        .sign_request(asked, now_ms())
        .unwrap();
    let said = send_as_is(&server, &signed).says();
    assert_eq!(said, "400 rejected_malformed body_too_many_values");
}

#[test]
fn headers_of_strangers_are_kept_up_to_a_bound() {
    let server = serve(&[preset("cloudevents")], "");
    let element =
        |number| format!(r#"{{"specversion":"1.0","source":"/a","id":"{number}","type":"t"}}"#);
    let body = format!("[{},{}]", element(1), element(2));
    let asked = request(&server, "cloudevents", &body);
    let asked = with(asked, "content-type", "application/cloudevents-batch+json");
    let asked = with(asked, "user-agent", &"a".repeat(50_000));
    let signed = prover(preset("cloudevents"))
        .sign_request(asked, now_ms())
        .unwrap();
    assert_eq!(send_as_is(&server, &signed).status, 202);
    let longest = "select max(length(headers)) from webhook_payloads";
    let longest = server.count(longest, &[]);
    assert!((4096..6000).contains(&longest), "{longest}");
}

#[test]
fn a_url_that_is_signed_and_not_configured_is_told() {
    let square = preset("square");
    let said = |more: &str| {
        let ran = serve(&[square], more).run(&["check"]);
        String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap()
    };
    assert!(said("").contains("set public_url"), "{}", said(""));
    let known = said("public_url = \"https://hooks.example/hooks/square\"");
    assert!(!known.contains("set public_url"), "{known}");
}
