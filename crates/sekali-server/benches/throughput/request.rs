//! One delivery on the wire: a signed event of about 1 KB, written as bytes so that sending costs little, and its answer.

use sekali_verify::{Prover, Scheme, Secret, Settings, Window};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Result;

pub(crate) const SECRET: &str = "bench-secret-for-loopback-only";
/// How many entities the events are about; neighbours in time are about different ones, whatever their ids.
pub(crate) const ENTITIES: usize = 10_000;

/// How event ids follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Rising,
    Random,
}

/// An event; the same number gives the same one.
pub(crate) struct Event {
    pub(crate) id: String,
    body: bytes::Bytes,
}

impl Event {
    pub(crate) fn new(number: usize, ids: Ids) -> Self {
        let id = match ids {
            Ids::Rising => format!("evt_{number:020}"),
            Ids::Random => {
                let mut dice = fastrand::Rng::with_seed(number as u64);
                format!("evt_{:016x}{:08x}", dice.u64(..), dice.u32(..))
            }
        };
        let body = body(&id, number % ENTITIES, number);
        Self {
            id,
            body: body.into(),
        }
    }
}

/// Signs events.
pub(crate) struct Signer {
    prover: Prover,
}

impl Signer {
    pub(crate) fn new() -> Result<Self> {
        let window = Window {
            past_ms: 0,
            future_ms: 0,
        };
        let schemes = [Scheme::standard()];
        let secrets = [Secret::new(SECRET)?];
        Ok(Self {
            prover: Prover::new(&schemes, &secrets, Settings::default(), window)?,
        })
    }

    /// Writes a request over what the buffer had.
    pub(crate) fn write(&self, request: &mut Vec<u8>, event: &Event, now_ms: i64) {
        let headers = self.prover.sign(&event.body, now_ms).unwrap_or_default();
        request.clear();
        request.extend_from_slice(b"POST /hooks/research HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        for (name, value) in &headers {
            request.extend_from_slice(name.as_str().as_bytes());
            request.extend_from_slice(b": ");
            request.extend_from_slice(value.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        let (id, len) = (&event.id, event.body.len());
        let rest = format!("x-webhook-id: {id}\r\ncontent-length: {len}\r\n\r\n");
        request.extend_from_slice(rest.as_bytes());
        request.extend_from_slice(&event.body);
    }
}

fn body(id: &str, entity: usize, version: usize) -> String {
    format!(
        concat!(
            r#"{{"event_id":"{id}","event_type":"research.document.updated","occurred_at":"2026-08-25T10:15:30.{nanos:09}Z","#,
            r#""producer":"public-research-sync","entity":{{"entity_id":"doc_{entity:06}","entity_type":"research_document","#,
            r#""source_version":{version}}},"source":{{"url":"https://example.org/research/report-{entity}","title":"Research Report","#,
            r#""content_hash":"sha256:{version:064x}","published_at":"2026-08-24T21:00:00Z"}},"data":{{"summary":"{summary}","#,
            r#""authors":["A. Author","B. Author"],"citations":[{{"text":"A sentence that can be verified","#,
            r#""reference_url":"https://example.org/research/report-{entity}#section-2"}}]}}}}"#
        ),
        id = id,
        nanos = version % 1_000_000_000,
        entity = entity,
        version = version,
        summary = "What the report says, in some words. ".repeat(9),
    )
}

/// A keep-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: std::net::SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            answer: vec![0; 4096],
        })
    }

    /// Sends a request and returns the status of its answer, all of which is read.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<u16> {
        self.stream.write_all(request).await?;
        let mut len = 0;
        loop {
            let read = self.stream.read(&mut self.answer[len..]).await?;
            if read == 0 {
                return Err("the connection was closed, or an answer was too long".into());
            }
            len += read;
            if let Some(status) = status_of(&self.answer[..len])? {
                return Ok(status);
            }
        }
    }
}

/// Returns the status once the answer is complete: its head says how long it is, or that it comes in chunks.
fn status_of(answer: &[u8]) -> Result<Option<u16>> {
    let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") else {
        return Ok(None);
    };
    let mut lines = std::str::from_utf8(&answer[..head])?.split("\r\n");
    let status = lines.next().and_then(|line| line.get(9..12)?.parse().ok());
    let mut is_complete = true;
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("content-length") {
            is_complete = answer.len() >= head + 4 + value.parse::<usize>()?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            is_complete = answer.ends_with(b"\r\n0\r\n\r\n");
        }
    }
    let status = status.ok_or("an answer without a status")?;
    Ok(is_complete.then_some(status))
}
