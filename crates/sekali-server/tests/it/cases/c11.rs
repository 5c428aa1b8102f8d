//! Many events at once: how fast they are answered, and that each has its effect once.

use std::time::{Duration, Instant};

use crate::support::{Connection, ORDERS, Server, at_once, hook, order, orders_with};

/// Keeps the database busy for a long time with every order of this status.
const SLOW: &str = "create trigger slow before insert on orders when new.status = 'slow' begin \
    select count(*) from (with recursive n(x) as (select 1 union all select x + 1 from n limit 50000000) select x from n); \
    end";

const CONNECTIONS: usize = 50;
const EACH: usize = 40;

/// Sends events on all connections for some seconds, and returns how long each answer took.
fn burst(server: &Server) -> Vec<Duration> {
    let times = at_once(CONNECTIONS, |number| {
        let mut connection = Connection::open(server.address());
        let mut times = Vec::new();
        for round in 0..EACH {
            let id = format!("evt-{number}-{round}");
            let hook = hook(&id, order(&id, 1, "paid"));
            let started = Instant::now();
            let reply = hook.send_on(&mut connection).expect("an answer");
            times.push(started.elapsed());
            assert_eq!(reply.says(), "202 accepted");
        }
        times
    });
    let mut times: Vec<_> = times.into_iter().flatten().collect();
    times.sort();
    times
}

#[test]
fn c11_answers_do_not_wait_for_slow_effects() {
    let source = orders_with("retry = { base = \"100ms\", cap = \"200ms\", max_attempts = 3 }");
    let server = Server::start(&format!("[worker]\neffect_timeout = \"300ms\"\n{source}"));
    server.edit(SLOW);
    for number in 0..5 {
        let id = format!("slow-{number}");
        let reply = hook(&id, order(&id, 1, "slow")).send(&server);
        assert_eq!(reply.says(), "202 accepted");
    }
    let times = burst(&server);
    let p99 = times[times.len() * 99 / 100];
    assert!(p99 < Duration::from_secs(1), "p99 is {p99:?}");
    server.wait_applied();
    let once = "select count(*) from (select event_id from order_writes where event_id glob 'evt-*' \
        group by event_id having count(*) = 1)";
    assert_eq!(server.count(once, &[]), (CONNECTIONS * EACH) as i64);
    let slow = "select count(*) from webhook_inbox where event_id glob 'slow-*' and processing_status = 'dead_letter'";
    assert_eq!(server.count(slow, &[]), 5, "the slow ones were really slow");
}

#[test]
fn c12_of_many_twins_one_is_applied_and_all_are_welcome() {
    let server = Server::start(ORDERS);
    for round in 0..20 {
        let id = format!("twin-{round}");
        let hook = hook(&id, order(&id, 1, "paid"));
        let mut says = at_once(50, |_| hook.send(&server).says());
        says.sort();
        assert_eq!(says[49], "202 accepted");
        assert!(
            says[..49].iter().all(|says| says == "200 duplicate"),
            "{says:?}"
        );
    }
    server.wait_applied();
    let writes = "select count(*) || ' ' || count(distinct event_id) from order_writes";
    assert_eq!(server.column(writes, &[]), ["20 20"]);
    assert_eq!(
        server.count("select count(*) from webhook_deliveries", &[]),
        1000
    );
}
