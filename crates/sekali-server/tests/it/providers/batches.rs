//! Deliveries with several events: each is an event of its own, and one answer stands for all.

use super::{preset, request, send, serve, stored};
use crate::support::{Reply, Server};

fn line(server: &Server, ids: &[&str]) -> Reply {
    let event = |id: &&str| {
        format!(
            r#"{{"type":"message","webhookEventId":"{id}","timestamp":1759999999123,"source":{{"type":"user","userId":"U"}},"deliveryContext":{{"isRedelivery":false}}}}"#
        )
    };
    let events: Vec<String> = ids.iter().map(event).collect();
    let body = format!(r#"{{"destination":"D","events":[{}]}}"#, events.join(" , "));
    send(server, preset("line"), request(server, "line", &body))
}

#[test]
fn every_element_is_an_event_of_its_own() {
    let server = serve(&[preset("line")], "");
    assert_eq!(line(&server, &["a", "b", "c"]).status, 200);
    assert_eq!(stored(&server), ["a", "b", "c"]);
    let body = server.column(
        "select cast(body as text) from webhook_payloads order by seq limit 1",
        &[],
    );
    assert!(
        body[0].starts_with(r#"{"type":"message","webhookEventId":"a""#),
        "{body:?}"
    );
    let scopes = server.column("select distinct scope from webhook_inbox", &[]);
    assert_eq!(
        scopes,
        ["D"],
        "what stands above the element is read as well"
    );
    // In another grouping, those that are known are known.
    assert_eq!(line(&server, &["c", "d"]).status, 200);
    assert_eq!(stored(&server), ["a", "b", "c", "d"]);
    let outcomes = server.column("select outcome from webhook_deliveries order by id", &[]);
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| *outcome == "duplicate")
            .count(),
        1
    );
}

#[test]
fn one_element_that_cannot_be_stored_refuses_the_whole_delivery() {
    let server = serve(&["line", "cloudevents"].map(preset), "");
    let long = "x".repeat(256);
    assert_eq!(line(&server, &["a", &long]).status, 400);
    let body = r#"[{"specversion":"1.0","type":"t","source":"/a","id":"1"},{"specversion":"1.0","type":"t","source":"/a"}]"#;
    let cloudevents = preset("cloudevents");
    assert_eq!(
        send(&server, cloudevents, request(&server, "cloudevents", body)).status,
        400
    );
    assert!(stored(&server).is_empty());
}

#[test]
fn adyen_is_told_accepted_for_what_is_stored_and_for_what_is_known() {
    let server = serve(&[preset("adyen")], "");
    let item = |reference: &str| {
        format!(
            r#"{{"NotificationRequestItem":{{"pspReference":"{reference}","merchantAccountCode":"M","amount":{{"value":1130,"currency":"EUR"}},"eventCode":"AUTHORISATION","success":"true","eventDate":"2026-01-01T00:00:00+01:00","additionalData":{{}}}}}}"#
        )
    };
    let body = format!(
        r#"{{"live":"false","notificationItems":[{},{}]}}"#,
        item("p-1"),
        item("p-2")
    );
    for _ in 0..2 {
        let reply = send(&server, preset("adyen"), request(&server, "adyen", &body));
        assert_eq!((reply.status, reply.text().as_str()), (200, "[accepted]"));
    }
    assert_eq!(
        stored(&server),
        ["p-1:AUTHORISATION:true", "p-2:AUTHORISATION:true"]
    );
    // One item whose signature is wrong condemns them all.
    let signed = super::prover(preset("adyen"))
        .sign_request(request(&server, "adyen", &body.replace("p-2", "p-3")), 0)
        .unwrap();
    let mut forged = signed.clone();
    forged.body = String::from_utf8(signed.body.to_vec())
        .unwrap()
        .replace("p-3", "p-4")
        .into();
    assert_eq!(super::send_as_is(&server, &forged).status, 401);
    assert_eq!(stored(&server).len(), 2);
}

#[test]
fn more_elements_than_any_provider_sends_are_refused() {
    let server = serve(&[preset("hubspot")], "");
    let body = format!("[{}0]", "0,".repeat(5000));
    let reply = send(
        &server,
        preset("hubspot"),
        request(&server, "hubspot", &body),
    );
    assert_eq!(reply.says(), "400 rejected_malformed batch_too_large");
    assert!(stored(&server).is_empty());
}
