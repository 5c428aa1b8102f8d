//! A start beside a database that cannot be reached.

use sekali_testkit::proxy::{Fault, Proxy};

use super::site::{PATIENCE, USER};
use crate::support::{Database, Kind, Start, counted, on_both, within};

on_both! {
    a_start_waits_for_its_database_and_says_so;
    a_start_gives_up_in_time_and_says_why;
    a_start_does_not_wait_for_what_waiting_cannot_mend;
}

fn start(url: &str, connect_within: &str) -> Start {
    let table = format!("[store]\nconnect_within = \"{connect_within}\"\n");
    let config = counted::config(url).replace("[store]\n", &table);
    Start::new("").file("sekali.toml", config)
}

fn a_start_waits_for_its_database_and_says_so(kind: Kind) {
    let database = Database::start(kind, &[USER], &[]);
    database.sql(&counted::tables(kind));
    let proxy = Proxy::start(database.port());
    proxy.spoil(Fault::Refuse);
    let url = database.url_at(USER, proxy.port());
    let server = std::thread::scope(|scope| {
        let start = scope.spawn(|| start(&url, "60s").serve());
        within(PATIENCE, "the start has tried more than once", || {
            proxy.came() > 2
        });
        proxy.resume();
        start.join().unwrap()
    });
    let log = server.log();
    let waits: Vec<_> = log
        .lines()
        .filter(|line| line.contains("waiting for the database"))
        .collect();
    assert_eq!(waits.len(), 1, "said once: {log}");
    assert!(
        waits[0].contains(&format!("127.0.0.1:{}", proxy.port())),
        "{waits:?}"
    );
    assert!(!log.contains("fake-password"));
}

fn a_start_gives_up_in_time_and_says_why(kind: Kind) {
    let port = sekali_testkit::free_port();
    let url = match kind {
        Kind::Postgres => format!("postgres://{USER}:fake-password@127.0.0.1:{port}/{USER}"),
        Kind::MariaDb => format!("mysql://{USER}:fake-password@127.0.0.1:{port}/{USER}"),
    };
    let said = start(&url, "1s").refusal();
    assert!(said.contains("could not be reached within 1 s"), "{said}");
    assert!(said.contains(&format!("127.0.0.1:{port}/{USER}")), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
    assert!(!said.contains("fake-password"), "{said}");
}

fn a_start_does_not_wait_for_what_waiting_cannot_mend(kind: Kind) {
    let database = Database::start(kind, &[USER], &[]);
    let said = start(&database.url("nobody"), "24h").refusal();
    assert!(said.contains("could not connect to the database"), "{said}");
    assert!(said.contains("nobody"), "{said}");
}
