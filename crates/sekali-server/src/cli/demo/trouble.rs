//! What a provider in trouble sends, and what somebody on the way adds to it.

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use sekali::Clock;
use sekali_verify::{Pointer, Prover};

use super::super::send::event_id;
use super::super::send::standard_prover;
use super::super::traffic::Outgoing;

/// Obviously no secret of anybody's.
const SECRET: &str = "demo-secret-for-loopback-only";
const WRONG_SECRET: &str = "another-secret-of-a-stranger";
const ID_HEADER: HeaderName = HeaderName::from_static("x-webhook-id");
const HOUR_MS: i64 = 3600 * 1000;

/// Every kind of request, in the order of the table, with what its answer means.
pub(super) const KINDS: &[(&str, &str)] = &[
    ("event", "stored once, applied in order"),
    ("duplicate", "known: answered, not applied again"),
    ("parallel twin", "known, whichever of the two came first"),
    ("late event", "stored; older versions are ignored"),
    (
        "retry with its first timestamp",
        "out of the window, but known with equal content",
    ),
    (
        "replay of a captured request",
        "known: answered, not applied again",
    ),
    (
        "replay under another id",
        "the id in the header is not the signed one",
    ),
    ("other body, known id", "kept as evidence, not applied"),
    ("forged", "no secret of ours"),
    ("tampered", "the signature is of other bytes"),
    ("expired", "signed an hour ago, and unknown"),
];

/// The requests of a run.
pub(super) struct Trouble {
    events: Vec<(String, Bytes)>,
    sender: Prover,
    forger: Prover,
    requests: Vec<Outgoing>,
    with_variants: String,
}

impl Trouble {
    pub(super) fn new(lines: &str, seed: u64) -> anyhow::Result<Self> {
        let pointer: Pointer = "/event_id".parse()?;
        let event = |line: &str| {
            let id = event_id(line.as_bytes(), &pointer).context("an event has no id")?;
            anyhow::Ok((id, Bytes::copy_from_slice(line.as_bytes())))
        };
        let events = lines
            .lines()
            .map(event)
            .collect::<anyhow::Result<Vec<_>>>()?;
        let mut trouble = Self {
            events,
            sender: standard_prover(SECRET)?,
            forger: standard_prover(WRONG_SECRET)?,
            requests: Vec::new(),
            with_variants: String::new(),
        };
        trouble.make(&mut fastrand::Rng::with_seed(seed))?;
        Ok(trouble)
    }

    pub(super) fn secret(&self) -> &'static str {
        SECRET
    }

    pub(super) fn events(&self) -> usize {
        self.events.len()
    }

    pub(super) fn requests(&self) -> Vec<Outgoing> {
        self.requests.clone()
    }

    pub(super) fn an_event_with_variants(&self) -> &str {
        &self.with_variants
    }

    fn signed(&self, kind: &'static str, (id, body): &(String, Bytes), at_ms: i64) -> Outgoing {
        let mut headers = self.sender.sign(body, at_ms).unwrap_or_default();
        headers.extend(HeaderValue::from_str(id).ok().map(|id| (ID_HEADER, id)));
        Outgoing {
            headers,
            body: body.clone(),
            path: None,
            kind,
        }
    }

    /// Makes all requests: first what comes in any order, then what only makes sense once the event is known.
    fn make(&mut self, dice: &mut fastrand::Rng) -> anyhow::Result<()> {
        let now_ms = Clock::System.now_ms();
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        dice.shuffle(&mut order);
        // Each tenth event is late: it comes after everything else that is new.
        let (late, early) = order.split_at(order.len() / 10);
        let mut first = Vec::new();
        for index in early {
            let event = &self.events[*index];
            first.push(self.signed("event", event, now_ms));
            if dice.u8(..) < 40 {
                // Next to each other in the line, so that two connections send them at the same moment.
                first.push(self.signed("parallel twin", event, now_ms));
            }
        }
        let mut strangers = Vec::new();
        for _ in 0..40 {
            let event = &self.events[dice.usize(..self.events.len())];
            strangers.push(self.forged(event, now_ms)?);
            strangers.push(self.tampered(event, now_ms));
            strangers.push(self.expired(event, now_ms - HOUR_MS));
        }
        for request in strangers {
            first.insert(dice.usize(..first.len()), request);
        }
        let late: Vec<_> = late
            .iter()
            .map(|index| self.signed("late event", &self.events[*index], now_ms))
            .collect();
        let mut again = Vec::new();
        for _ in 0..150 {
            again.push(self.again(&order, dice, now_ms));
        }
        for place in 0..20 {
            let event = &self.events[order[order.len() - 1 - place]];
            again.push(self.other_body(event, now_ms));
            again.push(self.under_another_id(event, now_ms));
            self.with_variants.clone_from(&event.0);
        }
        dice.shuffle(&mut again);
        self.requests = first.into_iter().chain(late).chain(again).collect();
        Ok(())
    }

    /// One more delivery of an event that is known by then.
    fn again(&self, order: &[usize], dice: &mut fastrand::Rng, now_ms: i64) -> Outgoing {
        let (id, body) = &self.events[order[dice.usize(..order.len())]];
        match dice.u8(..) % 4 {
            0 => self.signed(
                "retry with its first timestamp",
                &(id.clone(), body.clone()),
                now_ms - HOUR_MS,
            ),
            1 => self.signed(
                "replay of a captured request",
                &(id.clone(), body.clone()),
                now_ms,
            ),
            2 => {
                // Delivered again by a sender that writes its JSON anew: other bytes, the same content.
                let text = String::from_utf8_lossy(body).replacen(
                    '{',
                    "{ \"delivered_at\": \"2026-08-25T10:15:35Z\", ",
                    1,
                );
                self.signed("duplicate", &(id.clone(), text.into()), now_ms)
            }
            _ => self.signed("duplicate", &(id.clone(), body.clone()), now_ms),
        }
    }

    fn forged(&self, (id, body): &(String, Bytes), now_ms: i64) -> anyhow::Result<Outgoing> {
        let body = newer(body);
        let mut headers = self.forger.sign(&body, now_ms)?;
        headers.insert(ID_HEADER, HeaderValue::from_str(&format!("{id}_forged"))?);
        Ok(Outgoing {
            headers,
            body,
            path: None,
            kind: "forged",
        })
    }

    fn tampered(&self, event: &(String, Bytes), now_ms: i64) -> Outgoing {
        Outgoing {
            body: newer(&event.1),
            ..self.signed("tampered", event, now_ms)
        }
    }

    fn expired(&self, (id, body): &(String, Bytes), at_ms: i64) -> Outgoing {
        let unknown = format!("{id}_expired");
        let body = String::from_utf8_lossy(&newer(body)).replace(id.as_str(), &unknown);
        self.signed("expired", &(unknown, body.into()), at_ms)
    }

    fn other_body(&self, (id, body): &(String, Bytes), now_ms: i64) -> Outgoing {
        self.signed("other body, known id", &(id.clone(), newer(body)), now_ms)
    }

    fn under_another_id(&self, (id, body): &(String, Bytes), now_ms: i64) -> Outgoing {
        self.signed(
            "replay under another id",
            &(format!("{id}_again"), body.clone()),
            now_ms,
        )
    }
}

/// Makes a body that would change the document for good if it were ever applied.
fn newer(body: &Bytes) -> Bytes {
    String::from_utf8_lossy(body)
        .replacen("\"source_version\":", "\"source_version\":9", 1)
        .into()
}
