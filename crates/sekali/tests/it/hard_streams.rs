//! Streams of events that are as hard to order as the rules allow, and what must become of them, written down without
//! the engine's own comparison.

use std::collections::BTreeMap;

use super::fixtures::differences;
use super::support::{Rig, START_MS};

/// Types from the lowest to the highest rank.
const TYPES: [&str; 3] = ["doc.created", "doc.updated", "doc.deleted"];
const ENTITIES: usize = 8;
const EVENTS: usize = 12;

/// A source that maps everything that decides about order; its upsert has no guard of its own.
pub(crate) fn hard(equal_version: &str) -> String {
    format!(
        r#"
[[source]]
id = "hard"
unsigned = true
equal_version = "{equal_version}"
rank = ["doc.created", "doc.updated", "doc.deleted"]
[source.map]
event_id = "/id"
event_type = "/type"
entity_id = "/entity"
version = "/version"
occurred_at = "/at"
[[source.effect]]
kind = "upsert"
when = ["doc.created", "doc.updated"]
table = "docs"
key = {{ entity = "/entity" }}
columns = {{ title = "/title", event = "event:id" }}
[[source.effect]]
kind = "delete"
when = ["doc.deleted"]
table = "docs"
key = {{ entity = "/entity" }}
"#
    )
}

/// One event; its time is in seconds after the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    id: String,
    entity: String,
    rank: usize,
    version: Option<u32>,
    at: Option<u32>,
    title: String,
}

impl Event {
    /// Where the event stands; tuples compare from left to right, and nothing is lower than something.
    fn position(&self) -> (Option<u32>, Option<u32>, usize, &[u8]) {
        (self.version, self.at, self.rank, self.id.as_bytes())
    }

    fn is_delete(&self) -> bool {
        self.rank == 2
    }

    fn body(&self) -> String {
        let mut body = serde_json::json!({
            "id": self.id, "type": TYPES[self.rank], "entity": self.entity, "title": self.title,
        });
        if let Some(version) = self.version {
            body["version"] = version.into();
        }
        if let Some(at) = self.at {
            let at = jiff::Timestamp::from_second(START_MS / 1000 - 1000 + i64::from(at)).unwrap();
            body["at"] = at.to_string().into();
        }
        body.to_string()
    }
}

/// Events in the order in which they are sent where nothing shuffles them.
pub(crate) struct Stream {
    events: Vec<Event>,
}

impl Stream {
    pub(crate) fn generate(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut events = Vec::new();
        for number in 0..ENTITIES {
            let first = events.len();
            // One entity is ordered by time alone.
            let unversioned = if number == 0 { 1.0 } else { 0.2 };
            for _ in 0..EVENTS {
                events.push(random_event(&mut dice, number, unversioned));
            }
            // The highest position is shared by another id, and on every other entity by another type.
            let of_entity = &events[first..];
            let mut twin = of_entity
                .iter()
                .max_by_key(|event| event.position())
                .unwrap()
                .clone();
            twin.id = random_id(&mut dice);
            twin.title = random_id(&mut dice);
            twin.rank = if number % 2 == 0 { 1 } else { twin.rank };
            events.push(twin);
        }
        dice.shuffle(&mut events);
        Self { events }
    }

    pub(crate) fn bodies(&self) -> Vec<(String, String)> {
        let body = |event: &Event| (event.id.clone(), event.body());
        self.events.iter().map(body).collect()
    }

    /// Lists the kinds of trouble that the stream does not hold.
    pub(crate) fn absent_kinds(&self) -> Vec<&'static str> {
        let pairs = |holds: &dyn Fn(&Event, &Event) -> bool| {
            self.events.iter().any(|a| {
                let others = self
                    .events
                    .iter()
                    .filter(|b| a.entity == b.entity && a != *b);
                others.into_iter().any(|b| holds(a, b))
            })
        };
        let same_place = |a: &Event, b: &Event| a.version == b.version && a.at == b.at;
        let ids: Vec<_> = self.events.iter().map(|event| &event.id).collect();
        let kinds = [
            (
                "versions and times disagree",
                pairs(&|a, b| {
                    a.version.is_some() && a.version < b.version && a.at > b.at && b.at.is_some()
                }),
            ),
            (
                "a version repeats with other content",
                pairs(&|a, b| a.version.is_some() && a.version == b.version && a.title != b.title),
            ),
            (
                "times tie and types differ",
                pairs(&|a, b| a.at.is_some() && same_place(a, b) && a.rank < b.rank),
            ),
            (
                "times tie and types do not differ",
                pairs(&|a, b| a.at.is_some() && same_place(a, b) && a.rank == b.rank),
            ),
            (
                "an entity returns after a delete",
                pairs(&|a, b| a.is_delete() && !b.is_delete() && a.position() < b.position()),
            ),
            (
                "an entity stays deleted though older updates come later",
                self.greatest().values().any(|event| event.is_delete()),
            ),
            (
                "versions are missing",
                pairs(&|a, b| a.version.is_none() && b.version.is_some()),
            ),
            ("times are missing", pairs(&|a, _| a.at.is_none())),
            (
                "ids are random",
                !ids.is_sorted() && ids.iter().any(|id| !id.is_ascii()),
            ),
        ];
        kinds
            .iter()
            .filter(|(_, holds)| !holds)
            .map(|(kind, _)| *kind)
            .collect()
    }

    /// Finds the greatest event of each entity.
    pub(crate) fn greatest(&self) -> BTreeMap<String, Event> {
        let mut last: BTreeMap<String, Event> = BTreeMap::new();
        for event in &self.events {
            let known = last.get(&event.entity);
            if known.is_none_or(|known| known.position() < event.position()) {
                last.insert(event.entity.clone(), event.clone());
            }
        }
        last
    }

    /// Finds the last event of each entity where the first one of equal versions stays.
    pub(crate) fn first_of_version(&self) -> BTreeMap<String, Event> {
        let mut last: BTreeMap<String, Event> = BTreeMap::new();
        for event in &self.events {
            let stays = last
                .get(&event.entity)
                .is_some_and(|known| match event.version {
                    Some(_) => event.version <= known.version,
                    None => event.position() < known.position(),
                });
            if !stays {
                last.insert(event.entity.clone(), event.clone());
            }
        }
        last
    }

    /// Compares tables and tombstones with the last event of each entity.
    pub(crate) async fn mismatches(
        &self,
        rig: &Rig,
        last: &BTreeMap<String, Event>,
    ) -> Vec<String> {
        let row = |event: &Event| vec![event.title.clone(), event.id.clone()];
        let live = last.iter().filter(|(_, event)| !event.is_delete());
        let rows = live.map(|(key, event)| (key.clone(), row(event))).collect();
        let found = rig.query("select entity, title, event from docs").await;
        let mut mismatches = differences("row", &rows, found);
        let entity = |event: &Event| {
            let version = event
                .version
                .map_or("-".to_owned(), |version| version.to_string());
            vec![
                version,
                event.id.clone(),
                u8::from(event.is_delete()).to_string(),
            ]
        };
        let entities = last
            .iter()
            .map(|(key, event)| (key.clone(), entity(event)))
            .collect();
        let sql = "select entity_id, version, last_event_id, deleted from webhook_entities";
        mismatches.extend(differences("entity", &entities, rig.query(sql).await));
        mismatches
    }

    /// Lists ignored events whose reason cannot be theirs in any order of arrival.
    pub(crate) async fn wrong_reasons(&self, rig: &Rig) -> Vec<String> {
        let sql = "select event_id, processing_status, status_reason, source_version is not null from webhook_inbox";
        let rows = rig.query(sql).await;
        assert_eq!(rows.len(), self.events.len());
        let is_wrong = |row: &Vec<String>| {
            let is_versioned = row[3] == "1";
            match (row[1].as_str(), row[2].as_str()) {
                ("processed", _) => false,
                ("ignored_out_of_order", "older_version" | "equal_version") => !is_versioned,
                ("ignored_out_of_order", "version_conflict" | "version_regressed") => !is_versioned,
                ("ignored_out_of_order", "unversioned") => is_versioned,
                ("ignored_out_of_order", "older_time" | "lower_rank" | "lower_event_id") => false,
                _ => true,
            }
        };
        let wrong = rows.into_iter().filter(is_wrong);
        wrong.map(|row| row.join(" ")).collect()
    }
}

fn random_event(dice: &mut fastrand::Rng, entity: usize, unversioned: f64) -> Event {
    let version = (dice.f64() >= unversioned).then(|| dice.u32(1..6));
    let has_time = version.is_none() || dice.f64() > 0.15;
    Event {
        id: random_id(dice),
        entity: format!("doc-{entity}"),
        rank: [0, 1, 1, 2][dice.usize(..4)],
        version,
        at: has_time.then(|| dice.u32(..6)),
        title: random_id(dice),
    }
}

/// Makes an id whose bytes order it differently from its letters.
fn random_id(dice: &mut fastrand::Rng) -> String {
    let letters: Vec<char> = "abxyzABXYZ0189-_éß".chars().collect();
    (0..12)
        .map(|_| letters[dice.usize(..letters.len())])
        .collect()
}
