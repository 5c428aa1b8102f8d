//! What providers ask at set-up: each gets the reply that it wants, and the question is recorded.

use http::Method;
use sekali_verify::Outgoing;

use super::{preset, request, send, send_as_is, serve, stored};
use crate::support::{Reply, Server, eventually};

fn get(server: &Server, name: &str, query: &str) -> Reply {
    let mut asked = request(server, name, "");
    asked.method = Method::GET;
    asked.url += query;
    send_as_is(server, &asked)
}

fn with(mut request: Outgoing, name: &'static str, value: &str) -> Outgoing {
    request.headers.insert(name, value.parse().unwrap());
    request
}

fn assert_recorded(server: &Server, kind: &str, outcome: &str) {
    let sql = "select count(*) from webhook_handshakes where kind = ? and outcome = ?";
    eventually("the handshake is recorded", || {
        server.count(sql, &[&kind, &outcome]) > 0
    });
}

#[test]
fn signed_challenges_are_echoed_only_to_their_provider() {
    let presets = ["slack", "twitch", "zoom"].map(preset);
    let server = serve(&presets, "");
    let slack = || {
        request(
            &server,
            "slack",
            r#"{"type":"url_verification","challenge":"c-1"}"#,
        )
    };
    let reply = send(&server, preset("slack"), slack());
    assert_eq!((reply.status, reply.text().as_str()), (200, "c-1"));
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    assert_eq!(send_as_is(&server, &slack()).status, 401);
    let kind = (
        "twitch-eventsub-message-type",
        "webhook_callback_verification",
    );
    let asked = with(
        request(&server, "twitch", r#"{"challenge":"c-2"}"#),
        kind.0,
        kind.1,
    );
    let reply = send(&server, preset("twitch"), asked);
    assert_eq!((reply.status, reply.text().as_str()), (200, "c-2"));
    let asked = request(
        &server,
        "zoom",
        r#"{"event":"endpoint.url_validation","payload":{"plainToken":"p"}}"#,
    );
    let reply = send(&server, preset("zoom"), asked).json();
    assert_eq!(
        (
            reply["plainToken"].as_str(),
            reply["encryptedToken"].as_str().map(str::len)
        ),
        (Some("p"), Some(64))
    );
    for kind in [
        "url_verification",
        "callback_verification",
        "url_validation",
    ] {
        assert_recorded(&server, kind, "answered");
    }
    assert!(stored(&server).is_empty(), "a handshake is no event");
}

#[test]
fn questions_by_get_are_answered_or_refused() {
    let more = "settings = { verify_token = \"env:SECRET_META\" }";
    let tables = ["dropbox", "okta", "braintree"]
        .map(|name| super::table(preset(name), ""))
        .join("\n");
    let meta = super::table(preset("meta"), "").replace("settings = {  }", more);
    let names = ["dropbox", "okta", "braintree", "meta"];
    let start = names.iter().fold(
        crate::support::Start::new(&format!("{tables}\n{meta}")),
        |start, name| start.env(&super::variable(preset(name)), &super::secret(preset(name))),
    );
    let server = start.serve();
    let reply = get(&server, "dropbox", "?challenge=c%201");
    assert_eq!((reply.status, reply.text().as_str()), (200, "c 1"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    let token = super::secret(preset("meta"));
    let meta = |token: &str| {
        get(
            &server,
            "meta",
            &format!("?hub.mode=subscribe&hub.challenge=7&hub.verify_token={token}"),
        )
    };
    assert_eq!(
        (meta(&token).status, meta(&token).text().as_str()),
        (200, "7")
    );
    assert_eq!(
        (meta("wrong").status, meta("wrong").text().as_str()),
        (403, "")
    );
    let mut okta = with(
        request(&server, "okta", ""),
        "x-okta-verification-challenge",
        "v",
    );
    okta.method = Method::GET;
    assert_eq!(send_as_is(&server, &okta).json()["verification"], "v");
    assert_eq!(
        get(
            &server,
            "braintree",
            "?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53"
        )
        .status,
        200
    );
    assert_eq!(
        get(&server, "braintree", "?bt_challenge=bad%20one").status,
        400
    );
    assert_recorded(&server, "subscribe", "answered");
    assert_recorded(&server, "subscribe", "refused");
    // What is no question is not sent with GET.
    let plain = get(&server, "dropbox", "");
    assert_eq!(
        (plain.status, plain.header("allow")),
        (405, Some("POST, GET"))
    );
}

#[test]
fn cloudevents_consent_is_given_to_listed_origins() {
    let more =
        "[source.settings]\nallowed_origins = \"eventemitter.example.com\"\nallowed_rate = \"100\"";
    let table = super::table(preset("cloudevents"), "").replace("settings = {  }", more);
    let server = crate::support::Start::new(&table)
        .env("SECRET_CLOUDEVENTS", "fake-cloudevents-token")
        .serve();
    let ask = |origin: &str| {
        let mut asked = with(
            request(&server, "cloudevents", ""),
            "webhook-request-origin",
            origin,
        );
        asked.method = Method::OPTIONS;
        send_as_is(&server, &asked)
    };
    let reply = ask("eventemitter.example.com");
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("webhook-allowed-origin"),
        Some("eventemitter.example.com")
    );
    assert_eq!(
        (reply.header("webhook-allowed-rate"), reply.header("allow")),
        (Some("100"), Some("POST"))
    );
    let reply = ask("evil.example");
    assert_eq!(
        (reply.status, reply.header("webhook-allowed-origin")),
        (405, None)
    );
}

#[test]
fn notion_s_token_is_shown_to_the_operator_and_nobody_else() {
    let token = "secret_fake_verification_token";
    let table = "[[source]]\nid = \"notion\"\npreset = \"notion\"\n";
    let server = Server::start(table);
    let sender = sekali_verify::Prover::new(
        &preset("notion").schemes,
        &[sekali_verify::Secret::new(token).unwrap()],
        sekali_verify::Settings::default(),
        sekali_verify::Window {
            past_ms: 1,
            future_ms: 1,
        },
    );
    let asked = request(
        &server,
        "notion",
        &format!("{{\"verification_token\":\"{token}\"}}"),
    );
    assert_eq!(
        send_as_is(&server, &asked).status,
        401,
        "not signed with its own token"
    );
    let signed = sender.unwrap().sign_request(asked, 0).unwrap();
    assert_eq!(send_as_is(&server, &signed).status, 200);
    assert_recorded(&server, "verification_token", "answered");
    let run = |arguments: &[&str]| String::from_utf8(server.run(arguments).stdout).unwrap();
    assert!(
        !run(&["handshakes"]).contains(token) && !run(&["handshakes", "--json"]).contains(token)
    );
    assert!(run(&["handshakes", "--reveal"]).contains(token));
    assert!(!server.log().contains(token), "{}", server.log());
    // Before the token is configured, nothing else is let in.
    let event = request(&server, "notion", r#"{"id":"e","type":"page.created"}"#);
    assert_eq!(send_as_is(&server, &event).status, 401);
}

#[test]
fn empty_bodies_and_lists_are_what_some_providers_check_with() {
    let presets = ["xero", "line", "intercom", "azure-event-grid"].map(preset);
    let server = serve(&presets, "");
    let intent = || {
        request(
            &server,
            "xero",
            r#"{"events":[],"firstEventSequence":0,"lastEventSequence":0}"#,
        )
    };
    let reply = send(&server, preset("xero"), intent());
    assert_eq!(
        (
            reply.status,
            reply.text().as_str(),
            reply.header("set-cookie")
        ),
        (200, "", None)
    );
    let refused = send_as_is(
        &server,
        &with(
            intent(),
            "x-xero-signature",
            "1VZdlEacFrDyT3KIa8GmBQcz9LlIR1cjJeM5STKh8g8=",
        ),
    );
    assert_eq!((refused.status, refused.text().as_str()), (401, ""));
    let reply = send(
        &server,
        preset("line"),
        request(&server, "line", r#"{"destination":"U","events":[]}"#),
    );
    assert_eq!(reply.status, 200);
    let mut head = request(&server, "intercom", "");
    head.method = Method::HEAD;
    assert_eq!(send_as_is(&server, &head).status, 200);
    let body = r#"[{"id":"1","eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":"v-1"}}]"#;
    let reply = send(
        &server,
        preset("azure-event-grid"),
        request(&server, "azure-event-grid", body),
    );
    assert_eq!(
        (reply.status, reply.json()["validationResponse"].as_str()),
        (200, Some("v-1"))
    );
    let forged = send_as_is(&server, &request(&server, "azure-event-grid", body));
    assert_eq!(forged.status, 401);
    assert!(stored(&server).is_empty());
}

#[test]
fn what_a_challenge_is_answered_with_signs_no_payload() {
    let server = serve(&[preset("braintree")], "");
    let challenge = "20f9f8ed05f77439fe955c977e4c8a53";
    let answer = get(&server, "braintree", &format!("?bt_challenge={challenge}")).text();
    let mut forged = request(&server, "braintree", "");
    let signature = answer.replace('|', "%7C");
    forged.body = format!("bt_signature={signature}&bt_payload={challenge}").into();
    let kind = "application/x-www-form-urlencoded";
    forged.headers.insert("content-type", kind.parse().unwrap());
    assert_eq!(send_as_is(&server, &forged).status, 401);
    assert!(stored(&server).is_empty());
}
