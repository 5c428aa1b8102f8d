//! Three nodes on one database while things fail, one with its clock ten minutes ahead and one with it ten minutes behind:
//! nothing that was answered is lost, and nothing happens twice.
//!
//! Each round is under the load of a provider that sends twins to two nodes at once, repeats itself, and comes again where
//! it had no good answer. Every event writes a row of its own whose counter a second run would raise, whatever the order
//! of its entity says about it. What fails is a value of [`Fault`]; a test runs rounds of one of them.

use std::time::{Duration, Instant};

use sekali_testkit::redis::Redis;

use super::support::counted::LEASE;
use super::support::{Database, Hold, Kind, on_both};

mod check;
mod failover;
mod fleet;
mod provider;

use fleet::Fleet;
use provider::Provider;

/// How many rounds of each fault there are, unless the variable `SEKALI_FAULT_ROUNDS` says otherwise.
const ROUNDS: usize = 3;
/// How long another node may take beyond the lease to apply what a stopped one held.
const TAKES_OVER_WITHIN: Duration = Duration::from_secs(5);
/// How long a database stays away.
const AWAY: Duration = Duration::from_millis(700);

/// What fails in a round.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A node is killed, in the middle of an apply transaction or at any moment, and started again.
    Kill,
    /// A node is stopped in the middle of an apply transaction, and goes on after another one applied its event.
    Stop,
    /// A node is stopped in the middle of an apply transaction, and goes on while another one is at its event.
    StopShortly,
    /// The database is taken down, and started again.
    Database,
    /// Redis is taken down, and started again without anything it knew.
    Redis,
}

on_both! {
    kills_of_nodes_lose_nothing_and_apply_nothing_twice;
    a_stopped_node_is_overtaken_and_commits_nothing_when_it_wakes;
    a_node_that_wakes_beside_the_one_that_took_over_commits_nothing;
    restarts_of_the_database_lose_nothing_and_apply_nothing_twice;
    restarts_of_redis_change_nothing;
    an_event_that_is_held_up_holds_up_no_other;
}

fn kills_of_nodes_lose_nothing_and_apply_nothing_twice(kind: Kind) {
    rounds_of(Fault::Kill, kind);
}

fn a_stopped_node_is_overtaken_and_commits_nothing_when_it_wakes(kind: Kind) {
    rounds_of(Fault::Stop, kind);
}

fn a_node_that_wakes_beside_the_one_that_took_over_commits_nothing(kind: Kind) {
    rounds_of(Fault::StopShortly, kind);
}

fn restarts_of_redis_change_nothing(kind: Kind) {
    rounds_of(Fault::Redis, kind);
}

fn restarts_of_the_database_lose_nothing_and_apply_nothing_twice(kind: Kind) {
    rounds_of(Fault::Database, kind);
}

/// The tables are as good as empty, and a server would rather read them from one end to the other than by their keys.
fn an_event_that_is_held_up_holds_up_no_other(kind: Kind) {
    let fleet = Fleet::start(kind);
    let provider = Provider::new(0);
    let hold = fleet.database.hold();
    let (held, _) = apply_held(&fleet, &provider);
    let others = provider.send_a_few(&fleet.addresses());
    for id in others {
        fleet.within("another event is applied", || {
            fleet.status(&id) == "processed"
        });
    }
    let given_up = "select count(*) from webhook_attempts where reason = 'effect_timeout'";
    assert_eq!(fleet.database.count(given_up), 0, "{held} was waited for");
    drop(hold);
    fleet.wait_applied();
    fleet.stop();
}

fn rounds_of(fault: Fault, kind: Kind) {
    let mut fleet = Fleet::start(kind);
    for round in 0..rounds() {
        let provider = Provider::new(round);
        let addresses = fleet.addresses();
        // Before the load, or others would have to wait for what the stopped node holds beside the event.
        let stopped = match fault {
            Fault::StopShortly => Some(Stopped::in_transaction(&mut fleet, &provider)),
            _ => None,
        };
        std::thread::scope(|scope| {
            let load = scope.spawn(|| provider.send_all(&addresses));
            if stopped.is_none() {
                provider.wait_for_progress();
            }
            match (fault, stopped) {
                (Fault::Kill, _) if round % 2 == 0 => kill_in_transaction(&mut fleet, &provider),
                (Fault::Kill, _) => kill(&mut fleet, round % 3),
                (Fault::Stop, _) => stop(&mut fleet, &provider),
                (Fault::StopShortly, Some(stopped)) => wake_shortly(&mut fleet, stopped),
                (Fault::StopShortly, None) => unreachable!("a node was stopped"),
                (Fault::Database, _) => restart_database(&mut fleet),
                (Fault::Redis, _) => restart_redis(&mut fleet),
            }
            load.join().unwrap();
        });
        fleet.wait_applied();
        check::holds(&fleet, &provider);
        let (sent, overtaken) = (provider.summary(), fleet.taken_over());
        println!("{kind:?}, {fault:?}, round {round}: {sent}; {overtaken} taken over so far");
    }
    fleet.stop();
}

/// A node that was stopped in the middle of applying an event.
struct Stopped {
    node: usize,
    event: String,
    at: Instant,
    hold: Hold,
}

impl Stopped {
    fn in_transaction(fleet: &mut Fleet, provider: &Provider) -> Self {
        let hold = fleet.database.hold();
        let (event, node) = apply_held(fleet, provider);
        fleet.node(node).signal("STOP");
        Self {
            node,
            event,
            at: Instant::now(),
            hold,
        }
    }
}

fn kill(fleet: &mut Fleet, node: usize) {
    fleet.node(node).kill9();
    fleet.restart(node);
}

/// Kills the node that is in the middle of applying an event.
fn kill_in_transaction(fleet: &mut Fleet, provider: &Provider) {
    let hold = fleet.database.hold();
    let (_, node) = apply_held(fleet, provider);
    fleet.node(node).kill9();
    drop(hold);
    fleet.restart(node);
}

/// Stops the node that is in the middle of applying an event, and wakes it once another one has applied it.
fn stop(fleet: &mut Fleet, provider: &Provider) {
    let stopped = Stopped::in_transaction(fleet, provider);
    let user = Fleet::user(stopped.node);
    drop(stopped.hold);
    fleet.within("its transaction is open, and nothing runs in it", || {
        fleet.database.idle_of(user) > 0
    });
    fleet.within("another node has applied the event", || {
        fleet.status(&stopped.event) == "processed"
    });
    let took = stopped.at.elapsed();
    assert!(
        took <= LEASE + TAKES_OVER_WITHIN,
        "taken over after {took:?}"
    );
    println!("taken over after {took:?}");
    assert_ne!(fleet.applied_by(&stopped.event), user);
    fleet.node(stopped.node).signal("CONT");
    fleet.within("the woken node serves", || fleet.is_ready(stopped.node));
    assert_ne!(fleet.applied_by(&stopped.event), user);
}

/// Wakes a node while another one is at its event, too.
fn wake_shortly(fleet: &mut Fleet, stopped: Stopped) {
    fleet.within("another node has claimed the event", || {
        fleet.attempts(&stopped.event) > 1
    });
    fleet.node(stopped.node).signal("CONT");
    drop(stopped.hold);
    fleet.within("another node has applied the event", || {
        fleet.status(&stopped.event) == "processed"
    });
    fleet.within("the woken node serves", || fleet.is_ready(stopped.node));
    assert_ne!(fleet.applied_by(&stopped.event), Fleet::user(stopped.node));
}

/// Has an event applied that is held up in the middle; returns it and the node that is at it.
fn apply_held(fleet: &Fleet, provider: &Provider) -> (String, usize) {
    let event = provider.send_held(&fleet.addresses());
    let mut holder = None;
    fleet.within("a node is in the middle of applying the event", || {
        holder = (0..fleet::NODES).find(|node| fleet.database.held_of(Fleet::user(*node)) > 0);
        holder.is_some()
    });
    (event, holder.unwrap())
}

fn restart_database(fleet: &mut Fleet) {
    fleet.database.crash();
    std::thread::sleep(AWAY);
    fleet.database.resume();
}

fn restart_redis(fleet: &mut Fleet) {
    fleet.see_redis(true);
    let (folder, port) = fleet.redis.take().unwrap().kill();
    fleet.see_redis(false);
    fleet.redis = Some(Redis::resume(folder, port, &[]));
    fleet.see_redis(true);
}

#[expect(
    clippy::disallowed_methods,
    reason = "a longer run is asked for in the environment"
)]
fn rounds() -> usize {
    let asked = std::env::var("SEKALI_FAULT_ROUNDS").ok();
    asked.map_or(ROUNDS, |count| {
        count.parse().expect("SEKALI_FAULT_ROUNDS is a number")
    })
}
