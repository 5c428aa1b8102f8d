//! What was answered to the senders of a run: all that they know.

use std::collections::{BTreeMap, BTreeSet};

use sekali::Outcome;

use super::events::Body;

/// A request: the node that it goes to, and the events in it.
pub(super) type Request = (usize, Vec<Body>);

/// What was answered about the deliveries of each event.
#[derive(Default)]
pub(super) struct Answers {
    by_id: BTreeMap<String, Answered>,
    /// How many deliveries without an answer were stored, and how many were not: both have to be met.
    pub(super) unheard: [usize; 2],
}

#[derive(Default)]
struct Answered {
    accepted: usize,
    /// The body that was accepted.
    body: Option<String>,
    duplicates: usize,
    inconsistent: usize,
    /// Deliveries without an answer: nobody knows.
    unknown: usize,
}

impl Answers {
    pub(super) fn note(&mut self, sent: &[Request], outcomes: Vec<Option<Vec<Outcome>>>) {
        for ((_, bodies), outcomes) in sent.iter().zip(outcomes) {
            for (index, body) in bodies.iter().enumerate() {
                let outcome = outcomes.as_ref().map(|outcomes| outcomes[index]);
                self.note_one(body, outcome);
            }
        }
    }

    fn note_one(&mut self, body: &Body, outcome: Option<Outcome>) {
        let of_id = self.by_id.entry(body.id.clone()).or_default();
        match outcome {
            None => of_id.unknown += 1,
            Some(Outcome::Accepted) => {
                of_id.accepted += 1;
                of_id.body = Some(body.json());
            }
            Some(Outcome::Duplicate) => of_id.duplicates += 1,
            Some(Outcome::InconsistentDuplicate) => of_id.inconsistent += 1,
            Some(other) => panic!("{} was answered {other:?}", body.id),
        }
    }

    /// Counts what became of deliveries without an answer that would have brought new events.
    pub(super) fn note_unheard(
        &mut self,
        sent: &[Request],
        outcomes: &[Option<Vec<Outcome>>],
        (before, after): (&BTreeSet<String>, &BTreeSet<String>),
    ) {
        let unheard = sent.iter().zip(outcomes).filter(|(_, of)| of.is_none());
        let bodies = unheard.flat_map(|((_, bodies), _)| bodies);
        for body in bodies.filter(|body| !before.contains(&body.id)) {
            self.unheard[usize::from(after.contains(&body.id))] += 1;
        }
    }

    /// Lists what was answered wrongly, whatever the database says.
    pub(super) fn wrong(&self) -> Vec<String> {
        let is_wrong = |answered: &Answered| {
            let known = answered.duplicates + answered.inconsistent;
            // Of an event that is known somebody accepted a delivery, or never heard that it was.
            answered.accepted > 1 || (known > 0 && answered.accepted + answered.unknown == 0)
        };
        let wrong = self.by_id.iter().filter(|(_, answered)| is_wrong(answered));
        wrong
            .map(|(id, _)| format!("{id} was answered wrongly"))
            .collect()
    }

    /// Lists the events that have to be in the database, with the body where that is known.
    pub(super) fn answered(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let is_answered = |answered: &Answered| {
            answered.accepted + answered.duplicates + answered.inconsistent > 0
        };
        let answered = self.by_id.iter();
        let answered = answered.filter(move |(_, of_id)| is_answered(of_id));
        answered.map(|(id, of_id)| (id.as_str(), of_id.body.as_deref()))
    }
}
