//! A model of the engine: random deliveries, crashes, lost leases, jumping clocks and restarts on several nodes, and what
//! has to hold after each of them.
//!
//! A run is a sequence of steps that a seed decides. The model is told what was sent and what was answered; it knows
//! nothing of leases, batches or tables. After each step the invariants of `ARCHITECTURE.md` are asked of the database
//! ([`invariants`]); at the end, everything that was answered has to be there and the user's table has to be what the
//! model says, whatever happened in between.

use std::collections::BTreeMap;

use sekali::Outcome;

use super::permutations::seeds;

mod events;
mod invariants;
mod world;

use events::{Body, Events};
use world::World;

/// How many steps a run has.
const STEPS: usize = 60;

/// What was answered about the deliveries of each event.
#[derive(Default)]
struct Answers {
    by_id: BTreeMap<String, Answered>,
}

#[derive(Default)]
struct Answered {
    accepted: usize,
    duplicates: usize,
    inconsistent: usize,
    /// Deliveries whose node crashed before it answered: nobody knows.
    unknown: usize,
}

impl Answers {
    fn note(&mut self, body: &Body, outcome: Option<Outcome>) {
        let of_id = self.by_id.entry(body.id.clone()).or_default();
        let count = match outcome {
            None => &mut of_id.unknown,
            Some(Outcome::Accepted) => &mut of_id.accepted,
            Some(Outcome::Duplicate) => &mut of_id.duplicates,
            Some(Outcome::InconsistentDuplicate) => &mut of_id.inconsistent,
            Some(other) => panic!("{} was answered {other:?}", body.id),
        };
        *count += 1;
    }

    /// Lists what was answered wrongly, whatever the database says.
    fn wrong(&self) -> Vec<String> {
        let is_wrong = |answered: &Answered| {
            let known = answered.duplicates + answered.inconsistent;
            // Of an event that is known somebody accepted a delivery, or crashed over one.
            answered.accepted > 1 || (known > 0 && answered.accepted + answered.unknown == 0)
        };
        let wrong = self.by_id.iter().filter(|(_, answered)| is_wrong(answered));
        wrong.map(|(id, _)| id.clone()).collect()
    }

    /// Lists the events that have to be in the database.
    fn answered(&self) -> impl Iterator<Item = &str> {
        let is_answered = |answered: &Answered| {
            answered.accepted + answered.duplicates + answered.inconsistent > 0
        };
        let answered = self
            .by_id
            .iter()
            .filter(move |(_, of_id)| is_answered(of_id));
        answered.map(|(id, _)| id.as_str())
    }
}

/// One step of a run.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Deliveries to any of the nodes, known ones and variants among them.
    Deliver,
    /// One delivery to every node at the same time.
    Twins,
    /// A node is gone while it has deliveries and events in its hands.
    Crash,
    /// A worker claims events and never comes back.
    Claim,
    /// The database's clock jumps, forwards or a little backwards.
    Jump,
    /// A node is stopped as it should be, and started again.
    Restart,
    /// The nodes work for a moment.
    Rest,
}

fn step(dice: &mut fastrand::Rng) -> Step {
    match dice.u32(..100) {
        0..45 => Step::Deliver,
        45..55 => Step::Twins,
        55..68 => Step::Crash,
        68..78 => Step::Claim,
        78..90 => Step::Jump,
        90..95 => Step::Restart,
        _ => Step::Rest,
    }
}

#[test]
fn whatever_happens_every_event_is_applied_once_and_in_order() {
    for seed in seeds(3) {
        run(seed);
    }
}

fn run(seed: u64) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let events = Events::generate(&mut dice);
    let (mut world, mut answers, mut steps) = (World::start(seed), Answers::default(), Vec::new());
    for _ in 0..STEPS {
        let step = step(&mut dice);
        steps.push(step);
        take(step, &mut world, &events, &mut dice, &mut answers);
        let wrong = [answers.wrong(), world.broken(&answers)].concat();
        assert_eq!(wrong, [""; 0], "seed {seed}, after {steps:?}");
    }
    // Whoever had no answer comes again.
    for body in events.all() {
        let outcome = world.deliver(vec![(0, body.clone())]).remove(0);
        answers.note(body, outcome);
    }
    world.drain();
    let wrong = [
        answers.wrong(),
        world.broken(&answers),
        world.unlike(&events),
    ]
    .concat();
    assert_eq!(wrong, [""; 0], "seed {seed}, at the end of {steps:?}");
}

fn take(
    step: Step,
    world: &mut World,
    events: &Events,
    dice: &mut fastrand::Rng,
    answers: &mut Answers,
) {
    let some = |dice: &mut fastrand::Rng| -> Vec<(usize, Body)> {
        let len = dice.usize(1..12);
        let body = |_| (dice.usize(..world::NODES), events.pick(dice));
        (0..len).map(body).collect()
    };
    let note = |answers: &mut Answers, sent: Vec<(usize, Body)>, outcomes: Vec<Option<Outcome>>| {
        for ((_, body), outcome) in sent.iter().zip(outcomes) {
            answers.note(body, outcome);
        }
    };
    match step {
        Step::Deliver => {
            let sent = some(dice);
            let outcomes = world.deliver(sent.clone());
            let is_answered = outcomes.iter().all(Option::is_some);
            assert!(
                is_answered,
                "nobody crashed: {:?}",
                world.errors.lock().unwrap()
            );
            note(answers, sent, outcomes);
        }
        Step::Twins => {
            let body = events.pick(dice);
            let sent: Vec<_> = (0..world::NODES).map(|node| (node, body.clone())).collect();
            let outcomes = world.deliver(sent.clone());
            note(answers, sent, outcomes);
        }
        Step::Crash => {
            let (sent, node) = (some(dice), dice.usize(..world::NODES));
            let after = std::time::Duration::from_micros(dice.u64(..4000));
            let outcomes = world.crash(node, sent.clone(), after);
            note(answers, sent, outcomes);
        }
        Step::Claim => world.claim_and_die(),
        Step::Jump => world.jump(dice.i64(-5_000..60_000)),
        Step::Restart => world.restart(dice.usize(..world::NODES)),
        Step::Rest => std::thread::sleep(std::time::Duration::from_millis(dice.u64(..30))),
    }
}
