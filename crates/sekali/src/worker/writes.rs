//! The writes of a batch to the user's tables, gathered as long as their order is of no matter.
//!
//! Two writes may go together where they are of different entities and of different rows: nobody promised an order
//! between them. Whatever would follow on a write of its own entity, or of its own row, has the gathered ones go first.

use std::collections::HashSet;
use std::time::Duration;

use crate::effect::{Effect, Failure, Plan};
use crate::error::{Error, Result};
use crate::event::EntityKey;
use crate::reason::Reason;
use crate::store::{Conn, DbError, DbErrorKind, Interruption, Ran, Value};

const STEP: &str = "apply events";

/// Writes that wait to go to the database.
pub(super) struct Writes<'e> {
    timeout: Duration,
    gives_way_after: Duration,
    groups: Vec<Group<'e>>,
    entities: HashSet<&'e EntityKey>,
    rows: HashSet<(&'e str, Vec<String>)>,
    /// The events that have writes here, by their places in the batch.
    events: Vec<usize>,
}

/// Writes of one effect.
struct Group<'e> {
    effect: &'e Effect,
    is_guarded: bool,
    rows: Vec<Vec<Value<'e>>>,
}

impl<'e> Writes<'e> {
    pub(super) fn new(timeout: Duration, gives_way_after: Duration) -> Self {
        Self {
            timeout,
            gives_way_after,
            groups: Vec::new(),
            entities: HashSet::new(),
            rows: HashSet::new(),
            events: Vec::new(),
        }
    }

    /// Makes room for the writes of an event about an entity.
    pub(super) async fn begin(
        &mut self,
        conn: &mut Conn<'_>,
        entity: Option<&'e EntityKey>,
    ) -> Result<()> {
        if let Some(entity) = entity
            && !self.entities.insert(entity)
        {
            self.flush(conn).await?;
            self.entities.insert(entity);
        }
        Ok(())
    }

    /// Adds a write of the event at a place in the batch.
    pub(super) async fn add(
        &mut self,
        conn: &mut Conn<'_>,
        (index, effect, plan): (usize, &'e Effect, &'e Plan),
        is_guarded: bool,
    ) -> Result<()> {
        let row = plan.values();
        let key = effect
            .write()
            .key_of(&row)
            .iter()
            .map(|value| format!("{value:?}"));
        let key = (effect.table(), key.collect::<Vec<_>>());
        let is_same = |group: &Group<'_>| {
            std::ptr::eq(group.effect, effect) && group.is_guarded == is_guarded
        };
        let is_near = |group: &Group<'_>| group.effect.table() == effect.table() && !is_same(group);
        if self.rows.contains(&key) || self.groups.iter().any(is_near) {
            self.flush(conn).await?;
        }
        self.rows.insert(key);
        if self.events.last() != Some(&index) {
            self.events.push(index);
        }
        match self.groups.iter_mut().find(|group| is_same(group)) {
            Some(group) => group.rows.push(row),
            None => self.groups.push(Group {
                effect,
                is_guarded,
                rows: vec![row],
            }),
        }
        Ok(())
    }

    /// Has the gathered writes done.
    pub(super) async fn flush(&mut self, conn: &mut Conn<'_>) -> Result<()> {
        self.entities.clear();
        if self.groups.is_empty() {
            return Ok(());
        }
        self.rows.clear();
        let events = std::mem::take(&mut self.events);
        conn.guard(self.timeout, self.gives_way_after);
        for group in std::mem::take(&mut self.groups) {
            let write = group.effect.write();
            let ran = write.run(conn, &group.rows, group.is_guarded).await;
            let Some(failure) = failure(conn, group.effect, ran)? else {
                continue;
            };
            return Err(match events[..] {
                [index] => Error::Effect { index, failure },
                _ => Error::Together { failure },
            });
        }
        conn.unguard();
        Ok(())
    }
}

/// Tells what a write means for its event; what was only in the way of another transaction means nothing for it.
fn failure(
    conn: &mut Conn<'_>,
    effect: &Effect,
    ran: Result<Ran, DbError>,
) -> Result<Option<Failure>> {
    let (reason, is_permanent, message) = match ran {
        Ok(Ran::Done) => return Ok(None),
        Ok(Ran::MetGuard) => (
            Reason::WriteGuard,
            true,
            Reason::WriteGuard.sentence().to_owned(),
        ),
        Err(error) => {
            let (reason, is_permanent) = match (error.kind(), conn.unguard()) {
                (DbErrorKind::Contended, _) => {
                    return Err(Error::Store {
                        step: STEP,
                        source: error,
                    });
                }
                (DbErrorKind::Constraint, _) => (Reason::Constraint, true),
                (DbErrorKind::Interrupted, Some(Interruption::GaveWay)) => {
                    (Reason::Preempted, false)
                }
                (DbErrorKind::Interrupted, _) => (Reason::EffectTimeout, false),
                (DbErrorKind::Other | DbErrorKind::Unavailable | DbErrorKind::Forbidden, _) => {
                    (Reason::EffectFailed, false)
                }
            };
            (reason, is_permanent, error.to_string())
        }
    };
    Ok(Some(Failure {
        reason,
        message: format!("{}: {message}", effect.name()),
        is_permanent,
    }))
}
