//! The roles of `docs/guide/database-roles.md` on the real servers: what each may do is enough, and no more.

use sekali_testkit::{mariadb, postgres};

use crate::support::{ORDERS, PATIENCE, Server, Start, hook, order};

const POSTGRES: &str = include_str!("../../../../docs/guide/grants-postgres.sql");
const MYSQL: &str = include_str!("../../../../docs/guide/grants-mysql.sql");

const TABLE: &str = "create table orders (entity_id varchar(100) primary key, status varchar(20), version bigint, \
     last_event_id varchar(100) not null)";

/// What a receiver must not be able to do, and what it would be.
const REFUSED: [(&str, &str); 8] = [
    (
        "change a body",
        "update webhook_payloads set headers = '{}'",
    ),
    ("remove a body", "delete from webhook_payloads"),
    (
        "change a delivery",
        "update webhook_deliveries set outcome = 'accepted'",
    ),
    ("remove a delivery", "delete from webhook_deliveries"),
    (
        "change an attempt",
        "update webhook_attempts set status = 'processed'",
    ),
    ("remove an event", "delete from webhook_inbox"),
    (
        "change a table",
        "alter table webhook_inbox add column more bigint",
    ),
    ("drop a table", "drop table webhook_attempts"),
];

/// A database whose tables were made by its owner, and the URLs of its roles.
struct Place {
    kind: &'static str,
    owner: String,
    receiver: String,
    keeper: String,
    reader: String,
}

impl Place {
    fn postgres() -> Self {
        let owner = postgres::server().database();
        migrate(&owner);
        postgres::query(&owner, TABLE);
        // Roles are the server's, so that those of one test must not be those of another.
        let name = format!("test{}", fastrand::u32(..));
        let grants = POSTGRES.replace("sekali_", &format!("{name}_"));
        // The views have the prefix, too.
        let grants = grants
            .replace(&format!("{name}_events"), "sekali_events")
            .replace(&format!("{name}_deliveries"), "sekali_deliveries");
        postgres::query(&owner, &grants);
        let own = format!("grant select, insert, update, delete on orders to {name}_receiver");
        postgres::query(&owner, &own);
        postgres::query(&owner, &format!("alter role {name}_reader login"));
        let url = |role: &str| owner.replace("postgres@", &format!("{name}_{role}@"));
        Self {
            kind: "postgres",
            receiver: url("receiver"),
            keeper: url("keeper"),
            reader: url("reader"),
            owner,
        }
    }

    fn mariadb() -> Self {
        let owner = mariadb::server().database();
        migrate(&owner);
        mariadb::query(&owner, TABLE);
        let name = format!("test{}", fastrand::u32(..));
        let grants = MYSQL
            .replace("sekali_", &format!("{name}_"))
            .replace(&format!("on {name}_events"), "on sekali_events")
            .replace(&format!("on {name}_deliveries"), "on sekali_deliveries")
            .replace("change-me", "fake-password");
        mariadb::query(&owner, &grants);
        let own = format!("grant select, insert, update, delete on orders to {name}_receiver@'%'");
        mariadb::query(&owner, &own);
        let url = |role: &str| owner.replace("sekali:", &format!("{name}_{role}:"));
        Self {
            kind: "mariadb",
            receiver: url("receiver"),
            keeper: url("keeper"),
            reader: url("reader"),
            owner,
        }
    }

    fn ask(&self, url: &str, sql: &str) -> Result<String, String> {
        match self.kind {
            "postgres" => postgres::try_query(url, sql),
            _ => mariadb::try_query(url, sql),
        }
    }

    fn owned(&self, sql: &str) -> String {
        self.ask(&self.owner, sql).unwrap().trim().to_owned()
    }

    fn wait_applied(&self) {
        let pending = "select count(*) from webhook_inbox \
            where processing_status in ('received', 'processing', 'failed')";
        let end = std::time::Instant::now() + PATIENCE;
        while self.owned(pending) != "0" {
            assert!(std::time::Instant::now() < end, "events stay pending");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

fn configured(url: &str, retention: &str) -> Start {
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ninternal_listen = \"127.0.0.1:0\"\n\
         [store]\nurl = \"env:DATABASE_URL\"\nallow_unsafe_durability = true\n\
         [retention]\n{retention}\n{ORDERS}"
    );
    Start::new("")
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
    let send =
        |id: &str, version, status| hook(id, order("o", version, status)).send(&server).says();
    assert_eq!(send("e-1", 1, "new"), "202 accepted");
    assert_eq!(send("e-1", 1, "new"), "200 duplicate");
    assert_eq!(
        send("e-1", 1, "paid"),
        "200 rejected_inconsistent_duplicate"
    );
    assert_eq!(
        send("e-1", 1, "paid"),
        "200 rejected_inconsistent_duplicate"
    );
    assert_eq!(send("e-2", 2, "paid"), "202 accepted");
    let forged = hook("e-3", order("o", 3, "forged")).secret("another-secret-of-nobody");
    assert_eq!(
        forged.send(&server).says(),
        "401 rejected_signature signature_wrong"
    );
    place.wait_applied();
    assert_eq!(place.owned("select status from orders"), "paid");
    let start = configured(&place.receiver, "");
    for (arguments, says) in [
        (&["events", "list"][..], "e-2"),
        (&["events", "show", "e-1"], "duplicate"),
        (&["events", "replay", "e-2", "--force"], ""),
        (&["events", "accept", "e-1", "--variant", "1"], ""),
        (&["entities", "show", "orders", "", "o"], "e-2"),
    ] {
        let (code, said) = ran(&start, arguments);
        assert!(
            code == Some(0) && said.contains(says),
            "{arguments:?}: {said}"
        );
    }
    place.wait_applied();
    for (what, sql) in REFUSED {
        let said = place.ask(&place.receiver, sql).expect_err(what);
        let is_refused = ["permission denied", "must be owner", "denied"];
        assert!(
            is_refused.iter().any(|text| said.contains(text)),
            "{what}: {said}"
        );
    }
    for arguments in [
        &["prune"][..],
        &["events", "erase", "e-1", "--yes"],
        &["migrate"],
    ] {
        let (code, said) = ran(&configured(&place.receiver, OLD), arguments);
        match arguments[0] {
            "migrate" => assert_eq!(code, Some(0), "nothing is to be done: {said}"),
            _ => assert!(
                code == Some(1) && said.contains("denied"),
                "{arguments:?}: {said}"
            ),
        }
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
