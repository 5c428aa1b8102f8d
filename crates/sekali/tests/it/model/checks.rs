//! What is asked of the database after each step, and at the end.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Request};
use super::events::Events;
use super::invariants::INVARIANTS;
use super::world::World;

/// What was seen of the events so far, which may not change any more.
#[derive(Default)]
pub(super) struct Seen {
    /// Identity, entity, position and hashes, by the event's number.
    events: BTreeMap<String, Vec<String>>,
    bodies: BTreeMap<String, String>,
}

impl World {
    pub(super) fn stored(&self) -> BTreeSet<String> {
        let ids = self.rows("select event_id from webhook_inbox").concat();
        ids.into_iter().collect()
    }

    /// Lists what does not hold.
    pub(super) fn broken(&self, answers: &Answers, seen: &mut Seen) -> Vec<String> {
        let mut broken = Vec::new();
        for (what, sql) in INVARIANTS {
            let found = self.rows(sql).concat();
            if !found.is_empty() {
                broken.push(format!("{what}: {found:?}"));
            }
        }
        broken.extend(self.changed(seen));
        let bodies = &seen.bodies;
        for (id, body) in answers.answered() {
            match bodies.get(id) {
                None => broken.push(format!("{id} was answered and is lost")),
                Some(stored) if body.is_some_and(|body| body != stored) => {
                    broken.push(format!("{id} has another body than was accepted"));
                }
                Some(_) => {}
            }
        }
        broken.extend(self.out_of_order());
        broken
    }

    /// Lists the events that are not as they were.
    fn changed(&self, seen: &mut Seen) -> Vec<String> {
        const EVENTS: &str = "select i.seq, i.event_id, i.source, i.entity_type, i.entity_id, i.source_version, \
            i.event_type, i.received_at, cast(body as text) from webhook_inbox i join webhook_payloads p on p.seq = i.seq";
        let mut changed = Vec::new();
        for row in self.rows(EVENTS) {
            seen.bodies.insert(row[1].clone(), row[8].clone());
            let known = seen.events.entry(row[0].clone()).or_insert(row.clone());
            if *known != row {
                changed.push(format!("{known:?} has become {row:?}"));
            }
        }
        changed
    }

    /// Lists the writes to the user's table that went down in their entity's order.
    fn out_of_order(&self) -> Vec<String> {
        const WRITES: &str = "select w.entity, i.source_version, w.event from writes w \
            join webhook_inbox i on i.event_id = w.event order by w.n";
        let mut last: BTreeMap<String, (i64, String)> = BTreeMap::new();
        let mut broken = Vec::new();
        for row in self.rows(WRITES) {
            let position = (row[1].parse().unwrap(), row[2].clone());
            let before = last.insert(row[0].clone(), position.clone());
            if before.is_some_and(|before| before >= position) {
                broken.push(format!("{row:?} was written after a newer one"));
            }
        }
        broken
    }

    /// Lists the requests of which a part is stored, although all of their events were new and in no other request.
    pub(super) fn torn(&self, sent: &[Request], before: &BTreeSet<String>) -> Vec<String> {
        let stored = self.stored();
        let all = || sent.iter().flat_map(|(_, bodies)| bodies);
        let times = |id: &str| all().filter(|body| body.id == id).count();
        let is_new = |id: &str| !before.contains(id) && times(id) == 1;
        let mut torn = Vec::new();
        for (_, bodies) in sent {
            let there = bodies.iter().filter(|body| stored.contains(&body.id));
            let there = there.count();
            let is_torn = there > 0 && there < bodies.len();
            if is_torn && bodies.iter().all(|body| is_new(&body.id)) {
                torn.push(format!("of {bodies:?} only {there} are stored"));
            }
        }
        torn
    }

    /// Lists in what the user's table and the events' ends differ from the model.
    pub(super) fn unlike(&self, events: &Events) -> Vec<String> {
        let bodies = self
            .rows("select cast(body as text) from webhook_payloads")
            .concat();
        let stored: BTreeSet<String> = bodies.into_iter().collect();
        let mut unlike = Vec::new();
        let rows = self.rows("select entity, event, title from docs");
        let mut expected = events.expected(&stored);
        for row in rows {
            if expected.remove(&row[0]).as_ref().map(|row| &row[..]) != Some(&row[1..]) {
                unlike.push(format!("{row:?} is not what it should be"));
            }
        }
        let missing = expected.into_iter();
        unlike.extend(missing.map(|row| format!("{row:?} is missing")));
        let refused = events.refused();
        const ENDS: &str = "select event_id, processing_status, status_reason from webhook_inbox";
        for row in self.rows(ENDS) {
            let is_right = match row[1].as_str() {
                "processed" | "ignored_out_of_order" => true,
                "dead_letter" => row[2] == "constraint" && refused.contains(&*row[0]),
                _ => false,
            };
            if !is_right {
                unlike.push(format!("{row:?} is not where an event ends"));
            }
        }
        unlike
    }
}
