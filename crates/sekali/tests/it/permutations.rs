//! Any order of the same events, with any repetition, from several connections: one final state.

use std::collections::HashMap;
use std::sync::Arc;

use sekali::Outcome;

use super::fixtures;
use super::hard_streams::{Stream, hard};
use super::support::{Options, Rig, sources};

/// How many connections a sender uses at once.
const LANES: usize = 8;

/// Delivers bodies in a seeded order with seeded repetition, and returns the outcomes by event id.
pub(crate) async fn deliver_shuffled(
    rig: &Arc<Rig>,
    source: &'static str,
    events: &[(String, String)],
    seed: u64,
) -> HashMap<String, Vec<Outcome>> {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut deliveries = events.to_vec();
    for event in events {
        let copies = [0, 0, 1, 1, 3][dice.usize(..5)];
        deliveries.extend(std::iter::repeat_n(event.clone(), copies));
    }
    dice.shuffle(&mut deliveries);
    let len = deliveries.len().div_ceil(LANES);
    let lanes: Vec<_> = deliveries
        .chunks(len)
        .map(|lane| {
            let (rig, lane) = (Arc::clone(rig), lane.to_vec());
            tokio::spawn(async move {
                let mut outcomes = Vec::with_capacity(lane.len());
                for (id, body) in lane {
                    outcomes.push((id, rig.send(source, body).await));
                }
                outcomes
            })
        })
        .collect();
    let mut outcomes: HashMap<String, Vec<Outcome>> = HashMap::new();
    for lane in lanes {
        for (id, outcome) in lane.await.unwrap() {
            outcomes.entry(id).or_default().push(outcome);
        }
    }
    outcomes
}

/// Lists the events that were not accepted exactly once, or of which a copy was no duplicate.
pub(crate) fn badly_answered(outcomes: &HashMap<String, Vec<Outcome>>) -> Vec<String> {
    let is_bad = |outcomes: &Vec<Outcome>| {
        let count = |wanted| outcomes.iter().filter(|found| **found == wanted).count();
        count(Outcome::Accepted) != 1 || count(Outcome::Duplicate) != outcomes.len() - 1
    };
    let bad = outcomes.iter().filter(|(_, outcomes)| is_bad(outcomes));
    bad.map(|(id, outcomes)| format!("{id}: {outcomes:?}"))
        .collect()
}

/// The seeds of a run; the variable `SEKALI_SEEDS` says how many there are in a longer one.
#[expect(
    clippy::disallowed_methods,
    reason = "a longer run is asked for in the environment"
)]
pub(crate) fn seeds(default: u64) -> std::ops::RangeInclusive<u64> {
    let asked = std::env::var("SEKALI_SEEDS").ok();
    1..=asked.map_or(default, |count| {
        count.parse().expect("SEKALI_SEEDS is a number")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_events_in_any_order_end_in_the_expected_state() {
    for seed in seeds(5) {
        let options = Options {
            setup: fixtures::SCHEMA,
            ..Options::default()
        };
        let rig = Arc::new(Rig::with(sources(fixtures::CONFIG), options).await);
        let outcomes = deliver_shuffled(&rig, "research", &fixtures::events(), seed).await;
        assert_eq!(outcomes.len(), 400, "seed {seed}");
        let copies: usize = outcomes.values().map(Vec::len).sum();
        assert!(copies > 600, "seed {seed}: only {copies} deliveries");
        assert_eq!(badly_answered(&outcomes), [""; 0], "seed {seed}");
        rig.drain().await;
        assert_eq!(fixtures::mismatches(&rig).await, [""; 0], "seed {seed}");
        let statuses = "select distinct processing_status from webhook_inbox order by 1";
        assert_eq!(
            rig.column(statuses).await,
            "ignored_out_of_order processed",
            "seed {seed}"
        );
        let applied_twice =
            "select inbox_seq from webhook_attempts group by inbox_seq having count(*) <> 1";
        assert_eq!(rig.column(applied_twice).await, "", "seed {seed}");
    }
}

/// Fails where a kind of hard event is in none of a run's streams; one of them may do without.
fn assert_every_kind(seeds: std::ops::RangeInclusive<u64>) {
    let absent = seeds.map(|seed| Stream::generate(seed).absent_kinds());
    let in_all = absent.reduce(|in_all, absent| {
        let still = in_all.into_iter().filter(|kind| absent.contains(kind));
        still.collect()
    });
    assert_eq!(in_all.expect("a run has streams"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hard_streams_in_any_order_end_at_the_greatest_position() {
    assert_every_kind(seeds(8));
    for seed in seeds(8) {
        let stream = Stream::generate(seed);
        let mismatches = shuffled_mismatches(sources(&hard("tie_break")), &stream, seed).await;
        assert_eq!(mismatches, [""; 0], "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_ignored_ties_the_order_of_arrival_decides_only_among_equal_versions() {
    assert_every_kind(seeds(3));
    for seed in seeds(3) {
        let stream = Stream::generate(seed);
        let mismatches = sequential_mismatches(sources(&hard("ignore")), &stream).await;
        assert_eq!(mismatches, [""; 0], "seed {seed}");
    }
}

/// Delivers a stream in a shuffled order and compares with the greatest position of each entity.
pub(crate) async fn shuffled_mismatches(
    sources: Vec<sekali::Source>,
    stream: &Stream,
    seed: u64,
) -> Vec<String> {
    let rig = Arc::new(Rig::with(sources, Options::default()).await);
    let outcomes = deliver_shuffled(&rig, "hard", &stream.bodies(), seed).await;
    rig.drain().await;
    let mut mismatches = badly_answered(&outcomes);
    mismatches.extend(stream.mismatches(&rig, &stream.greatest()).await);
    mismatches.extend(stream.wrong_reasons(&rig).await);
    mismatches
}

/// Delivers a stream one by one and compares with a fold in that order, in which the first of equal versions stays.
pub(crate) async fn sequential_mismatches(
    sources: Vec<sekali::Source>,
    stream: &Stream,
) -> Vec<String> {
    let rig = Rig::with(sources, Options::default()).await;
    for (_, body) in stream.bodies() {
        rig.accept("hard", body).await;
        rig.drain().await;
    }
    let mut mismatches = stream.mismatches(&rig, &stream.first_of_version()).await;
    mismatches.extend(stream.wrong_reasons(&rig).await);
    mismatches
}
