//! Sending webhooks over plain HTTP: keep-alive connections, a rate, and figures at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::net::TcpStream;

/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How much of an answer is read.
const MAX_ANSWER: usize = 64 * 1024;

/// Where webhooks are sent.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    authority: String,
    host: String,
    path: String,
}

impl Target {
    /// Gives the path and query that is sent to.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl Target {
    pub(crate) fn parse(url: &str) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("{url} is no URL"))?;
        if uri.scheme_str() != Some("http") {
            bail!("{url}: only http:// can be sent to; for https put a proxy in between");
        }
        let host = uri.host().context("the URL has no host")?.to_owned();
        let port = uri.port_u16().unwrap_or(80);
        let authority = format!("{host}:{port}");
        let host = match port {
            80 => host,
            _ => authority.clone(),
        };
        let path = uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        Ok(Self {
            authority,
            host,
            path,
        })
    }
}

/// One request, signed and ready.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The path and query, where it is not the target's.
    pub(crate) path: Option<String>,
    /// What it is, for the figures.
    pub(crate) kind: &'static str,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) kind: &'static str,
    /// `None` where there was no answer.
    pub(crate) status: Option<u16>,
    /// The outcome that a Sekali answer names.
    pub(crate) outcome: String,
    pub(crate) took: Duration,
}

/// How requests are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Connections at once.
    pub(crate) concurrency: usize,
    /// Requests a second in all; as fast as possible without.
    pub(crate) per_second: Option<f64>,
}

/// Makes the request at a place of the order, at the time when it is sent: a signed time must be fresh.
pub(crate) type Make = Arc<dyn Fn(usize) -> Outgoing + Send + Sync>;

/// Sends `len` requests in their order over some connections, and returns what came back.
pub(crate) async fn send(
    target: &Target,
    (len, make): (usize, Make),
    pace: Pace,
    progress: &ProgressBar,
) -> anyhow::Result<Vec<Reply>> {
    let (next, started) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut lanes = tokio::task::JoinSet::new();
    for _ in 0..pace.concurrency.max(1) {
        let (target, make, next, progress) =
            (target.clone(), make.clone(), next.clone(), progress.clone());
        lanes.spawn(async move {
            let (mut connection, mut replies) = (None, Vec::new());
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= len {
                    return replies;
                }
                if let Some(per_second) = pace.per_second {
                    let due = started + Duration::from_secs_f64(index as f64 / per_second);
                    tokio::time::sleep_until(due.into()).await;
                }
                replies.push(send_one(&mut connection, &target, &make(index)).await);
                progress.inc(1);
            }
        });
    }
    let mut replies = Vec::with_capacity(len);
    while let Some(lane) = lanes.join_next().await {
        replies.extend(lane.context("a connection's task failed")?);
    }
    Ok(replies)
}

type Connection = Option<SendRequest<Full<Bytes>>>;

async fn send_one(connection: &mut Connection, target: &Target, request: &Outgoing) -> Reply {
    let started = Instant::now();
    let exchange = tokio::time::timeout(ANSWER_WITHIN, exchange(connection, target, request)).await;
    let (status, outcome) = match exchange {
        Ok(Ok((status, outcome))) => (Some(status), outcome),
        Ok(Err(error)) => {
            *connection = None;
            (None, format!("{error:#}"))
        }
        Err(_) => {
            *connection = None;
            (None, "no answer in time".to_owned())
        }
    };
    Reply {
        kind: request.kind,
        status,
        outcome,
        took: started.elapsed(),
    }
}

async fn exchange(
    connection: &mut Connection,
    target: &Target,
    request: &Outgoing,
) -> anyhow::Result<(u16, String)> {
    // A connection that the server closed in between is opened again; the request was not read then.
    let is_usable = match connection.as_mut() {
        Some(open) => open.ready().await.is_ok(),
        None => false,
    };
    if !is_usable {
        *connection = Some(connect(target).await?);
    }
    let open = connection.as_mut().context("there is no connection")?;
    let path = request.path.as_deref().unwrap_or(&target.path);
    let mut message = Request::post(path).body(Full::new(request.body.clone()))?;
    message
        .headers_mut()
        .insert(http::header::HOST, HeaderValue::from_str(&target.host)?);
    message.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    for name in request.headers.keys() {
        message.headers_mut().remove(name);
    }
    for (name, value) in &request.headers {
        message.headers_mut().append(name, value.clone());
    }
    let response = open.send_request(message).await?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), MAX_ANSWER)
        .collect()
        .await
        .map_err(|error| anyhow::anyhow!(error))?;
    let answer: serde_json::Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    Ok((status, answer["outcome"].as_str().unwrap_or("-").to_owned()))
}

async fn connect(target: &Target) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(&target.authority)
        .await
        .with_context(|| format!("could not connect to {}", target.authority))?;
    stream.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Draws progress on a terminal, and nothing elsewhere.
pub(crate) fn progress(len: usize) -> ProgressBar {
    let bar = ProgressBar::new(len as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg:12} {bar:40} {pos}/{len} {per_sec} {eta}")
    {
        bar.set_style(style);
    }
    bar
}

/// Figures over what came back.
pub(crate) struct Figures {
    /// How often each status and outcome came.
    pub(crate) answers: BTreeMap<(Option<u16>, String), usize>,
    /// The median, the 99th percentile and the longest answer time.
    pub(crate) times: [Duration; 3],
}

impl Figures {
    pub(crate) fn of(replies: &[Reply]) -> Self {
        let mut answers = BTreeMap::new();
        for reply in replies {
            *answers
                .entry((reply.status, reply.outcome.clone()))
                .or_default() += 1;
        }
        let mut times: Vec<Duration> = replies.iter().map(|reply| reply.took).collect();
        times.sort_unstable();
        let at = |share: f64| {
            times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)))
        };
        let times = [0.5, 0.99, 1.0].map(|share| at(share).copied().unwrap_or_default());
        Self { answers, times }
    }
}
