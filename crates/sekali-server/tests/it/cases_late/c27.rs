//! When failed attempts are made again; the delays themselves are tested where they are computed.

use crate::support::{Connection, Server, at_once, eventually, hook, order, orders_with};

#[test]
fn c27_five_hundred_failures_of_one_second_are_spread_over_the_window() {
    let server = Server::start(&orders_with("retry = { base = \"1h\", cap = \"1h\" }"));
    server.edit("alter table orders rename to hidden");
    at_once(10, |lane| {
        let mut connection = Connection::open(server.address());
        for number in 0..50 {
            let id = format!("e{lane}-{number}");
            let reply = hook(&id, order(&id, 1, "paid")).send_on(&mut connection);
            assert_eq!(reply.expect("an answer").says(), "202 accepted");
        }
    });
    let failed = "select count(*) from webhook_inbox where processing_status = 'failed'";
    eventually("all have failed once", || server.count(failed, &[]) == 500);
    let delays = server.column(
        "select cast(i.next_attempt_at - a.started_at as text) from webhook_inbox i \
         join webhook_attempts a on a.inbox_seq = i.seq where a.status = 'failed'",
        &[],
    );
    let delays: Vec<i64> = delays.iter().map(|delay| delay.parse().unwrap()).collect();
    assert_eq!(delays.len(), 500, "each failed once");
    let mut buckets = [0; 10];
    for delay in delays {
        // A moment passes between the choice of the delay and the row.
        assert!((0..=3_600_000).contains(&delay), "{delay}");
        buckets[(delay * 10 / 3_600_001) as usize] += 1;
    }
    assert!(buckets.iter().all(|count| *count >= 20), "{buckets:?}");
    assert_eq!(
        server.metric("sekali_worker_retries_total{source=\"orders\"} "),
        500.0
    );
}
