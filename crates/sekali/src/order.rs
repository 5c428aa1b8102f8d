//! The order of an entity's events, and the one comparison that every gate uses. Pure.
//!
//! A [`Position`] is a total order, so that every arrival order of the same events ends in the same state:
//!
//! 1. an event with a version stands above any without one;
//! 2. the higher version;
//! 3. the later time, none being lowest;
//! 4. the source's rank of event types;
//! 5. the higher event id, bytewise: for determinism only.

use std::cmp::Ordering;

use crate::reason::Reason;

/// Where an event stands in its entity's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The sender's version of the entity.
    pub version: Option<i64>,
    /// When it happened, in nanoseconds UTC.
    pub occurred_at: Option<i64>,
    /// The rank of its type at equal times.
    pub rank: i64,
    /// The event's id.
    pub event_id: String,
}

/// What an event does whose version its entity already has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EqualVersion {
    /// The event that was applied first stays.
    #[default]
    Ignore,
    /// Time, rank and id decide.
    TieBreak,
}

/// Whether one effect follows the order of its entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectOrder {
    /// A stale event does not have the effect.
    #[default]
    LatestWins,
    /// Every event has the effect once.
    None,
}

/// How an event stands to its entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Above everything that was applied.
    Newer,
    /// Not above it, and why.
    Stale(Reason),
}

/// One rule of the order; the first that decides counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An event with a version stands above any without one.
    Versioned,
    /// The higher version stands above.
    Version,
    /// An equal version is ignored, where the source says so.
    EqualVersion,
    /// The later time stands above; none is lowest.
    Time,
    /// The higher rank of event types stands above.
    Rank,
    /// The higher event id stands above.
    EventId,
}

/// All rules, in the order in which they are asked.
pub const RULES: &[Rule] = &[
    Rule::Versioned,
    Rule::Version,
    Rule::EqualVersion,
    Rule::Time,
    Rule::Rank,
    Rule::EventId,
];

impl Rule {
    fn decide(self, event: &Position, entity: &Position, equal: EqualVersion) -> Option<Standing> {
        let (ordering, reason) = match self {
            Self::Versioned => (
                event.version.is_some().cmp(&entity.version.is_some()),
                Reason::Unversioned,
            ),
            Self::Version => (event.version.cmp(&entity.version), Reason::OlderVersion),
            Self::EqualVersion => {
                let is_ignored = equal == EqualVersion::Ignore
                    && event.version.is_some()
                    && event.version == entity.version;
                return is_ignored.then_some(Standing::Stale(Reason::EqualVersion));
            }
            Self::Time => (
                event.occurred_at.cmp(&entity.occurred_at),
                Reason::OlderTime,
            ),
            Self::Rank => (event.rank.cmp(&entity.rank), Reason::LowerRank),
            Self::EventId => (
                event.event_id.as_bytes().cmp(entity.event_id.as_bytes()),
                Reason::LowerEventId,
            ),
        };
        match ordering {
            Ordering::Greater => Some(Standing::Newer),
            Ordering::Less => Some(Standing::Stale(reason)),
            Ordering::Equal => None,
        }
    }
}

/// Compares an event with the position of its entity; the only place where that is decided.
pub fn stand(
    rules: &[Rule],
    event: &Position,
    entity: Option<&Position>,
    equal: EqualVersion,
) -> Standing {
    let Some(entity) = entity else {
        return Standing::Newer;
    };
    // Only the same event again is equal under every rule: it stands where the entity stands.
    let same = Standing::Stale(Reason::LowerEventId);
    rules
        .iter()
        .find_map(|rule| rule.decide(event, entity, equal))
        .unwrap_or(same)
}

/// Tells whether a restored producer may be at work: the version went down although time went on.
pub fn is_regressed(event: &Position, entity: &Position) -> bool {
    event.version < entity.version
        && event.version.is_some()
        && event.occurred_at > entity.occurred_at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position(
        version: Option<i64>,
        occurred_at: Option<i64>,
        rank: i64,
        event_id: &str,
    ) -> Position {
        Position {
            version,
            occurred_at,
            rank,
            event_id: event_id.into(),
        }
    }

    #[test]
    fn each_rule_decides_in_its_turn() {
        let base = position(Some(3), Some(100), 1, "b");
        let cases = [
            (position(None, Some(999), 9, "z"), Some(Reason::Unversioned)),
            (
                position(Some(2), Some(999), 9, "z"),
                Some(Reason::OlderVersion),
            ),
            (position(Some(4), None, 0, "a"), None),
            (position(Some(3), Some(99), 9, "z"), Some(Reason::OlderTime)),
            (position(Some(3), None, 9, "z"), Some(Reason::OlderTime)),
            (
                position(Some(3), Some(100), 0, "z"),
                Some(Reason::LowerRank),
            ),
            (
                position(Some(3), Some(100), 1, "a"),
                Some(Reason::LowerEventId),
            ),
            (position(Some(3), Some(100), 1, "c"), None),
            (position(Some(3), Some(101), 0, "a"), None),
        ];
        for (event, expected) in cases {
            let found = stand(RULES, &event, Some(&base), EqualVersion::TieBreak);
            let expected = expected.map_or(Standing::Newer, Standing::Stale);
            assert_eq!(found, expected, "{event:?}");
        }
        assert_eq!(
            stand(RULES, &base, None, EqualVersion::Ignore),
            Standing::Newer
        );
    }

    #[test]
    fn an_equal_version_is_ignored_unless_ties_are_broken() {
        let (first, second) = (
            position(Some(3), Some(1), 0, "a"),
            position(Some(3), Some(2), 0, "b"),
        );
        assert_eq!(
            stand(RULES, &second, Some(&first), EqualVersion::Ignore),
            Standing::Stale(Reason::EqualVersion)
        );
        assert_eq!(
            stand(RULES, &second, Some(&first), EqualVersion::TieBreak),
            Standing::Newer
        );
    }

    #[test]
    fn a_lower_version_with_a_later_time_is_a_regression() {
        let entity = position(Some(9), Some(100), 0, "a");
        assert!(is_regressed(&position(Some(1), Some(101), 0, "b"), &entity));
        assert!(!is_regressed(&position(Some(1), Some(99), 0, "b"), &entity));
        assert!(!is_regressed(&position(None, Some(101), 0, "b"), &entity));
    }

    proptest! {
        #[test]
        fn any_arrival_order_ends_at_the_greatest(
            events in prop::collection::vec((prop::option::of(0i64..4), prop::option::of(0i64..3), 0i64..2, "[a-c]{1,2}"), 1..7),
            order in any::<prop::sample::Index>(),
        ) {
            let events: Vec<_> = events.into_iter().map(|(v, t, r, id)| position(v, t, r, &id)).collect();
            let rank = |p: &Position| (p.version, p.occurred_at, p.rank, p.event_id.clone());
            let greatest = events.iter().max_by_key(|position| rank(position)).cloned();
            let mut rotated = events.clone();
            rotated.rotate_left(order.index(events.len()));
            for arrival in [events, rotated] {
                let mut entity: Option<Position> = None;
                for event in arrival {
                    if stand(RULES, &event, entity.as_ref(), EqualVersion::TieBreak) == Standing::Newer {
                        entity = Some(event);
                    }
                }
                prop_assert_eq!(entity, greatest.clone());
            }
        }
    }
}
