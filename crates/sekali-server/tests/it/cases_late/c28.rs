//! Many writers on one SQLite file.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Connection, ORDERS, Server, hook, order};

const CONNECTIONS: usize = 50;
const TIME: Duration = Duration::from_secs(4);

#[test]
fn c28_fifty_connections_beside_retention_and_lists_lose_nothing() {
    let tables =
        "[worker]\ncount = 4\n[retention]\npayloads = \"1s\"\naudit = \"1s\"\nkeys = \"1h\"\n";
    let server = Server::start(&format!("{ORDERS}\n{tables}"));
    let is_over = AtomicBool::new(false);
    let accepted: Vec<String> = std::thread::scope(|scope| {
        let is_over = &is_over;
        let beside = [
            &["prune", "--json"][..],
            &["events", "list", "--json"],
            &["entities", "show", "orders", "", "o-0-0"],
        ];
        for arguments in beside {
            let server = &server;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    run_beside(server, arguments);
                }
            });
        }
        let senders: Vec<_> = (0..CONNECTIONS)
            .map(|lane| {
                let address = server.address();
                scope.spawn(move || send(address, lane))
            })
            .collect();
        let accepted = senders
            .into_iter()
            .flat_map(|sender| sender.join().unwrap());
        let accepted = accepted.collect();
        is_over.store(true, Ordering::SeqCst);
        accepted
    });
    server.wait_applied();
    println!("{} events over {CONNECTIONS} connections", accepted.len());
    assert_applied_once(&server, &accepted);
    let kept = server.count("select count(*) from webhook_payloads", &[]);
    assert!(kept < accepted.len() as i64, "retention removed nothing");
    let log = server.log();
    assert!(!log.contains("locked") && !log.contains("busy"), "{log}");
    let mode: String = server
        .db()
        .query_row("pragma journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

/// Runs a command; only that the entity is not there yet is no failure.
fn run_beside(server: &Server, arguments: &[&str]) {
    let output = server.run(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    let is_fine = output.status.success() || output.status.code() == Some(3);
    assert!(is_fine, "{arguments:?}: {said}");
}

fn send(address: &str, lane: usize) -> Vec<String> {
    let (mut connection, mut accepted) = (Connection::open(address), Vec::new());
    let end = Instant::now() + TIME;
    while Instant::now() < end {
        let id = format!("o-{lane}-{}", accepted.len());
        let reply = hook(&id, order(&id, 1, "paid")).send_on(&mut connection);
        assert_eq!(reply.expect("an answer").says(), "202 accepted", "{id}");
        accepted.push(id);
    }
    accepted
}

fn assert_applied_once(server: &Server, accepted: &[String]) {
    let mut written = server.column("select event_id from order_writes order by 1", &[]);
    let len = written.len();
    written.dedup();
    assert_eq!(written.len(), len, "an effect ran twice");
    let mut expected = accepted.to_vec();
    expected.sort_unstable();
    assert!(
        written == expected,
        "{len} of {} were applied",
        expected.len()
    );
}
