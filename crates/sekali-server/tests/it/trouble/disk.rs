//! A disk that is small enough to be filled, for the rows of a database and for nothing else of its server.
//!
//! It is a file system in memory. Where a test may not mount one, the database says that its disk is full in a trigger:
//! what the server itself does then is not seen.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Database, Kind};

/// How large the disk is; a new PostgreSQL database takes 8 MiB.
const SIZE: &str = "40m";

/// The triggers that stand for a full disk.
const FULL_POSTGRES: &str = "
create function no_space() returns trigger language plpgsql as $$
begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end; $$;
create trigger no_space before insert on webhook_inbox for each row execute function no_space();
";
const FULL_MARIADB: &str = "create trigger no_space before insert on webhook_inbox for each row \
    signal sqlstate 'HY000' set mysql_errno = 1114, message_text = 'The table is full'";

/// Payloads without events, as large as those of [`super::site::LARGE`] and behind them, until no more can be stored.
const FILL_POSTGRES: &str = "
do $$
declare
    number bigint := 1000000;
    bytes bytea := (select string_agg(sha256(n::text::bytea), '') from generate_series(1, 200) n);
begin
    loop
        begin
            insert into webhook_payloads values (number, '{}', bytes);
        exception when disk_full then
            exit;
        end;
        number := number + 1;
    end loop;
end; $$";
const FILL_MARIADB: &str = "
delimiter //
begin not atomic
    declare number bigint default 1000000;
    declare exit handler for 1114 begin end;
    loop
        insert into webhook_payloads values (number, '{}', repeat('x', 6400));
        set number = number + 1;
    end loop;
end //
";

/// The disk.
pub(super) struct SmallDisk {
    place: Option<PathBuf>,
}

impl SmallDisk {
    /// Puts an empty database on a disk of its own.
    pub(super) fn under(database: &Database) -> Self {
        let (place, user) = match database.kind() {
            Kind::Postgres => (database.folder().join("rows"), "postgres"),
            // Where the server looks for the database's tables.
            Kind::MariaDb => (database.folder().join("data/receiver"), "mysql"),
        };
        std::fs::create_dir_all(&place).unwrap();
        if !mount(&place, user) {
            println!("no right to mount a disk; a trigger says that it is full");
            return Self { place: None };
        }
        if database.kind() == Kind::Postgres {
            database.move_rows(&place);
        }
        Self { place: Some(place) }
    }

    /// Leaves no room on the disk, nor in what the table of payloads has of it already.
    pub(super) fn fill(&self, database: &Database) {
        let Some(place) = &self.place else {
            database.sql(database.pick(FULL_POSTGRES, FULL_MARIADB));
            return;
        };
        let mut ballast = File::create(place.join("ballast")).unwrap();
        let mut len = 1 << 20;
        while len > 0 {
            if ballast.write_all(&vec![0; len]).is_err() {
                len /= 2;
            }
        }
        database.sql(database.pick(FILL_POSTGRES, FILL_MARIADB));
    }

    /// Makes room again.
    pub(super) fn free(&self, database: &Database) {
        match &self.place {
            Some(place) => std::fs::remove_file(place.join("ballast")).unwrap(),
            None => {
                database.sql(database.pick(
                    "drop trigger no_space on webhook_inbox",
                    "drop trigger no_space",
                ));
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            // The server may still have its files open, and its folder is removed without them.
            let _ = Command::new("umount").arg("-l").arg(place).status();
        }
    }
}

/// Mounts a file system in memory; tells whether that is allowed.
fn mount(place: &Path, user: &str) -> bool {
    let options = format!("size={SIZE},mode=0700,uid={user},gid={user}");
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", &options, "sekali-test"]);
    let done = command.arg(place).output();
    done.is_ok_and(|done| done.status.success())
}
