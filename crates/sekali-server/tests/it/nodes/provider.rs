//! The provider: it sends signed events to any of the nodes, some twice, and again until each was answered with success.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::fleet::{Addresses, NODES};
use crate::support::{Connection, Hook, Reply, hook, order};

/// How many events there are in a round.
const EVENTS: usize = 400;
const SENDERS: usize = 6;
/// How many entities have many events each; the other half of the events has one each.
const SHARED: usize = 5;
/// How long the provider waits for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// How long it rests before it comes again; real ones rest longer.
const REST: Duration = Duration::from_millis(100);
/// For how long it comes again.
const GIVES_UP_AFTER: Duration = Duration::from_secs(90);

/// What is sent in a round.
pub(super) struct Provider {
    round: usize,
    /// In the order in which they are sent, which is not that of their versions.
    events: Vec<Event>,
    next: AtomicUsize,
    answered: AtomicUsize,
    /// When the fault strikes.
    strikes_at: usize,
    counts: [AtomicUsize; 4],
}

pub(super) struct Event {
    pub(super) id: String,
    pub(super) entity: String,
    pub(super) version: i64,
}

/// What the counts are of.
#[derive(Clone, Copy)]
enum Count {
    Accepted,
    Duplicate,
    Unavailable,
    Unanswered,
}

impl Provider {
    pub(super) fn new(round: usize) -> Self {
        let mut events: Vec<Event> = (0..EVENTS).map(|number| event(round, number)).collect();
        fastrand::shuffle(&mut events);
        Self {
            round,
            events,
            next: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            strikes_at: EVENTS / 8 + fastrand::usize(..EVENTS / 3),
            counts: Default::default(),
        }
    }

    /// Sends everything from several connections, and returns once all of it was answered with success.
    pub(super) fn send_all(&self, addresses: &Addresses) {
        std::thread::scope(|scope| {
            for _ in 0..SENDERS {
                scope.spawn(|| {
                    while let Some(event) =
                        self.events.get(self.next.fetch_add(1, Ordering::SeqCst))
                    {
                        self.send(event, addresses);
                        self.answered.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    /// Waits until so much was answered that the fault is in the middle of it.
    pub(super) fn wait_for_progress(&self) {
        crate::support::within(GIVES_UP_AFTER, "the load runs", || {
            self.answered.load(Ordering::SeqCst) >= self.strikes_at
        });
    }

    /// Sends an event whose write is held up, and returns its id.
    pub(super) fn send_held(&self, addresses: &Addresses) -> String {
        let event = self.held();
        self.deliver(&event.hook(), 0, addresses);
        event.id
    }

    /// Sends some events about an entity each, and returns their ids.
    pub(super) fn send_a_few(&self, addresses: &Addresses) -> Vec<String> {
        let has_its_own = |event: &&Event| event.entity.starts_with('r');
        let few = self.events.iter().filter(has_its_own).take(NODES * 2);
        let send = |(node, event): (usize, &Event)| {
            self.deliver(&event.hook(), node, addresses);
            event.id.clone()
        };
        few.enumerate().map(send).collect()
    }

    /// Every event of the round, and the highest version of each entity.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }

    /// Returns the highest version of each entity that was ever sent.
    pub(super) fn newest(&self) -> BTreeMap<&str, i64> {
        let mut newest = BTreeMap::new();
        for event in &self.events {
            let version = newest.entry(&*event.entity).or_insert(event.version);
            *version = event.version.max(*version);
        }
        newest
    }

    pub(super) fn summary(&self) -> String {
        let [accepted, duplicate, unavailable, unanswered] =
            std::array::from_fn(|index| self.counts[index].load(Ordering::SeqCst));
        format!(
            "{accepted} accepted, {duplicate} duplicates, {unavailable} unavailable, {unanswered} without an answer"
        )
    }

    fn held(&self) -> Event {
        Event {
            id: format!("held-r{}", self.round),
            entity: format!("held-r{}", self.round),
            version: 1,
        }
    }

    fn send(&self, event: &Event, addresses: &Addresses) {
        let node = fastrand::usize(..NODES);
        let hook = event.hook();
        match fastrand::u8(..10) {
            // Twins, to two nodes at once.
            0 | 1 => std::thread::scope(|scope| {
                scope.spawn(|| self.deliver(&hook, node + 1, addresses));
                self.deliver(&hook, node, addresses);
            }),
            // A repetition, to another node.
            2 => {
                self.deliver(&hook, node, addresses);
                let status = self.deliver(&hook, node + 1, addresses);
                assert_eq!(status, 200, "{} was answered already", event.id);
            }
            _ => {
                self.deliver(&hook, node, addresses);
            }
        }
    }

    /// Sends until there is an answer of success, to one node after the other; returns its status.
    fn deliver(&self, hook: &Hook, node: usize, addresses: &Addresses) -> u16 {
        let began = Instant::now();
        for node in node.. {
            let address = addresses.read().unwrap()[node % NODES].clone();
            let reply = try_send(hook, &address);
            match &reply {
                Some(reply) if reply.status == 202 => self.count(Count::Accepted),
                Some(reply) if reply.status == 200 => self.count(Count::Duplicate),
                Some(reply) if reply.status == 503 => {
                    let later = reply.header("retry-after");
                    assert!(later.is_some(), "a 503 says when to come again: {reply:?}");
                    self.count(Count::Unavailable);
                }
                Some(reply) => panic!("{}", reply.says()),
                None => self.count(Count::Unanswered),
            }
            match reply {
                Some(Reply {
                    status: status @ (200 | 202),
                    ..
                }) => return status,
                _ => std::thread::sleep(REST.mul_f64(0.5 + fastrand::f64())),
            }
            assert!(
                began.elapsed() < GIVES_UP_AFTER,
                "no success for {hook:?}: {reply:?}"
            );
        }
        unreachable!("there is always a next node")
    }

    fn count(&self, count: Count) {
        self.counts[count as usize].fetch_add(1, Ordering::SeqCst);
    }
}

fn event(round: usize, number: usize) -> Event {
    let entity = match number % 2 {
        0 => format!("r{round}-{number}"),
        _ => format!("shared-{}", number % SHARED),
    };
    Event {
        id: format!("r{round}-e{number}"),
        entity,
        version: i64::try_from(round * EVENTS + number).unwrap(),
    }
}

impl Event {
    fn hook(&self) -> Hook {
        hook(&self.id, order(&self.entity, self.version, "paid"))
    }
}

/// Sends once; `None` where there was no answer in time.
fn try_send(hook: &Hook, address: &str) -> Option<Reply> {
    let mut connection = Connection::try_open(address).ok()?;
    connection.set_patience(ANSWER_WITHIN);
    hook.send_on(&mut connection)
}
