//! A second server that follows the first, and takes its place.

use std::process::Command;
use std::time::{Duration, Instant};

use super::{Postgres, USER, program};
use crate::process::{as_user, folder};

/// How long a standby may take to follow.
const PATIENCE: Duration = Duration::from_secs(60);

impl Postgres {
    /// Starts a standby that streams from this server, and has every commit here wait for it.
    ///
    /// # Panics
    ///
    /// A standby that cannot be started fails the test.
    pub fn standby(&self, settings: &[&str]) -> Self {
        let folder = folder(USER);
        let mut copy = as_user(USER, &program("pg_basebackup"));
        copy.args(["-h", "127.0.0.1", "-U", USER, "-R", "-X", "stream"])
            .args(["--checkpoint=fast", "-p", &self.port.to_string(), "-D"])
            .arg(folder.path().join("data"));
        crate::run(&mut copy);
        let standby = Self::resume(folder, crate::free_port(), settings);
        self.sql(
            "postgres",
            "alter system set synchronous_standby_names = '*'",
        );
        self.sql("postgres", "select pg_reload_conf()");
        let follows = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        let end = Instant::now() + PATIENCE;
        while self.sql("postgres", follows).trim() != "1" {
            assert!(Instant::now() < end, "the standby never followed");
            std::thread::sleep(Duration::from_millis(50));
        }
        standby
    }

    /// Makes a standby the server that is written to.
    ///
    /// # Panics
    ///
    /// A standby that cannot be promoted fails the test.
    pub fn promote(&self) {
        let mut promote: Command = as_user(USER, &program("pg_ctl"));
        promote.args(["promote", "-w", "-D"]);
        crate::run(promote.arg(self.process.folder().join("data")));
    }
}
