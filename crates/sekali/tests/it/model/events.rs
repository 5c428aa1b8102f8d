//! What the senders of a run have to say, and what must become of it.

use std::collections::{BTreeMap, BTreeSet};

/// A title that the user's table refuses.
const REFUSED: &str = "refused";
const ENTITIES: usize = 5;
const EVENTS: usize = 200;

/// One body: an event, or other content under its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) id: String,
    pub(super) entity: String,
    version: u32,
    is_delete: bool,
    pub(super) title: String,
}

impl Body {
    pub(super) fn json(&self) -> String {
        let kind = match self.is_delete {
            true => "doc.deleted",
            false => "doc.updated",
        };
        serde_json::json!({
            "id": self.id, "type": kind, "entity": self.entity, "version": self.version, "title": self.title,
        })
        .to_string()
    }

    /// Where it stands: the higher version, and of equal ones the higher id.
    fn position(&self) -> (u32, &[u8]) {
        (self.version, self.id.as_bytes())
    }

    fn is_refused(&self) -> bool {
        !self.is_delete && self.title == REFUSED
    }
}

/// All bodies of a run: of some events there are two.
pub(super) struct Events {
    bodies: Vec<Body>,
}

impl Events {
    pub(super) fn generate(dice: &mut fastrand::Rng) -> Self {
        let mut bodies = Vec::new();
        for number in 0..EVENTS {
            let body = Body {
                id: format!("{:04x}-{number}", dice.u16(..)),
                entity: format!("entity-{}", dice.usize(..ENTITIES)),
                version: dice.u32(..20),
                is_delete: dice.u8(..6) == 0,
                title: match dice.u8(..12) {
                    0 => REFUSED.to_owned(),
                    _ => format!("title {number}"),
                },
            };
            if dice.u8(..5) == 0 {
                let title = format!("another title {number}");
                bodies.push(Body {
                    title,
                    ..body.clone()
                });
            }
            bodies.push(body);
        }
        dice.shuffle(&mut bodies);
        Self { bodies }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Body> {
        self.bodies.iter()
    }

    pub(super) fn pick(&self, dice: &mut fastrand::Rng) -> Body {
        self.bodies[dice.usize(..self.bodies.len())].clone()
    }

    /// Lists the rows that the user's table has to have, as entity, event and title, where these bodies were stored.
    pub(super) fn expected(&self, stored: &BTreeSet<String>) -> BTreeMap<String, [String; 2]> {
        let mut greatest: BTreeMap<&str, &Body> = BTreeMap::new();
        let applied = self.bodies.iter().filter(|body| !body.is_refused());
        for body in applied.filter(|body| stored.contains(&body.json())) {
            let known = greatest.entry(&body.entity).or_insert(body);
            if known.position() < body.position() {
                *known = body;
            }
        }
        let left = greatest.into_iter().filter(|(_, body)| !body.is_delete);
        left.map(|(entity, body)| (entity.to_owned(), [body.id.clone(), body.title.clone()]))
            .collect()
    }

    /// Lists the bodies that must be in the dead letter unless a newer one came first.
    pub(super) fn refused(&self) -> BTreeSet<&str> {
        let refused = self.bodies.iter().filter(|body| body.is_refused());
        refused.map(|body| &*body.id).collect()
    }
}
