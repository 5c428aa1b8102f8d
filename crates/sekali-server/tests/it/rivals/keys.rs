//! Who may claim a key, what it is made of, and how long it is remembered.

use crate::support::{Connection, ORDERS, Server, Start, hook, now, order, orders_with};

#[test]
fn rival_01_an_unverified_request_claims_nothing() {
    let server = Server::start(ORDERS);
    let forged = hook("e", order("o-1", 9, "stolen")).secret("a-secret-of-a-stranger");
    assert_eq!(forged.send(&server).status, 401);
    assert_eq!(
        hook("e", order("o-1", 1, "paid")).send(&server).says(),
        "202 accepted"
    );
    server.wait_applied();
    assert_eq!(server.column("select status from orders", &[]), ["paid"]);
}

#[test]
fn rival_02_a_retry_after_503_is_taken() {
    let server = Server::start(&format!("[server]\nanswer_within = \"200ms\"\n{ORDERS}"));
    let hook = hook("e", order("o-1", 1, "paid"));
    let lock = server.lock();
    assert_eq!(hook.send(&server).status, 503);
    drop(lock);
    crate::support::eventually("the retry is taken", || {
        matches!(hook.send(&server).status, 200 | 202)
    });
    server.wait_applied();
    assert_eq!(server.writes("e"), 1);
}

#[test]
fn rival_03_no_duplicate_is_answered_before_the_first_is_stored() {
    let server = Server::start(ORDERS);
    let hook = hook("e", order("o-1", 1, "paid"));
    let lock = server.lock();
    let answers = crate::support::at_once(3, |lane| match lane {
        0 => {
            std::thread::sleep(std::time::Duration::from_millis(300));
            let stored = server.status("e");
            drop(server.db());
            format!("while locked: {stored}")
        }
        _ => {
            let mut connection = Connection::open(server.address());
            connection.write(&[hook.head(), hook.content()].concat());
            connection.set_patience(std::time::Duration::from_millis(250));
            connection
                .read()
                .map_or_else(|| "nothing".into(), |reply| reply.says())
        }
    });
    assert_eq!(answers, ["while locked: ", "nothing", "nothing"]);
    drop(lock);
    crate::support::eventually("both are stored as one", || {
        server.status("e") == "processed"
    });
}

#[test]
fn rival_04_a_replay_is_remembered_over_a_restart() {
    let mut server = Server::start(ORDERS);
    let (body, time) = (order("o-1", 1, "paid"), now());
    assert_eq!(
        hook("e", &body).timestamp(time).send(&server).says(),
        "202 accepted"
    );
    server.restart();
    let replay = hook("another", &body).timestamp(time).send(&server);
    assert_eq!(replay.says(), "200 rejected_replay");
    assert_eq!(
        server.count("select count(*) from webhook_variants", &[]),
        1,
        "no evidence"
    );
    assert_eq!(
        hook("e", &body).timestamp(time).send(&server).says(),
        "200 duplicate"
    );
}

#[test]
fn rival_05_without_an_id_nothing_is_taken_and_nothing_shared() {
    let server = Server::start(ORDERS);
    for number in 0..2 {
        let body = order(&format!("o-{number}"), 1, "paid");
        let reply = hook("", &body).send(&server);
        assert_eq!(reply.says(), "400 rejected_malformed event_id_missing");
        let reply = hook("x", &body).without("X-Webhook-Id").send(&server);
        assert_eq!(reply.says(), "400 rejected_malformed event_id_missing");
    }
    assert_eq!(server.count("select count(*) from webhook_inbox", &[]), 0);
}

#[test]
fn rival_06_the_same_body_under_two_ids_is_two_events() {
    let server = Server::start(ORDERS);
    let body = r#"{"entity_id":"o-1","occurred_at":"2026-01-02T03:04:05Z","status":"paid"}"#;
    for (id, time) in [("a", now() - 1), ("b", now())] {
        assert_eq!(
            hook(id, body).timestamp(time).send(&server).says(),
            "202 accepted"
        );
    }
}

#[test]
fn rival_07_joined_fields_do_not_run_into_each_other() {
    let config = ORDERS.replace("event_type =", "scope = \"header:X-Scope\"\nevent_type =");
    let server = Server::start(&config);
    for (number, (scope, id)) in [("ab", "c"), ("a", "bc"), ("abc", "")]
        .into_iter()
        .enumerate()
    {
        let id = if id.is_empty() { "d" } else { id };
        let delivery = hook(id, order(&format!("o-{number}"), 1, "paid")).header("X-Scope", scope);
        assert_eq!(
            delivery.send(&server).says(),
            "202 accepted",
            "{scope} {id}"
        );
    }
}

#[test]
fn rival_08_a_source_that_moves_keeps_its_keys() {
    let mut server = Server::start(ORDERS);
    assert_eq!(
        hook("e", order("o-1", 1, "paid")).send(&server).says(),
        "202 accepted"
    );
    server.reconfigure(&orders_with("path = \"moved\""));
    server.restart();
    let again = hook("e", order("o-1", 1, "paid")).to("moved").send(&server);
    assert_eq!(again.says(), "200 duplicate");
    assert_eq!(hook("e", order("o-1", 1, "paid")).send(&server).status, 404);
}

#[test]
fn rival_09_memory_that_ends_inside_the_window_is_refused_at_the_start() {
    let short = "[retention]\npayloads = \"1m\"\naudit = \"1m\"\nkeys = \"9m\"\n";
    let said = Start::new(&format!("{short}{ORDERS}")).refusal();
    assert!(said.contains("twice the tolerance"), "{said}");
    let server = Server::start(ORDERS);
    let ahead = hook("e", order("o-1", 1, "paid")).timestamp(now() + 290);
    assert_eq!(ahead.send(&server).says(), "202 accepted");
    assert_eq!(ahead.send(&server).says(), "200 duplicate");
}

#[test]
fn rival_10_the_hash_is_still_there_when_the_event_is_done() {
    let server = Server::start(ORDERS);
    assert_eq!(
        hook("e", order("o-1", 1, "paid")).send(&server).says(),
        "202 accepted"
    );
    server.wait_applied();
    let other = hook("e", order("o-1", 1, "refunded")).send(&server);
    assert_eq!(other.says(), "200 rejected_inconsistent_duplicate");
    server.wait_applied();
    assert_eq!(server.column("select status from orders", &[]), ["paid"]);
}

#[test]
fn rival_29_tenants_and_sources_do_not_share_ids() {
    let scoped = ORDERS.replace("event_type =", "scope = \"header:X-Scope\"\nevent_type =");
    let other = scoped.replace("id = \"orders\"", "id = \"others\"");
    let server = Server::start(&format!("{scoped}\n{other}"));
    for (number, (source, scope)) in [("orders", "a"), ("orders", "b"), ("others", "a")]
        .into_iter()
        .enumerate()
    {
        let delivery = hook("same", order(&format!("o-{number}"), 1, "paid"));
        let reply = delivery.header("X-Scope", scope).to(source).send(&server);
        assert_eq!(reply.says(), "202 accepted", "{source} {scope}");
    }
    server.wait_applied();
    assert_eq!(server.count("select count(*) from orders", &[]), 3);
}
