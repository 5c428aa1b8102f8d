//! Genuine pairs that look alike are both stored, and what does not fit the mapping is never refused.

use super::{preset, request, send, serve, stored};

#[test]
fn equal_credentials_are_no_replay() {
    let server = serve(&["midtrans", "xendit", "cloudevents"].map(preset), "");
    let midtrans = |status: &str| {
        format!(
            r#"{{"transaction_id":"t","order_id":"o","status_code":"200","gross_amount":"10000.00","transaction_status":"{status}"}}"#
        )
    };
    for status in ["capture", "settlement"] {
        let sent = request(&server, "midtrans", &midtrans(status));
        assert_eq!(send(&server, preset("midtrans"), sent).status, 200);
    }
    for id in ["x-1", "x-2"] {
        let mut sent = request(
            &server,
            "xendit",
            r#"{"event":"payment.capture","data":{"payment_id":"p"}}"#,
        );
        sent.headers.insert("webhook-id", id.parse().unwrap());
        assert_eq!(send(&server, preset("xendit"), sent).status, 202);
    }
    for id in ["1", "2"] {
        let body = format!(r#"{{"specversion":"1.0","type":"t","source":"/a","id":"{id}"}}"#);
        let sent = request(&server, "cloudevents", &body);
        assert_eq!(send(&server, preset("cloudevents"), sent).status, 202);
    }
    assert_eq!(
        stored(&server),
        [
            "t:capture:200",
            "t:settlement:200",
            "x-1",
            "x-2",
            "/a 1",
            "/a 2"
        ]
    );
}

#[test]
fn the_same_signed_bytes_under_another_id_are_a_replay() {
    let server = serve(&[preset("github")], "");
    let push = |id: &str| {
        let mut sent = request(&server, "github", r#"{"repository":{"id":1}}"#);
        sent.headers
            .insert("x-github-delivery", id.parse().unwrap());
        send(&server, preset("github"), sent)
    };
    assert_eq!(push("d-1").says(), "202 accepted");
    assert_eq!(push("d-1").says(), "200 duplicate");
    assert_eq!(push("d-2").says(), "200 rejected_replay");
}

#[test]
fn a_signed_event_that_does_not_fit_is_stored_and_not_refused() {
    let effect = "[[source.effect]]\nkind = \"upsert\"\nwhen = [\"customer.*\"]\ntable = \"orders\"\n\
        key = { entity_id = \"event:entity_id\" }\ncolumns = { status = \"/type\", last_event_id = \"event:id\" }\n";
    let stripe = super::start(&[preset("stripe")], effect).serve();
    let bodies = [
        r#"{"id":"evt_1","type":"balance.available","data":{"object":{"object":"balance"}}}"#,
        r#"{"id":"evt_2","type":"customer.created","created":1767225600,"data":{"object":{}}}"#,
        r#"{"id":"evt_3","type":"customer.created","created":"yesterday","data":{"object":{"id":"c"}}}"#,
        r#"{"ping":true}"#,
        r#"[]"#,
        "not json",
        "",
    ];
    for body in bodies {
        let reply = send(&stripe, preset("stripe"), request(&stripe, "stripe", body));
        assert_eq!(reply.status, 202, "{body}: {}", reply.text());
    }
    stripe.wait_applied();
    let state = |id: &str| {
        stripe.column("select processing_status || ' ' || status_reason from webhook_inbox where event_id = ?", &[&id])
    };
    assert_eq!(state("evt_1"), ["ignored_unmatched no_effect"]);
    assert_eq!(state("evt_2"), ["dead_letter entity_missing"]);
    assert_eq!(state("evt_3"), ["dead_letter occurred_at_invalid"]);
}

#[test]
fn every_preset_stores_a_ping_that_it_never_heard_of() {
    let able: Vec<_> = sekali_verify::Preset::all()
        .filter(|preset| {
            preset.can_sign() && !["cloudevents", "adyen", "midtrans"].contains(&preset.name)
        })
        .collect();
    let server = serve(&able, "");
    for preset in able {
        let reply = send(&server, preset, {
            let mut ping = request(&server, preset.name, r#"{"hello":["world"]}"#);
            if preset.name == "twilio" {
                ping.headers.insert(
                    "content-type",
                    "application/x-www-form-urlencoded".parse().unwrap(),
                );
                ping.body = "hello=world".into();
            }
            ping
        });
        assert!(
            (200..300).contains(&reply.status),
            "{}: {} {}",
            preset.name,
            reply.status,
            reply.text()
        );
    }
}

#[test]
fn the_replay_guard_can_be_switched_off_but_not_on() {
    let server = serve(&[preset("github")], "replay_guard = false");
    for id in ["d-1", "d-2"] {
        let mut sent = request(&server, "github", r#"{"zen":"again"}"#);
        sent.headers
            .insert("x-github-delivery", id.parse().unwrap());
        assert_eq!(send(&server, preset("github"), sent).says(), "202 accepted");
    }
    let refused = super::start(&[preset("stripe")], "replay_guard = true").refusal();
    assert!(refused.contains("replay_guard"), "{refused}");
}

#[test]
fn binary_cloudevents_with_a_list_in_them_are_one_event() {
    let server = serve(&[preset("cloudevents")], "");
    let mut sent = request(&server, "cloudevents", "[{\"a\":1},{\"a\":2}]");
    for (name, value) in [
        ("ce-id", "1"),
        ("ce-source", "/s%20x"),
        ("ce-type", "t"),
        ("ce-specversion", "1.0"),
    ] {
        sent.headers.insert(name, value.parse().unwrap());
    }
    assert_eq!(
        send(&server, preset("cloudevents"), sent.clone()).status,
        202
    );
    sent.body = "[]".into();
    sent.headers.insert("ce-id", "2".parse().unwrap());
    assert_eq!(send(&server, preset("cloudevents"), sent).status, 202);
    assert_eq!(stored(&server), ["/s x 1", "/s x 2"]);
}

#[test]
fn changes_in_one_second_are_told_apart_by_their_ids() {
    let effect = "[[source.effect]]\nkind = \"upsert\"\ntable = \"orders\"\n\
        key = { entity_id = \"event:entity_id\" }\ncolumns = { status = \"/topic\", last_event_id = \"event:id\" }\n";
    let server = super::start(&[preset("intercom")], effect).serve();
    for id in ["n-1", "n-2"] {
        let body = format!(
            r#"{{"id":"{id}","topic":"{id}","data":{{"item":{{"type":"c","id":"7","updated_at":1759999998}}}}}}"#
        );
        assert_eq!(
            send(
                &server,
                preset("intercom"),
                request(&server, "intercom", &body)
            )
            .status,
            202
        );
        server.wait_applied();
    }
    assert_eq!(server.column("select status from orders", &[]), ["n-2"]);
}
