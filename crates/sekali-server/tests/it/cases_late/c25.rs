//! Events that always fail, and payloads that cannot be read back.

use std::time::{Duration, Instant};

use crate::support::{Server, eventually, hook, order, orders_with};

const RETRY: &str = "retry = { base = \"10ms\", cap = \"20ms\", max_attempts = 3 }";

/// Takes in an event about `poison` and a hundred about others, without applying any.
fn received() -> Server {
    let server = Server::start(&without_workers());
    for number in 0..=100 {
        let (id, entity) = match number {
            0 => ("poison".to_owned(), "poison".to_owned()),
            _ => (format!("e{number}"), format!("o-{number}")),
        };
        let reply = hook(&id, order(&entity, 1, "paid")).send(&server);
        assert_eq!(reply.says(), "202 accepted");
    }
    server
}

fn without_workers() -> String {
    format!("{}\n[worker]\ncount = 0\n", orders_with(RETRY))
}

/// Starts to apply, and holds that the others are applied soon while `poison` ends in the dead letter.
fn assert_only_poison_fails(server: &mut Server, effect_timeout: &str) {
    let worker = format!("[worker]\neffect_timeout = \"{effect_timeout}\"\n");
    server.reconfigure(&format!("{}\n{worker}", orders_with(RETRY)));
    server.restart();
    let started = Instant::now();
    let others = "select count(*) from webhook_inbox where processing_status = 'processed'";
    eventually("the others are applied", || {
        server.count(others, &[]) == 100
    });
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "the others took {took:?}");
    eventually("the poison is given up", || {
        server.status("poison") == "dead_letter"
    });
    let written = "select count(*) from order_writes";
    assert_eq!(server.count(written, &[]), 100, "each of the others once");
    let reply = hook("after", order("after", 1, "paid")).send(server);
    assert_eq!(reply.says(), "202 accepted");
    eventually("the worker lives", || server.status("after") == "processed");
}

fn poison(server: &Server, column: &str) -> String {
    let sql = format!("select cast({column} as text) from webhook_inbox where event_id = 'poison'");
    server.column(&sql, &[]).join(",")
}

#[test]
fn c25_a_row_that_the_database_refuses_fails_alone_and_at_once() {
    let mut server = received();
    server.edit(
        "create trigger order_refused before insert on orders when new.entity_id = 'poison'
        begin select raise(abort, 'no poison here'); end",
    );
    assert_only_poison_fails(&mut server, "1s");
    assert_eq!(poison(&server, "status_reason"), "constraint");
    assert_eq!(poison(&server, "attempts"), "1");
    let error = poison(&server, "error_message");
    assert!(error.contains("no poison here"), "{error}");
}

#[test]
fn c25_an_event_that_fails_every_time_is_given_up_after_its_last_attempt() {
    let mut server = received();
    server.edit(
        "create trigger order_endless after insert on orders when new.entity_id = 'poison'
        begin
            insert into order_writes select 'never', 'never' where (with recursive n(i) as
                (select 1 union all select i + 1 from n) select max(i) from n) = 0;
        end",
    );
    assert_only_poison_fails(&mut server, "100ms");
    assert_eq!(poison(&server, "status_reason"), "effect_timeout");
    assert_eq!(poison(&server, "attempts"), "3");
    assert_ne!(poison(&server, "error_message"), "-");
    let attempts = "select a.status from webhook_attempts a join webhook_inbox i on i.seq = a.inbox_seq \
        where i.event_id = 'poison' order by a.id";
    assert_eq!(
        server.column(attempts, &[]),
        ["failed", "failed", "dead_letter"]
    );
    assert_eq!(server.metric("sekali_inbox_dead_letters "), 1.0);
}

#[test]
fn c25_a_damaged_payload_is_set_aside_and_fails_nobody_else() {
    for (damage, reason) in [
        (
            "update webhook_payloads set body = x'7b' where seq = 1",
            "payload_damaged",
        ),
        (
            "delete from webhook_payloads where seq = 1",
            "payload_missing",
        ),
        // What no program of ours writes: another type in the column.
        (
            "update webhook_payloads set body = 7 where seq = 1",
            "payload_missing",
        ),
        (
            "update webhook_payloads set headers = x'ff00' where seq = 1",
            "payload_missing",
        ),
    ] {
        let mut server = received();
        server.edit("drop trigger webhook_payloads_append_only");
        server.edit(damage);
        assert_only_poison_fails(&mut server, "1s");
        assert_eq!(poison(&server, "status_reason"), reason, "{damage}");
        assert_eq!(poison(&server, "attempts"), "1", "it is not claimed again");
    }
}
