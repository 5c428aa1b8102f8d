//! The database itself has a successor: a PostgreSQL with a standby that its commits wait for, and a Galera cluster.
//!
//! These take minutes and further packages; `./soak` runs them.

use sekali_testkit::proxy::Proxy;

use super::fleet::{Fleet, NODES};
use super::provider::Provider;
use super::{check, rounds};
use crate::support::{Database, Kind, Start, counted};

#[test]
#[ignore = "a long round, which ./soak runs"]
fn a_standby_takes_the_place_of_a_killed_primary_and_nothing_is_lost() {
    let database = Database::start(Kind::Postgres, &Fleet::users(), &[]);
    let proxy = Proxy::start(database.port());
    let mut fleet = Fleet::on(database, |database, node| {
        database.url_at(Fleet::user(node), proxy.port())
    });
    for round in 0..rounds() {
        let standby = fleet.database.standby();
        let (provider, addresses) = (Provider::new(round), fleet.addresses());
        std::thread::scope(|scope| {
            let load = scope.spawn(|| provider.send_all(&addresses));
            provider.wait_for_progress();
            fleet.database.fail_over(standby);
            proxy.aim(fleet.database.port());
            proxy.cut();
            load.join().unwrap();
        });
        fleet.wait_applied();
        check::holds(&fleet, &provider);
        println!("fail-over, round {round}: {}", provider.summary());
    }
    fleet.stop();
}

#[test]
#[ignore = "a long round, which ./soak runs"]
fn a_killed_member_of_a_cluster_takes_nothing_with_it() {
    let database = Database::start_cluster(NODES, &Fleet::users());
    // Once, since what orders migrations is a lock of the member that a node comes to.
    let first = database.url_of(Fleet::user(0), 0);
    let start = Start::new("").file("sekali.toml", counted::config(&first));
    let migrated = start.command(&["migrate"]).output().unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let mut fleet = Fleet::on(database, |database, node| {
        database.url_of(Fleet::user(node), node)
    });
    for round in 0..rounds() {
        let (provider, addresses) = (Provider::new(round), fleet.addresses());
        let member = round % NODES;
        std::thread::scope(|scope| {
            let load = scope.spawn(|| provider.send_all(&addresses));
            provider.wait_for_progress();
            fleet.database.cluster().kill(member);
            load.join().unwrap();
        });
        fleet.database.cluster().resume(member);
        fleet.within("its node is ready again", || fleet.is_ready(member));
        fleet.wait_applied();
        check::holds(&fleet, &provider);
        println!("Galera, round {round}: {}", provider.summary());
    }
    fleet.stop();
}
