//! A test that cannot fail proves nothing: each rule of the order is switched off once, and must be missed.

use sekali::Source;
use sekali::effect::EffectKind;
use sekali::order::{EqualVersion, RULES, Rule};

use super::hard_streams::{Stream, hard};
use super::permutations::{sequential_mismatches, shuffled_mismatches};
use super::support::sources;

/// In how many streams a mutation may hide before it counts as unnoticed.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

/// All rules but one; the source wants them for ever, so they are never freed.
fn rules_without(left_out: Rule) -> &'static [Rule] {
    let others = RULES.iter().copied().filter(|rule| *rule != left_out);
    Vec::leak(others.collect())
}

/// Tells whether some stream ends elsewhere than it should with these sources.
async fn is_caught(make: impl Fn() -> Vec<Source>) -> bool {
    for seed in SEEDS {
        let stream = Stream::generate(seed);
        if !shuffled_mismatches(make(), &stream, seed).await.is_empty() {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_rule_that_is_left_out_is_missed() {
    for rule in RULES
        .iter()
        .copied()
        .filter(|rule| *rule != Rule::EqualVersion)
    {
        let make = || {
            let mut sources = sources(&hard("tie_break"));
            sources[0].rules = rules_without(rule);
            sources
        };
        assert!(is_caught(make).await, "nobody missed {rule:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rule_on_equal_versions_is_missed_where_they_are_ignored() {
    for seed in SEEDS {
        let mut sources = sources(&hard("ignore"));
        assert_eq!(sources[0].equal_version, EqualVersion::Ignore);
        sources[0].rules = rules_without(Rule::EqualVersion);
        let stream = Stream::generate(seed);
        if !sequential_mismatches(sources, &stream).await.is_empty() {
            return;
        }
    }
    panic!("nobody missed the rule on equal versions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upsert_without_the_gate_is_noticed() {
    let open =
        hard("tie_break").replace("kind = \"upsert\"", "kind = \"upsert\"\norder = \"none\"");
    assert!(open.contains("order = \"none\""));
    assert!(is_caught(|| sources(&open)).await, "nobody missed the gate");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_that_does_nothing_is_noticed() {
    let make = || {
        let mut sources = sources(&hard("tie_break"));
        let deletes = sources[0].effects.pop();
        assert_eq!(deletes.unwrap().kind(), EffectKind::Delete);
        sources
    };
    assert!(is_caught(make).await, "nobody missed the tombstones");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ties_that_are_ignored_are_noticed_by_the_test_that_breaks_them() {
    let make = || {
        let mut sources = sources(&hard("tie_break"));
        sources[0].equal_version = EqualVersion::Ignore;
        sources
    };
    assert!(is_caught(make).await, "nobody missed the tie break");
}
