//! A networked database in trouble, and the way to it: a sender always has an answer in time, and it is 503 with a time to
//! come again unless the event is stored. Once the trouble is over the same process goes on, nothing that was acknowledged
//! is lost, and nothing is applied twice.

use std::time::Duration;

use sekali_testkit::proxy::Fault;

use super::support::{Kind, on_both};

mod crowd;
mod disk;
mod site;
mod start;

use crowd::Crowd;
use disk::SmallDisk;
use site::Site;

/// How long a trouble lasts beyond the answers that it spoils.
const LASTS: Duration = Duration::from_millis(500);

on_both! {
    a_database_that_stops_is_waited_for;
    a_database_without_a_free_connection_is_waited_for;
    a_database_that_only_reads_is_waited_for;
    a_full_disk_is_waited_for;
    a_way_that_is_slow_or_silent_is_not_waited_for_longer_than_promised;
    connections_that_are_cut_or_forgotten_are_made_anew;
    a_commit_whose_answer_is_lost_is_neither_acknowledged_nor_done_twice;
}

fn a_database_that_stops_is_waited_for(kind: Kind) {
    let mut site = Site::start(kind, &[]);
    for _ in 0..2 {
        site.take_some();
        site.database.crash();
        site.refuse_all("the database is down");
        std::thread::sleep(LASTS);
        site.database.resume();
        site.recover();
    }
    // One that is back at once: whoever was in the middle of something has to notice all the same.
    site.take_some();
    site.database.crash();
    site.database.resume();
    site.recover();
    site.check();
}

fn a_database_without_a_free_connection_is_waited_for(kind: Kind) {
    let settings = match kind {
        Kind::Postgres => &["max_connections=16", "superuser_reserved_connections=3"][..],
        Kind::MariaDb => &["--max-connections=16", "--connect-timeout=120"],
    };
    let site = Site::start(kind, settings);
    site.take_some();
    let crowd = Crowd::take_all(&site);
    site.refuse_all("others have all connections");
    drop(crowd);
    site.recover();
    site.check();
}

fn a_database_that_only_reads_is_waited_for(kind: Kind) {
    let site = Site::start(kind, &[]);
    site.take_some();
    site.set_read_only(true);
    site.refuse_all("the database only reads");
    site.set_read_only(false);
    site.recover();
    site.check();
}

fn a_full_disk_is_waited_for(kind: Kind) {
    let site = Site::start_on_small_disk(kind);
    site.take_some();
    let disk = site.disk.as_ref().unwrap();
    disk.fill(&site.database);
    site.refuse_all("the disk is full");
    disk.free(&site.database);
    site.recover();
    site.check();
}

fn a_way_that_is_slow_or_silent_is_not_waited_for_longer_than_promised(kind: Kind) {
    let site = Site::start(kind, &[]);
    site.take_some();
    // As far away as another continent: everything takes longer, and nothing else happens.
    site.proxy.spoil(Fault::Delay(Duration::from_millis(40)));
    site.take_some();
    site.proxy.spoil(Fault::Delay(Duration::from_secs(2)));
    site.refuse_all("the way is slow");
    site.proxy.resume();
    site.recover();
    site.proxy.spoil(Fault::Stall);
    site.refuse_all("the way is silent");
    site.proxy.resume();
    site.recover();
    site.check();
}

fn connections_that_are_cut_or_forgotten_are_made_anew(kind: Kind) {
    let site = Site::start(kind, &[]);
    site.take_some();
    site.send_while(|site| {
        for _ in 0..10 {
            site.proxy.cut();
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    site.recover();
    site.proxy.spoil(Fault::Refuse);
    site.proxy.cut();
    site.refuse_all("connections are closed at once");
    site.proxy.resume();
    site.recover();
    site.proxy.spoil(Fault::Halve);
    site.refuse_all("answers break off in the middle");
    site.proxy.resume();
    site.recover();
    // The connections of that time stay open, also those in the middle of a transaction, and nothing comes over them.
    site.send_while(|site| {
        std::thread::sleep(LASTS);
        site.proxy.spoil(Fault::BlackHole);
    });
    site.refuse_all("the way forgets connections");
    site.proxy.resume();
    site.recover();
    site.check();
}

fn a_commit_whose_answer_is_lost_is_neither_acknowledged_nor_done_twice(kind: Kind) {
    let site = Site::start(kind, &[]);
    site.take_some();
    let lost = site.proxy.lost();
    site.proxy.spoil(Fault::LoseAnswer(b"COMMIT"));
    let ids = site.refuse_all("the answer to every commit is lost");
    assert!(site.proxy.lost() > lost, "no commit was sent");
    let stored = ids.iter().filter(|id| site.is_stored(id)).count();
    assert!(stored > 0, "no commit reached the database");
    // Workers lose answers, too; what they applied stays applied.
    let lost = site.proxy.lost();
    site.within("workers lose answers", || site.proxy.lost() > lost + 3);
    site.proxy.resume();
    site.recover();
    site.check();
}
