//! Requests that nobody signed, against every preset: none is ever taken, and nothing panics on the way.
#![no_main]

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use libfuzzer_sys::fuzz_target;
use sekali_verify::{
    Element, Json, KeyDocument, KeyDocuments, Preset, Prove as _, Prover, Request, Secret, Settings,
    View, Window, elements,
};

/// A preset with secrets that no input contains.
struct Case {
    preset: &'static Preset,
    prover: Prover,
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| Preset::all().map(case).collect());

fn case(preset: &'static Preset) -> Case {
    let texts = [
        "fake-9f8b1c7d2e6a4f50",
        "whsec_nHq0uYp2s1rVb3xkT5wZ8aC7dE9fG0hJ",
        "9f8b1c7d2e6a4f509f8b1c7d2e6a4f509f8b1c7d2e6a4f509f8b1c7d2e6a4f50",
    ];
    let mut settings: Settings = preset.defaults();
    for name in preset.settings.keys() {
        settings.insert(name, "fake-setting");
    }
    let window = Window {
        past_ms: i64::MAX,
        future_ms: i64::MAX,
    };
    let make = |text: &&str| {
        let secret = Secret::new(*text).expect("long enough");
        Prover::new(&preset.schemes, &[secret], settings.clone(), window).ok()
    };
    let without = || Prover::new(&preset.schemes, &[], settings.clone(), window).expect("no secret");
    let prover = texts.iter().find_map(make).unwrap_or_else(without);
    Case { preset, prover }
}

/// Answers every key address with the same bytes.
struct Documents<'d>(&'d [u8]);

impl KeyDocuments for Documents<'_> {
    fn find(&self, _: &KeyDocument) -> Option<Bytes> {
        (!self.0.is_empty()).then(|| Bytes::copy_from_slice(self.0))
    }
}

/// Splits the input: a line with preset, method and URL, lines of headers, an empty line, the body.
fn parts(data: &[u8]) -> Option<(usize, Method, String, HeaderMap, Bytes)> {
    let (&number, rest) = data.split_first()?;
    let end = rest.windows(2).position(|pair| pair == b"\n\n").unwrap_or(rest.len());
    let head = String::from_utf8_lossy(&rest[..end]).into_owned();
    let body = Bytes::copy_from_slice(rest.get(end + 2..).unwrap_or_default());
    let mut lines = head.lines();
    let mut first = lines.next()?.splitn(2, ' ');
    let method = first.next()?.parse().unwrap_or(Method::POST);
    let url = first.next().unwrap_or("https://hooks.example.test/hooks/x").to_owned();
    let mut headers = HeaderMap::new();
    for line in lines.take(64) {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let pair = (name.trim().parse::<HeaderName>(), HeaderValue::from_str(value.trim()));
        if let (Ok(name), Ok(value)) = pair {
            headers.append(name, value);
        }
    }
    Some((usize::from(number), method, url, headers, body))
}

fuzz_target!(|data: &[u8]| {
    let Some((number, method, url, headers, body)) = parts(data) else {
        return;
    };
    let case = &CASES[number % CASES.len()];
    let request = Request {
        method: &method,
        url: &url,
        tail: "0000-0001/updated",
        headers: &headers,
        body: &body,
    };
    let documents = Documents(&body);
    let now_ms = 1_767_225_600_000;
    let verified = case.prover.verify(&request, now_ms, &documents);
    assert!(verified.is_err(), "{} took what nobody signed", case.preset.name);
    if let Some(handshake) = case.prover.handshake(&case.preset.handshakes, &request)
        && !handshake.is_verified()
    {
        let _ = case.prover.answer(handshake, &request, now_ms, &documents);
    }
    read(case.preset, &request);
});

/// Reads everything that the preset maps, as if the request had been proven.
fn read(preset: &Preset, request: &Request<'_>) {
    let decode = preset.map.decode();
    let opening = decode.open(request);
    let json = opening.json().ok();
    let whole = View::whole(request.headers, Some(*request), &opening, request.body);
    let found: Vec<Element> = match &json {
        Some(_) => elements(opening.document(), &preset.batch).ok().flatten().unwrap_or_default(),
        None => Vec::new(),
    };
    let places = [&preset.map.event_type, &preset.map.entity_id, &preset.map.version, &preset.map.occurred_at];
    let ids = preset.map.event_id.iter().flat_map(|ids| ids.places());
    let all: Vec<_> = places.into_iter().flatten().flat_map(|places| &places.0).chain(ids).collect();
    let look = |view: View<'_>, lineage: &[&Json<'_>]| {
        let bytes = decode.inner_bytes(lineage.last().copied());
        let inner = bytes.as_deref().and_then(|bytes| Json::parse(bytes).ok());
        let view = view.with_json(lineage, inner.as_ref());
        for place in &all {
            if let Ok(Some(scalar)) = view.scalar(place) {
                let unit = preset.map.time_unit.unwrap_or_default();
                let _ = sekali_verify::parse_any(scalar.as_text(), unit, Some("Z"));
            }
        }
    };
    look(whole, &json.iter().collect::<Vec<_>>());
    for element in found.iter().take(4) {
        let Some(json) = &json else { continue };
        let bytes = &opening.document()[element.bytes.clone()];
        look(whole.of_element(element, bytes), &element.lineage(json));
    }
}
