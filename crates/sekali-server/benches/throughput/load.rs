//! The load: signed events of about 1 KB over keep-alive connections, written as bytes so that sending costs little.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sekali::Clock;
use sekali_verify::{Prover, Scheme, Secret, Settings, Window};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const SECRET: &str = "bench-secret-for-loopback-only";
const CONNECTIONS: usize = 64;
const ENTITIES: usize = 10_000;

/// How event ids and entities follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Rising,
    Random,
}

/// One run of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) requests: usize,
    pub(crate) ids: Ids,
    /// As fast as possible without.
    pub(crate) per_second: Option<f64>,
    /// The number of the first event.
    pub(crate) first: usize,
}

/// What a run came to.
pub(crate) struct Done {
    pub(crate) took: Duration,
    times: Vec<Duration>,
}

impl Done {
    /// Returns the median, the 99th percentile and the longest.
    pub(crate) fn latencies(mut self) -> [Duration; 3] {
        self.times.sort_unstable();
        let last = self.times.len() - 1;
        [last / 2, last * 99 / 100, last].map(|place| self.times[place])
    }
}

impl Load {
    /// Sends all requests; any answer but 2xx is an error.
    pub(crate) async fn run(self) -> Result<Done, Box<dyn std::error::Error>> {
        let (next, started) = (Arc::new(AtomicUsize::new(0)), Instant::now());
        let mut lanes = tokio::task::JoinSet::new();
        for _ in 0..CONNECTIONS {
            let next = next.clone();
            lanes.spawn(async move {
                self.lane(&next, started)
                    .await
                    .map_err(|error| error.to_string())
            });
        }
        let mut times = Vec::with_capacity(self.requests);
        while let Some(lane) = lanes.join_next().await {
            times.extend(lane??);
        }
        Ok(Done {
            took: started.elapsed(),
            times,
        })
    }

    async fn lane(
        self,
        next: &AtomicUsize,
        started: Instant,
    ) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let window = Window {
            past_ms: 0,
            future_ms: 0,
        };
        let schemes = [Scheme::standard()];
        let prover = Prover::new(
            &schemes,
            &[Secret::new(SECRET)?],
            Settings::default(),
            window,
        )?;
        let (mut times, mut request, mut answer) =
            (Vec::new(), Vec::with_capacity(2048), vec![0; 4096]);
        let mut dice = fastrand::Rng::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= self.requests {
                return Ok(times);
            }
            let mut from = Instant::now();
            if let Some(per_second) = self.per_second {
                from = started + Duration::from_secs_f64(index as f64 / per_second);
                tokio::time::sleep_until(from.into()).await;
            }
            self.write(&mut request, &prover, self.first + index, &mut dice);
            stream.write_all(&request).await?;
            read_answer(&mut stream, &mut answer).await?;
            times.push(from.elapsed());
        }
    }

    fn write(
        &self,
        request: &mut Vec<u8>,
        prover: &Prover,
        number: usize,
        dice: &mut fastrand::Rng,
    ) {
        let id = match self.ids {
            Ids::Rising => format!("evt_{number:020}"),
            Ids::Random => format!("evt_{:016x}{:08x}", dice.u64(..), dice.u32(..)),
        };
        // Neighbours in time are about different entities, whatever their ids.
        let entity = number % ENTITIES;
        let body = bytes::Bytes::from(body(&id, entity, number));
        let headers = prover
            .sign(&body, Clock::System.now_ms())
            .unwrap_or_default();
        request.clear();
        request.extend_from_slice(b"POST /hooks/research HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        for (name, value) in &headers {
            request.extend_from_slice(name.as_str().as_bytes());
            request.extend_from_slice(b": ");
            request.extend_from_slice(value.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(
            format!(
                "x-webhook-id: {id}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            )
            .as_bytes(),
        );
        request.extend_from_slice(&body);
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

/// Reads one answer; its head says how long its body is.
async fn read_answer(
    stream: &mut TcpStream,
    buffer: &mut [u8],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut len = 0;
    loop {
        let read = stream.read(&mut buffer[len..]).await?;
        if read == 0 {
            return Err("the connection was closed".into());
        }
        len += read;
        let Some(head) = buffer[..len].windows(4).position(|end| end == b"\r\n\r\n") else {
            continue;
        };
        let text = std::str::from_utf8(&buffer[..head])?;
        if !text.starts_with("HTTP/1.1 2") {
            return Err(text.lines().next().unwrap_or_default().to_owned().into());
        }
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if len >= head + 4 + length.map_or(Ok(0), str::parse::<usize>)? {
            return Ok(());
        }
    }
}
