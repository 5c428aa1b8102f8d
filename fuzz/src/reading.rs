//! Reads everything that a map names out of a request, as if it had been proven.

use sekali_verify::{
    Decode, Element, Json, Map, Pattern, Place, Request, View, elements, parse_any,
};

/// More elements than these add nothing.
const MAX_READ: usize = 8;

/// Reads the whole request, and the elements of its batch.
pub fn read(map: &Map, batch: &[Pattern], request: &Request<'_>) {
    let decode = map.decode();
    let opening = decode.open(request);
    let json = opening.json().ok();
    let whole = View::whole(request.headers, Some(*request), &opening, request.body);
    let lineage: Vec<&Json<'_>> = json.iter().collect();
    let reader = Reader {
        map,
        decode: &decode,
        places: places(map),
    };
    reader.event(whole, &lineage);
    let Some(json) = &json else {
        return;
    };
    let found: Vec<Element> = match elements(opening.document(), batch) {
        Ok(found) => found.unwrap_or_default(),
        Err(_) => return,
    };
    for element in found.iter().take(MAX_READ) {
        let bytes = &opening.document()[element.bytes.clone()];
        let lineage = element.lineage(json);
        let alone = Json::parse(bytes).expect("an element is a value");
        assert_eq!(lineage.last(), Some(&&alone));
        reader.event(whole.of_element(element, bytes), &lineage);
    }
}

struct Reader<'m> {
    map: &'m Map,
    decode: &'m Decode,
    places: Vec<&'m Place>,
}

impl Reader<'_> {
    fn event(&self, view: View<'_>, lineage: &[&Json<'_>]) {
        let bytes = self.decode.inner_bytes(lineage.last().copied());
        let inner = bytes.as_deref().and_then(|bytes| Json::parse(bytes).ok());
        let view = view.with_json(lineage, inner.as_ref());
        let unit = self.map.time_unit.unwrap_or_default();
        let offset = self
            .map
            .time_offset
            .as_ref()
            .map_or("Z", |offset| offset.as_str());
        for place in &self.places {
            let _ = view.json_at(place);
            if let Ok(Some(scalar)) = view.scalar(place) {
                let _ = parse_any(scalar.as_text(), unit, Some(offset));
                if let Place::Join(pieces) = place {
                    let parts = view.join(pieces).ok().flatten().expect("it was just read");
                    assert_eq!(parts.concat(), scalar.as_text());
                }
            }
        }
    }
}

fn places(map: &Map) -> Vec<&Place> {
    let all = [
        &map.event_id_same_as,
        &map.scope,
        &map.event_type,
        &map.entity_type,
        &map.entity_id,
        &map.version,
        &map.occurred_at,
        &map.delivered_at,
        &map.producer,
        &map.source_url,
        &map.content_hash,
    ];
    let ids = map.event_id.iter().flat_map(|ids| ids.places());
    all.into_iter()
        .flatten()
        .flat_map(|places| &places.0)
        .chain(ids)
        .collect()
}
