//! The value of one column: out of the payload, a header or what identification found.

use sekali_verify::Json;

use super::{ColumnConfig, Failure};
use crate::identify::Lookup;
use crate::reason::Reason;
use crate::source::{EventField, FieldRef};
use crate::store::{Claimed, Kind, Value};

/// A value to write. Numbers that are no 64-bit integers stay text, digit by digit; lists and objects are JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
}

impl Cell {
    pub(crate) fn as_value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null(Kind::Text),
            Self::Int(value) => Value::Int(*value),
            Self::Text(text) => Value::Text(text),
        }
    }
}

/// Reads a column's value; the first place that holds one counts, and null only where no other place does.
pub(super) fn read(
    event: &Claimed,
    lookup: &Lookup<'_>,
    name: &str,
    column: &ColumnConfig,
) -> Result<Cell, Failure> {
    let mut found = column.optional.then_some(Cell::Null);
    for place in &column.from.0 {
        match read_place(event, lookup, place).map_err(|reason| failure(reason, name))? {
            Some(Cell::Null) => found = Some(Cell::Null),
            Some(cell) => return Ok(cell),
            None => {}
        }
    }
    found.ok_or_else(|| failure(Reason::FieldMissing, name))
}

/// Tells whether the place that counts for a column holds a text that cannot be written.
pub(super) fn is_unwritable(lookup: &Lookup<'_>, column: &ColumnConfig) -> bool {
    let counts = |place: &FieldRef| match place {
        FieldRef::Event(_) => Some(false),
        FieldRef::Place(place) => match lookup.view.json_at(place) {
            Ok(Some(json)) if *json != Json::Null => Some(cell(json).is_err()),
            Ok(Some(_)) | Err(_) => None,
            Ok(None) => lookup.scalar_at(place).ok().flatten().map(|_| false),
        },
    };
    column.from.0.iter().find_map(counts).unwrap_or(false)
}

fn failure(reason: Reason, column: &str) -> Failure {
    Failure {
        reason,
        message: format!("column {column}: {}", reason.sentence()),
        is_permanent: true,
    }
}

fn read_place(
    event: &Claimed,
    lookup: &Lookup<'_>,
    place: &FieldRef,
) -> Result<Option<Cell>, Reason> {
    match place {
        FieldRef::Event(field) => Ok(Some(event_field(event, *field))),
        FieldRef::Place(place) => {
            let json = lookup.view.json_at(place);
            match json.map_err(|_| Reason::DuplicateKey)? {
                Some(json) => cell(json).map(Some),
                None => Ok(lookup
                    .scalar_at(place)?
                    .map(|scalar| Cell::Text(scalar.as_text().to_owned()))),
            }
        }
    }
}

fn cell(json: &Json<'_>) -> Result<Cell, Reason> {
    Ok(match json {
        Json::Null => Cell::Null,
        Json::Bool(value) => Cell::Int(i64::from(*value)),
        Json::Number(text) => text
            .parse()
            .map_or_else(|_| Cell::Text((*text).to_owned()), Cell::Int),
        Json::String(_) => {
            let text = json
                .as_str()
                .filter(|text| !text.contains('\0'))
                .ok_or(Reason::FieldInvalid)?;
            Cell::Text(text.to_owned())
        }
        Json::Array(_) | Json::Object(_) => Cell::Text(json.to_string()),
    })
}

fn event_field(event: &Claimed, field: EventField) -> Cell {
    let text = |text: &str| Cell::Text(text.to_owned());
    let position = &event.position;
    match field {
        EventField::Id => text(&position.event_id),
        EventField::Type => text(&event.event_type),
        EventField::Scope => text(&event.scope),
        EventField::Source => text(&event.source),
        EventField::EntityType => text(&event.entity_type),
        EventField::EntityId => text(&event.entity_id),
        EventField::Version => position.version.map_or(Cell::Null, Cell::Int),
        EventField::OccurredAt => position
            .occurred_at
            .map_or(Cell::Null, |at| Cell::Text(instant(i128::from(at)))),
        EventField::ReceivedAt => Cell::Text(instant(i128::from(event.received_at) * 1_000_000)),
    }
}

/// Writes an instant as RFC 3339 text in UTC.
fn instant(nanoseconds: i128) -> String {
    jiff::Timestamp::from_nanosecond(nanoseconds)
        .map_or_else(|_| String::new(), |at| at.to_string())
}
