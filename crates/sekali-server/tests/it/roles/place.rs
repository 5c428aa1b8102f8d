//! A database with its owner and the roles of the page.

use sekali_testkit::{mariadb, postgres};

use super::migrate;
use crate::support::PATIENCE;

const POSTGRES: &str = include_str!("../../../../../docs/guide/grants-postgres.sql");
const MYSQL: &str = include_str!("../../../../../docs/guide/grants-mysql.sql");

/// A database whose tables were made by its owner, and the URLs of its roles.
pub(super) struct Place {
    pub(super) kind: &'static str,
    pub(super) owner: String,
    pub(super) receiver: String,
    pub(super) keeper: String,
    pub(super) reader: String,
}

impl Place {
    pub(super) fn postgres() -> Self {
        let owner = postgres::server().database();
        migrate(&owner);
        // Roles are the server's, so that those of one test must not be those of another.
        let name = format!("test{}", fastrand::u32(..));
        let grants = POSTGRES.replace("sekali_", &format!("{name}_"));
        // The views have the prefix, too.
        let grants = grants
            .replace(&format!("{name}_events"), "sekali_events")
            .replace(&format!("{name}_deliveries"), "sekali_deliveries");
        // Again, as after a later migration.
        postgres::query(&owner, &grants);
        postgres::query(&owner, &grants);
        let own = format!("grant select, insert, update, delete on orders to {name}_receiver");
        postgres::query(&owner, &own);
        let url = |role: &str| owner.replace("postgres@", &format!("{name}_{role}@"));
        Self {
            kind: "postgres",
            receiver: url("receiver"),
            keeper: url("keeper"),
            reader: url("reader"),
            owner,
        }
    }

    pub(super) fn mariadb() -> Self {
        let owner = mariadb::server().database();
        migrate(&owner);
        let name = format!("test{}", fastrand::u32(..));
        let grants = MYSQL
            .replace("sekali_", &format!("{name}_"))
            .replace(&format!("on {name}_events"), "on sekali_events")
            .replace(&format!("on {name}_deliveries"), "on sekali_deliveries");
        mariadb::query(&owner, &grants);
        mariadb::query(&owner, &grants);
        for role in ["receiver", "keeper", "reader"] {
            let sql = format!(
                "alter user {name}_{role}@'%' identified by 'fake-password' account unlock"
            );
            mariadb::query(&owner, &sql);
        }
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

    pub(super) fn ask(&self, url: &str, sql: &str) -> Result<String, String> {
        match self.kind {
            "postgres" => postgres::try_query(url, sql),
            _ => mariadb::try_query(url, sql),
        }
    }

    pub(super) fn owned(&self, sql: &str) -> String {
        self.ask(&self.owner, sql).unwrap().trim().to_owned()
    }

    pub(super) fn wait_applied(&self) {
        let pending = "select count(*) from webhook_inbox \
            where processing_status in ('received', 'processing', 'failed')";
        let end = std::time::Instant::now() + PATIENCE;
        while self.owned(pending) != "0" {
            assert!(std::time::Instant::now() < end, "events stay pending");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
