//! Cases from the field on databases of the network, mostly over two nodes at once.

use std::time::Duration;

use crate::support::{
    Connection, Database, Kind, Server, Start, at_once, counted, hook, now, on_both, order, within,
};

const USERS: [&str; 2] = ["node_a", "node_b"];
/// How long anything may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two nodes on one database.
struct Pair {
    nodes: [Server; 2],
    database: Database,
}

impl Pair {
    fn start(kind: Kind) -> Self {
        Self::start_after(kind, |_| {})
    }

    /// Starts the nodes after something was done to the database.
    fn start_after(kind: Kind, prepare: impl Fn(&Database)) -> Self {
        let database = Database::start(kind, &USERS, &[]);
        database.sql(&counted::tables(kind));
        prepare(&database);
        let node = |user| {
            let config = counted::config(&database.url(user));
            Start::new("").file("sekali.toml", config).serve()
        };
        Self {
            nodes: USERS.map(node),
            database,
        }
    }

    /// Sends to one of the nodes; never to be answered with anything but success or a time to come again.
    fn send(&self, number: usize, id: &str, body: impl AsRef<[u8]>) -> String {
        hook(id, body).send(&self.nodes[number % 2]).says()
    }

    fn wait_applied(&self) {
        let pending = "select count(*) from webhook_inbox \
            where processing_status in ('received', 'processing', 'failed')";
        self.until("nothing is pending", || self.database.count(pending) == 0);
    }

    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        within(PATIENCE, what, || {
            let is_true = holds();
            if !is_true {
                std::thread::sleep(Duration::from_millis(50));
            }
            is_true
        });
    }

    fn runs(&self, id: &str) -> i64 {
        let sql = format!("select coalesce(max(runs), 0) from runs where event_id = '{id}'");
        self.database.count(&sql)
    }
}

on_both! {
    c12_of_many_twins_on_two_nodes_one_is_applied_and_all_are_welcome;
    c13_a_resend_to_another_node_neither_repeats_nor_ends_what_is_tried_again;
    c18_texts_and_bodies_are_stored_as_they_came;
    c19_a_known_event_is_a_duplicate_long_after_its_window_on_any_node;
    c29_neighbours_and_shared_entities_fail_nobody;
}

fn c12_of_many_twins_on_two_nodes_one_is_applied_and_all_are_welcome(kind: Kind) {
    const TWINS: usize = 50;
    let pair = Pair::start(kind);
    for round in 0..20 {
        let (id, body) = (format!("e-{round}"), order("o", round, "paid"));
        let mut said = at_once(TWINS, |number| pair.send(number, &id, &body));
        said.sort();
        let accepted = said.iter().filter(|said| *said == "202 accepted").count();
        let welcome = said.iter().filter(|said| *said == "200 duplicate").count();
        assert_eq!((accepted, welcome), (1, TWINS - 1), "{said:?}");
    }
    pair.wait_applied();
    for round in 0..20 {
        assert_eq!(pair.runs(&format!("e-{round}")), 1, "round {round}");
    }
}

fn c13_a_resend_to_another_node_neither_repeats_nor_ends_what_is_tried_again(kind: Kind) {
    let pair = Pair::start(kind);
    pair.database.sql("alter table runs rename to hidden");
    let body = order("o", 1, "paid");
    assert_eq!(pair.send(0, "e", &body), "202 accepted");
    for attempt in 1..=3 {
        pair.until("the attempt failed", || {
            pair.database
                .count("select max(attempts) from webhook_inbox")
                >= attempt
        });
        assert_eq!(pair.send(1, "e", &body), "200 duplicate");
    }
    pair.database.sql("alter table hidden rename to runs");
    pair.wait_applied();
    assert_eq!(pair.runs("e"), 1);
    assert_eq!(pair.send(1, "e", &body), "200 duplicate");
}

fn c18_texts_and_bodies_are_stored_as_they_came(kind: Kind) {
    let pair = Pair::start(kind);
    // Ids differ in case, in an accent, in blanks at their end, and in characters of four bytes.
    let ids = [
        "evt_AbC",
        "evt_aBc",
        "evt_abc",
        "evt_\u{e1}bc",
        "evt_\u{1f600}",
        "evt_\u{1f601}",
    ];
    for (number, id) in ids.iter().enumerate() {
        let body = order(id, 1, "grin \u{1f600} and on");
        assert_eq!(pair.send(number, id, &body), "202 accepted", "{id}");
    }
    let mut bodies = vec![order("small", 1, "\u{1f600}")];
    for len in [70 * 1024, 1024 * 1024] {
        bodies.push(order("large", 1, &"\u{1f600}\u{e9}'\\\"x".repeat(len / 12)));
    }
    for (number, body) in bodies.iter().enumerate() {
        let id = format!("body-{number}");
        assert_eq!(
            pair.send(number, &id, body),
            "202 accepted",
            "{}",
            body.len()
        );
        // Their bytes are compared by their hash.
        assert_eq!(pair.send(number + 1, &id, body), "200 duplicate");
        let stored = format!(
            "select length(p.body) from webhook_payloads p join webhook_inbox i on i.seq = p.seq \
             where i.event_id = '{id}'"
        );
        assert_eq!(
            pair.database.count(&stored),
            i64::try_from(body.len()).unwrap()
        );
        let digest = match kind {
            Kind::Postgres => "encode(sha256(p.body), 'hex') = encode(i.payload_hash, 'hex')",
            Kind::MariaDb => "sha2(p.body, 256) = lower(hex(i.payload_hash))",
        };
        let same = format!(
            "select count(*) from webhook_payloads p join webhook_inbox i on i.seq = p.seq \
             where i.event_id = '{id}' and {digest}"
        );
        assert_eq!(
            pair.database.count(&same),
            1,
            "the stored bytes are those that came"
        );
    }
    pair.wait_applied();
    let count = i64::try_from(ids.len() + bodies.len()).unwrap();
    let processed = "select count(*) from webhook_inbox where processing_status in ('processed')";
    let others = "select event_id, processing_status, status_reason, error_message from webhook_inbox \
        where processing_status <> 'processed'";
    assert_eq!(pair.database.lines(others), [""; 0]);
    assert_eq!(pair.database.count(processed), count);
}

fn c19_a_known_event_is_a_duplicate_long_after_its_window_on_any_node(kind: Kind) {
    let pair = Pair::start(kind);
    let body = order("o", 1, "paid");
    assert_eq!(pair.send(0, "e", &body), "202 accepted");
    for (number, timestamp) in [now() - 890, now() - 910, now() - 3600, 1]
        .iter()
        .enumerate()
    {
        let again = hook("e", &body).timestamp(timestamp);
        let said = again.send(&pair.nodes[(number + 1) % 2]).says();
        assert_eq!(said, "200 duplicate", "{timestamp}");
    }
    pair.wait_applied();
    assert_eq!(pair.runs("e"), 1);
    let late = hook("new", &body)
        .timestamp(now() - 910)
        .send(&pair.nodes[1]);
    assert_eq!(late.says(), "400 rejected_timestamp timestamp_expired");
}

fn c29_neighbours_and_shared_entities_fail_nobody(kind: Kind) {
    const SENDERS: usize = 40;
    const EACH: usize = 25;
    let pair = Pair::start_after(kind, |database| {
        // Whatever a role has for its sessions.
        for user in USERS {
            database.sql(&match kind {
                Kind::Postgres => {
                    format!("alter role {user} set default_transaction_isolation = 'serializable'")
                }
                Kind::MariaDb => "set global transaction isolation level serializable".to_owned(),
            });
        }
    });
    let refused = at_once(SENDERS, |sender| {
        let mut connection = Connection::open(pair.nodes[sender % 2].address());
        let mut refused = Vec::new();
        for number in 0..EACH {
            let place = number * SENDERS + sender;
            // Neighbours in the index come from different senders at once.
            let id = format!("e-{place:06}");
            let body = order(
                &format!("o-{}", place % 10),
                i64::try_from(place).unwrap(),
                "paid",
            );
            let said = hook(&id, body).send_on(&mut connection).unwrap().says();
            refused.extend((said != "202 accepted").then_some(said));
        }
        refused
    });
    assert_eq!(refused.concat(), [""; 0]);
    pair.wait_applied();
    let runs = "select count(*) from runs where runs = 1";
    assert_eq!(
        pair.database.count(runs),
        i64::try_from(SENDERS * EACH).unwrap()
    );
    // A lease that ran out on a slow machine is nobody's fault.
    let failed = "select message from webhook_attempts where status in ('failed', 'dead_letter') \
        and reason <> 'lease_expired'";
    assert_eq!(
        pair.database.lines(failed),
        [""; 0],
        "nobody failed because of another"
    );
    let newest = "select min(version) from orders";
    let least = i64::try_from(SENDERS * EACH - 10).unwrap();
    assert_eq!(pair.database.count(newest), least);
}
