//! A model of the engine: random deliveries, crashes, lost leases, jumping clocks and restarts on several nodes, and what
//! has to hold after each of them.
//!
//! A run is a sequence of steps that a seed decides. The model is told what was sent and what was answered; it knows
//! nothing of leases, batches or tables. After each step the invariants of `ARCHITECTURE.md` are asked of the database
//! ([`invariants`]); at the end, everything that was answered has to be there and the user's table has to be what the
//! model says, whatever happened in between.

use std::time::Duration;

use super::permutations::seeds;

mod answers;
mod checks;
mod events;
mod fuse;
mod invariants;
mod world;

use answers::{Answers, Request};
use checks::Seen;
use events::Events;
use fuse::Moment;
use world::World;

/// How many steps a run has.
const STEPS: usize = 60;

/// One step of a run.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Requests to any of the nodes, with known events and variants among them.
    Deliver,
    /// One delivery to every node at the same time.
    Twins,
    /// A node is gone at a commit, while it has deliveries and events in its hands.
    Crash,
    /// Commits of a node are lost for a moment, and it goes on.
    Cut,
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
        0..40 => Step::Deliver,
        40..48 => Step::Twins,
        48..63 => Step::Crash,
        63..72 => Step::Cut,
        72..81 => Step::Claim,
        81..91 => Step::Jump,
        91..96 => Step::Restart,
        _ => Step::Rest,
    }
}

#[test]
fn whatever_happens_every_event_is_applied_once_and_in_order() {
    let mut unheard = [0, 0];
    for seed in seeds(3) {
        let of_run = run(seed);
        unheard = [unheard[0] + of_run[0], unheard[1] + of_run[1]];
    }
    println!(
        "deliveries without an answer: {} lost, {} stored",
        unheard[0], unheard[1]
    );
    assert!(
        !unheard.contains(&0),
        "no crash met both sides of a commit: {unheard:?}"
    );
}

/// One run; it returns how many deliveries without an answer were lost and stored.
fn run(seed: u64) -> [usize; 2] {
    let mut run = Run::new(seed);
    let mut steps = Vec::new();
    for _ in 0..STEPS {
        let step = step(&mut run.dice);
        steps.push(step);
        let wrong = [run.take(step), run.wrong()].concat();
        assert_eq!(wrong, [""; 0], "seed {seed}, after {steps:?}");
    }
    // Whoever had no answer comes again.
    for body in run.events.all() {
        let request = vec![(0, vec![body.clone()])];
        let outcomes = run.world.deliver_all(request.clone());
        run.answers.note(&request, outcomes);
    }
    run.world.drain();
    let wrong = [run.wrong(), run.world.unlike(&run.events)].concat();
    assert_eq!(wrong, [""; 0], "seed {seed}, at the end of {steps:?}");
    run.answers.unheard
}

struct Run {
    dice: fastrand::Rng,
    events: Events,
    world: World,
    answers: Answers,
    seen: Seen,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        Self {
            events: Events::generate(&mut dice),
            dice,
            world: World::start(seed),
            answers: Answers::default(),
            seen: Seen::default(),
        }
    }

    fn wrong(&mut self) -> Vec<String> {
        let broken = self.world.broken(&self.answers, &mut self.seen);
        [self.answers.wrong(), broken].concat()
    }

    /// Takes a step; returns what shows only right after it.
    fn take(&mut self, step: Step) -> Vec<String> {
        match step {
            Step::Deliver => {
                let sent = self.requests();
                return self.send(sent, World::deliver_all);
            }
            Step::Twins => {
                let body = self.events.pick(&mut self.dice);
                let sent = (0..world::NODES).map(|node| (node, vec![body.clone()]));
                return self.send(sent.collect(), World::deliver_all);
            }
            Step::Crash => {
                let (sent, node, at) = self.trouble();
                return self.send(sent, |world, sent| world.crash(node, sent, at));
            }
            Step::Cut => {
                let (sent, node, at) = self.trouble();
                return self.send(sent, |world, sent| world.cut(node, sent, at));
            }
            Step::Claim => self.world.claim_and_die(),
            Step::Jump => self.world.jump(self.dice.i64(-5_000..60_000)),
            Step::Restart => self.world.restart(self.dice.usize(..world::NODES)),
            Step::Rest => std::thread::sleep(Duration::from_millis(self.dice.u64(..30))),
        }
        Vec::new()
    }

    /// Draws some requests; some of them carry several events.
    fn requests(&mut self) -> Vec<Request> {
        let request = |dice: &mut fastrand::Rng| {
            let len = [1, 1, 1, 2, 5][dice.usize(..5)];
            let node = dice.usize(..world::NODES);
            (node, (0..len).map(|_| self.events.pick(dice)).collect())
        };
        let len = self.dice.usize(1..10);
        (0..len).map(|_| request(&mut self.dice)).collect()
    }

    /// Draws where and when a node meets trouble, and what it has to do meanwhile.
    fn trouble(&mut self) -> (Vec<Request>, usize, (Duration, Moment)) {
        let moment = match self.dice.bool() {
            true => Moment::Before,
            false => Moment::After,
        };
        let after = [0, 0, 1000, 4000][self.dice.usize(..4)];
        let (sent, node) = (self.requests(), self.dice.usize(..world::NODES));
        (sent, node, (Duration::from_micros(after), moment))
    }

    fn send(
        &mut self,
        sent: Vec<Request>,
        by: impl FnOnce(&mut World, Vec<Request>) -> Vec<Option<Vec<sekali::Outcome>>>,
    ) -> Vec<String> {
        let before = self.world.stored();
        let outcomes = by(&mut self.world, sent.clone());
        let after = self.world.stored();
        self.answers
            .note_unheard(&sent, &outcomes, (&before, &after));
        self.answers.note(&sent, outcomes);
        self.world.torn(&sent, &before)
    }
}
