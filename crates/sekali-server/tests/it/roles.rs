//! The roles of `docs/guide/database-roles.md` on the real servers: what each may do is enough, and no more.

use sekali_testkit::{mariadb, postgres};

use crate::support::{Connection, ORDERS, Server, Start, eventually, hook, order};

mod place;

use place::Place;

const TABLE: &str = "create table if not exists orders (entity_id varchar(100) primary key, status varchar(20), version bigint, \
     last_event_id varchar(100) not null)";

/// What a receiver must not be able to do.
const REFUSED: &[&str] = &[
    "update webhook_payloads set headers = '{}'",
    "update webhook_payloads set body = body",
    "delete from webhook_payloads",
    "truncate table webhook_payloads",
    "drop table webhook_payloads",
    "update webhook_variants set body = body",
    "delete from webhook_variants",
    "update webhook_deliveries set outcome = 'accepted'",
    "delete from webhook_deliveries",
    "update webhook_attempts set status = 'processed'",
    "delete from webhook_attempts",
    "delete from webhook_inbox",
    "delete from webhook_entities",
    "insert into webhook_schema (version) values (99)",
    "alter table webhook_inbox add column more bigint",
    "drop view sekali_events",
    "create table mine (id bigint)",
];
/// And where an insert asks for no right to change what is there.
const REFUSED_ON_POSTGRES: &[&str] = &[
    "update webhook_inbox set entity_id = 'other'",
    "update webhook_inbox set source_version = 9",
    "update webhook_inbox set payload_hash = fingerprint",
    "update webhook_positions set source_version = 9",
    "update webhook_entities set entity_id = 'other'",
    "alter table webhook_payloads disable trigger all",
];

/// A source that is asked for its challenge before it is used.
const DROPBOX: &str = "[[source]]\nid = \"dropbox\"\npreset = \"dropbox\"\nsecrets = [\"env:ORDERS_SECRET\"]\nkeep_rejected = 1\n";

fn configured(url: &str, retention: &str) -> Start {
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ninternal_listen = \"127.0.0.1:0\"\n\
         [store]\nurl = \"env:DATABASE_URL\"\nsetup = \"table.sql\"\nallow_unsafe_durability = true\n\
         [retention]\n{retention}\n{ORDERS}{DROPBOX}"
    );
    Start::new("")
        .file("table.sql", TABLE)
        .file("sekali.toml", config)
        .env("DATABASE_URL", url)
}

fn migrate(url: &str) {
    let ran = configured(url, "").command(&["migrate"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

fn ran(start: &Start, arguments: &[&str]) -> (Option<i32>, String) {
    let ran = start.command(arguments).output().unwrap();
    let text = [ran.stdout, ran.stderr].concat();
    (
        ran.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn serves_and_cannot_rewrite(place: &Place) {
    let server: Server = configured(&place.receiver, "").serve();
    receives(place, &server);
    commands(place);
    let more = match place.kind {
        "postgres" => REFUSED_ON_POSTGRES,
        _ => &[],
    };
    for sql in REFUSED.iter().chain(more) {
        let said = place.ask(&place.receiver, sql).expect_err(sql);
        let is_refused = ["permission denied", "must be owner", "command denied"];
        assert!(
            is_refused.iter().any(|text| said.contains(text)),
            "{sql}: {said}"
        );
    }
    let (log, refused) = (server.log(), "this role may not run store.setup");
    assert!(log.contains(refused), "{log}");
    let mut others = log.lines().filter(|line| !line.contains(refused));
    assert!(!others.any(|line| line.contains("denied")), "{log}");
}

/// Has a server receive what leaves rows of every kind.
fn receives(place: &Place, server: &Server) {
    let says =
        |id: &str, version, status| hook(id, order("o", version, status)).send(server).says();
    assert_eq!(says("e-1", 1, "new"), "202 accepted");
    assert_eq!(says("e-1", 1, "new"), "200 duplicate");
    for _ in 0..2 {
        let said = says("e-1", 1, "paid");
        assert_eq!(said, "200 rejected_inconsistent_duplicate");
    }
    assert_eq!(says("e-2", 2, "paid"), "202 accepted");
    let forged = hook("e-3", order("o", 3, "forged")).secret("another-secret-of-nobody");
    assert_eq!(forged.send(server).status, 401);
    let forged = hook("e-4", "{}").to("dropbox").send(server);
    assert_eq!(forged.status, 401);
    let asked = Connection::open(server.address()).get("/hooks/dropbox?challenge=c");
    assert_eq!((asked.status, asked.text().as_str()), (200, "c"));
    for table in ["handshakes", "rejected_requests"] {
        let rows = format!("select count(*) from webhook_{table}");
        eventually("the request is noted", || place.owned(&rows) == "1");
    }
    place.wait_applied();
    assert_eq!(place.owned("select status from orders"), "paid");
}

/// Runs the commands of a receiver, and those that are not its.
fn commands(place: &Place) {
    let start = configured(&place.receiver, "");
    for (arguments, says) in [
        (&["events", "list"][..], "e-2"),
        (&["events", "show", "e-1"], "duplicate"),
        (&["events", "replay", "e-2", "--force"], ""),
        (&["events", "accept", "e-1", "--variant", "1"], ""),
        (&["entities", "show", "orders", "", "o"], "e-2"),
        (&["entities", "reset", "orders", "", "o", "--yes"], ""),
    ] {
        let (code, said) = ran(&start, arguments);
        let is_done = code == Some(0) && said.contains(says);
        assert!(is_done, "{arguments:?}: {said}");
    }
    place.wait_applied();
    for arguments in [
        &["prune"][..],
        &["events", "erase", "e-1", "--yes"],
        &["migrate"],
    ] {
        let (code, said) = ran(&configured(&place.receiver, OLD), arguments);
        let is_told = said.contains("denied") && said.contains("lacks a right");
        assert!(code == Some(1) && is_told, "{arguments:?}: {said}");
    }
    assert_eq!(place.owned("select count(*) from webhook_payloads"), "3");
}

/// Has everything that is finished be old at once.
const OLD: &str = "payloads = \"0s\"\naudit = \"0s\"\nkeys = \"400d\"";

fn keeps(place: &Place) {
    let server: Server = configured(&place.receiver, "").serve();
    for id in ["e-1", "e-2"] {
        let said = hook(id, order(id, 1, "new")).send(&server).says();
        assert_eq!(said, "202 accepted");
    }
    place.wait_applied();
    let keeper = configured(&place.keeper, OLD);
    let (code, said) = ran(&keeper, &["events", "erase", "e-1", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    let bodies = "select count(*) from webhook_payloads where length(body) > 0";
    assert_eq!(place.owned(bodies), "1");
    let (code, said) = ran(&keeper, &["prune"]);
    assert_eq!(code, Some(0), "{said}");
    for table in ["webhook_payloads", "webhook_deliveries"] {
        assert_eq!(
            place.owned(&format!("select count(*) from {table}")),
            "0",
            "{table}"
        );
    }
    let (code, said) = ran(&keeper, &["events", "replay", "e-2", "--force"]);
    assert_ne!(code, Some(0), "{said}");
    let again = hook("e-2", order("e-2", 1, "new")).send(&server).says();
    assert_eq!(again, "200 duplicate", "the key stays");
    let seen = place
        .ask(&place.reader, "select count(*) from sekali_events")
        .unwrap();
    assert_eq!(seen.trim(), "2");
    for table in ["webhook_payloads", "webhook_inbox"] {
        let said = place
            .ask(&place.reader, &format!("select * from {table}"))
            .expect_err(table);
        assert!(said.contains("denied"), "{said}");
    }
}

#[test]
fn the_receiver_serves_and_cannot_rewrite_what_it_received_on_postgres() {
    serves_and_cannot_rewrite(&Place::postgres());
}

#[test]
fn the_receiver_serves_and_cannot_rewrite_what_it_received_on_mariadb() {
    serves_and_cannot_rewrite(&Place::mariadb());
}

#[test]
fn the_keeper_removes_and_the_reader_looks_on_postgres() {
    keeps(&Place::postgres());
}

#[test]
fn the_keeper_removes_and_the_reader_looks_on_mariadb() {
    keeps(&Place::mariadb());
}

#[test]
fn a_receiver_on_a_database_without_tables_says_who_makes_them() {
    let name = format!("test{}", fastrand::u32(..));
    let (postgres, mariadb) = (postgres::server().database(), mariadb::server().database());
    postgres::query(
        &postgres,
        &format!("create role {name} login; revoke create on schema public from public"),
    );
    mariadb::query(
        &mariadb,
        &format!("create user {name} identified by 'fake-password'; grant select on * to {name}"),
    );
    for url in [
        postgres.replace("postgres@", &format!("{name}@")),
        mariadb.replace("sekali:", &format!("{name}:")),
    ] {
        let said = configured(&url, "").refusal();
        assert!(
            said.contains("run `sekali migrate` with one that may") && said.contains("denied"),
            "{said}"
        );
    }
}
