//! The end of a process in the middle of an event, wanted and not wanted.

use crate::support::{ORDERS, Server, eventually, hook, order};

/// Makes the write of the order `slow` take very long, or one or two seconds.
fn slow(steps: u64) -> String {
    format!(
        "create trigger order_slow after insert on orders when new.entity_id = 'slow'
        begin
            insert into order_writes select 'never', 'never' where (with recursive n(i) as
                (select 1 union all select i + 1 from n where i < {steps}) select max(i) from n) = 0;
        end"
    )
}

/// Starts to apply one slow event with three more of its entity and ten of others behind it.
fn processing(steps: u64) -> Server {
    let mut server = Server::start(&format!("{ORDERS}\n[worker]\ncount = 0\n"));
    for number in 1..=14 {
        let (entity, version) = match number {
            1..=4 => ("slow".to_owned(), number),
            _ => (format!("o-{number}"), 1),
        };
        let body = order(&entity, version, &format!("v{version}"));
        let reply = hook(&format!("e{number}"), body).send(&server);
        assert_eq!(reply.says(), "202 accepted");
    }
    server.edit(&slow(steps));
    server.reconfigure(&format!(
        "{ORDERS}\n[worker]\nlease = \"10m\"\neffect_timeout = \"10m\"\n"
    ));
    server.restart();
    eventually("the slow event is being processed", || {
        server.status("e1") == "processing"
    });
    server
}

fn assert_all_applied(server: &Server) {
    server.wait_applied();
    for number in 1..=14 {
        let id = format!("e{number}");
        assert_eq!(server.status(&id), "processed");
        assert_eq!(server.writes(&id), 1, "{id}");
    }
    let state = "select status from orders where entity_id = 'slow'";
    assert_eq!(server.column(state, &[]), ["v4"]);
}

fn attempts(server: &Server, id: &str) -> i64 {
    let sql = "select attempts from webhook_inbox where event_id = ?";
    server.count(sql, &[&id])
}

#[test]
fn c26_a_killed_process_is_taken_over_at_the_next_start() {
    let mut server = processing(u64::MAX >> 1);
    server.kill9();
    assert_eq!(server.status("e1"), "processing");
    assert_eq!(server.writes("e1"), 0);
    server.edit("drop trigger order_slow");
    // The lease has ten minutes to go; on SQLite a start knows that nobody else holds one.
    server.restart();
    assert_all_applied(&server);
    assert_eq!(attempts(&server, "e1"), 2, "the try that died counts");
    let died = "select count(*) from webhook_attempts a join webhook_inbox i on i.seq = a.inbox_seq \
        where i.event_id = 'e1' and a.attempt = 1 and a.reason = 'lease_expired'";
    assert_eq!(server.count(died, &[]), 1);
}

#[test]
fn c26_a_stop_finishes_the_event_at_hand_and_gives_the_others_back() {
    let mut server = processing(30_000_000);
    server.terminate();
    assert_eq!(server.wait_ended().code(), Some(0));
    let held = "select count(*) from webhook_inbox \
        where processing_status = 'processing' or lease_token is not null or lease_until is not null";
    assert_eq!(server.count(held, &[]), 0);
    assert_eq!(server.status("e1"), "processed", "it was at hand");
    assert_eq!(attempts(&server, "e1"), 1);
    let waiting =
        "select count(*) from webhook_inbox where processing_status = 'received' and attempts = 0";
    assert!(server.count(waiting, &[]) > 0, "everything was finished");
    server.edit("drop trigger order_slow");
    server.restart();
    assert_all_applied(&server);
}

#[test]
fn c26_a_stuck_effect_is_ended_by_its_time_limit_and_not_by_the_end_of_its_process() {
    let mut server = processing(u64::MAX >> 1);
    server.kill9();
    server.reconfigure(&format!(
        "{ORDERS}\n[worker]\nlease = \"10m\"\neffect_timeout = \"200ms\"\n"
    ));
    server.restart();
    eventually("the stuck event failed", || {
        let stuck = "select count(*) from webhook_attempts where reason = 'effect_timeout'";
        server.count(stuck, &[]) > 0
    });
    eventually("the others are applied", || {
        let others = "select count(*) from webhook_inbox where entity_id <> 'slow' and processing_status = 'processed'";
        server.count(others, &[]) == 10
    });
    server.edit("drop trigger order_slow");
    eventually("the stuck event is applied or overtaken", || {
        matches!(
            server.status("e1").as_str(),
            "processed" | "ignored_out_of_order"
        )
    });
    server.wait_applied();
    let state = "select status from orders where entity_id = 'slow'";
    assert_eq!(server.column(state, &[]), ["v4"]);
}
