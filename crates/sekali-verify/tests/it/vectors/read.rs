//! What is read out of a proven vector, and how it differs from what the vector states.

use bytes::Bytes;
use sekali_verify::{Element, EventIds, Json, Places, Scalar, View, all_hold, elements};
use serde_json::Value;

use super::{Case, text};

/// One event, as texts.
#[derive(Debug, Default)]
pub(super) struct Event {
    event_id: Option<String>,
    is_from_provider: bool,
    event_type: Option<String>,
    entity_id: Option<String>,
    ordering: Option<String>,
    occurred_at: Option<String>,
    is_time_readable: bool,
}

/// Reads every event of a body, or says why one has no id.
pub(super) fn events(case: &Case<'_>, body: &Bytes) -> Result<Vec<Event>, &'static str> {
    let request = case.request();
    let decode = case.preset.map.decode();
    let opening = decode.open(&request);
    let json = opening.json().ok();
    let found: Option<Vec<Element>> = match &json {
        Some(_) if !case.preset.batch.is_empty() && all_hold(&case.preset.batch_when, &request) => {
            elements(opening.document(), &case.preset.batch).unwrap()
        }
        _ => None,
    };
    let whole = View::whole(&case.headers, Some(request), &opening, body);
    let Some(found) = found else {
        let lineage: Vec<&Json<'_>> = json.iter().collect();
        return Ok(vec![one(case, whole, &lineage)?]);
    };
    let read = |element: &Element| {
        let lineage = element.lineage(json.as_ref().unwrap());
        let bytes = &opening.document()[element.bytes.clone()];
        one(case, whole.of_element(element, bytes), &lineage)
    };
    found.iter().map(read).collect()
}

fn one(case: &Case<'_>, view: View<'_>, lineage: &[&Json<'_>]) -> Result<Event, &'static str> {
    let map = &case.preset.map;
    let bytes = map.decode().inner_bytes(lineage.last().copied());
    let inner = bytes.as_deref().and_then(|bytes| Json::parse(bytes).ok());
    let view = view.with_json(lineage, inner.as_ref());
    let read = |places: &Option<Places>| -> Option<String> {
        let mut found = places.iter().flat_map(|places| &places.0);
        found.find_map(|place| {
            view.scalar(place)
                .unwrap_or(None)
                .as_ref()
                .map(Scalar::as_text)
                .map(str::to_owned)
        })
    };
    let ids = map.event_id.clone().unwrap_or_default();
    let places = Places(ids.places().to_vec());
    let event_id = read(&Some(places));
    if event_id.is_none() && ids != EventIds::Minted {
        return Err("missing_field");
    }
    let occurred_at = read(&map.occurred_at);
    let offset = map.time_offset.as_ref().map(|offset| offset.as_str());
    let unit = map.time_unit.unwrap_or_default();
    let is_time = |text: &String| sekali_verify::parse_any(text, unit, offset).is_some();
    Ok(Event {
        is_from_provider: event_id
            .as_ref()
            .is_some_and(|id| !id.starts_with("sha256:")),
        event_id,
        event_type: read(&map.event_type),
        entity_id: read(&map.entity_id),
        ordering: read(&map.version).or_else(|| occurred_at.clone()),
        is_time_readable: occurred_at.as_ref().is_none_or(is_time),
        occurred_at,
    })
}

pub(super) fn differences(vector: &Value, events: &[Event]) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(wanted) = vector["event_ids"].as_array() {
        let given: Vec<Option<&str>> = events
            .iter()
            .map(|event| event.event_id.as_deref())
            .collect();
        if *wanted != given.iter().map(|id| Value::from(*id)).collect::<Vec<_>>() {
            lines.push(format!("event_ids are {given:?} instead of {wanted:?}"));
        }
    }
    let Some(first) = events.first() else {
        return lines;
    };
    if !first.is_time_readable {
        lines.push(format!("the time {:?} cannot be read", first.occurred_at));
    }
    let is_batch_id = vector["event_ids"].is_array();
    let fields = [
        ("event_id", &first.event_id),
        ("event_type", &first.event_type),
        ("entity_id", &first.entity_id),
        ("ordering", &first.ordering),
        ("occurred_at", &first.occurred_at),
    ];
    for (name, given) in fields {
        // Okta's vector names the delivery's id beside the elements'.
        let is_stated = vector[name].is_string() && !(name == "event_id" && is_batch_id);
        if is_stated && given.as_deref() != vector[name].as_str() {
            lines.push(format!(
                "{name} is {given:?} instead of {:?}",
                text(vector, name)
            ));
        }
    }
    lines
}

impl Event {
    /// Tells whether the id is the provider's own and not made from the content.
    pub(super) fn has_own_id(&self) -> bool {
        self.is_from_provider
    }
}
