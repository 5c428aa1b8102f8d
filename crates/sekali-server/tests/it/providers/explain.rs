//! `sekali verify`: why does this captured request not verify?

use super::{preset, prover, request, secret, send_as_is, serve};
use crate::support::{Start, eventually, now_ms};

fn client() -> Start {
    Start::new("").env("KEY", &secret(preset("github")))
}

fn verify(client: &Start, arguments: &[&str]) -> (Option<i32>, String) {
    let all = [
        &["verify", "--preset", "github", "--secret", "env:KEY"],
        arguments,
    ]
    .concat();
    let ran = client.command(&all).output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    (ran.status.code(), String::from_utf8(said).unwrap())
}

/// A request as it goes over the wire, signed over `signed` and with `body` in it.
fn raw(signed: &str, body: &str) -> String {
    let server = sekali_verify::Outgoing::post(
        "http://h/hooks/github",
        http::HeaderMap::new(),
        signed.to_owned().into(),
    );
    let headers = prover(preset("github"))
        .sign_request(server, 0)
        .unwrap()
        .headers;
    let signature = headers["x-hub-signature-256"].to_str().unwrap();
    format!(
        "POST /hooks/github HTTP/1.1\r\nHost: h\r\nX-Hub-Signature-256: {signature}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_captured_request_is_explained() {
    let good = client().file("r.txt", raw("{\"a\":1}", "{\"a\":1}"));
    let (code, said) = verify(&good, &["r.txt"]);
    assert_eq!((code, said.contains("verified")), (Some(0), true), "{said}");
    let again = client().file("r.txt", raw("{\"a\": 1}", "{\"a\":1}"));
    let (code, said) = verify(&again, &["r.txt"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("signature_wrong") && said.contains("body_printed_again"),
        "{said}"
    );
    let (_, said) = verify(&again, &["r.txt", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(json["findings"][0]["code"], "body_printed_again");
    let shown = raw("{\"a\":1}", "");
    let signature = shown
        .split("sha256=")
        .nth(1)
        .unwrap()
        .split('\r')
        .next()
        .unwrap();
    assert!(
        !said.contains(signature),
        "the right signature is never shown"
    );
}

#[test]
fn bad_captures_are_told() {
    for (text, says) in [("nonsense", "request line"), ("{}", "HAR"), ("", "empty")] {
        let (code, said) = verify(&client().file("r.txt", text), &["r.txt"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(said.contains(says), "{text}: {said}");
    }
}

#[test]
fn requests_that_were_kept_are_explained_with_their_source() {
    let presets = ["github", "sentry"].map(preset);
    let server = serve(&presets, "keep_rejected = 2");
    let wrong = |body: &str| {
        let signed = prover(preset("sentry"))
            .sign_request(request(&server, "sentry", body), now_ms())
            .unwrap();
        let mut moved = request(&server, "github", body);
        let signature = format!(
            "sha256={}",
            signed.headers["sentry-hook-signature"].to_str().unwrap()
        );
        moved
            .headers
            .insert("x-hub-signature-256", signature.parse().unwrap());
        assert_eq!(send_as_is(&server, &moved).status, 401);
    };
    for body in ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"] {
        wrong(body);
    }
    let sql = "select group_concat(body) from (select cast(body as text) body from webhook_rejected_requests order by id)";
    eventually("the newest two are kept", || {
        server.column(sql, &[]) == ["{\"n\":2},{\"n\":3}"]
    });
    let run = |arguments: &[&str]| {
        let ran = server.run(arguments);
        (
            ran.status.code(),
            String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap(),
        )
    };
    let (code, said) = run(&["verify", "--list"]);
    assert!(
        code == Some(0) && said.contains("signature_wrong"),
        "{said}"
    );
    let (code, said) = run(&["verify", "--rejected"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("other_source") && said.contains("sentry"),
        "{said}"
    );
    let (code, _) = run(&["verify", "--rejected", "999"]);
    assert_eq!(code, Some(3));
    assert!(!server.log().contains(&secret(preset("github"))));
}

#[test]
fn credentials_in_kept_requests_are_digests() {
    let presets = ["github", "docker-hub"].map(preset);
    let server = serve(&presets, "keep_rejected = 5");
    let mut sent = request(&server, "github", "{}");
    for (name, value) in [
        ("authorization", "Bearer fake-credential-1"),
        ("x-api-key", "fake-credential-2"),
        ("x-hub-signature-256", "sha256=00"),
        ("x-gitlab-token", "fake-credential-3"),
    ] {
        sent.headers.insert(name, value.parse().unwrap());
    }
    assert_eq!(send_as_is(&server, &sent).status, 401);
    let mut sent = request(&server, "docker-hub", "{}");
    sent.url += "?token=fake-credential-4&x=plain";
    assert_eq!(send_as_is(&server, &sent).status, 401);
    let sql = "select group_concat(url || headers) from webhook_rejected_requests";
    eventually("both are kept", || {
        server.count("select count(*) from webhook_rejected_requests", &[]) == 2
    });
    let kept = server.column(sql, &[]).join("");
    assert!(!kept.contains("fake-credential"), "{kept}");
    assert!(
        kept.contains("sha256=00") && kept.contains("x=plain") && kept.contains("token=sha256:"),
        "{kept}"
    );
}
