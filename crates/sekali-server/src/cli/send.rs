//! `sekali send`: signs events like their provider and sends them, also as a provider in trouble does.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use sekali::Clock;
use sekali_verify::{
    Json, Outgoing as Request, Place, Pointer, Preset, Prover, Scheme, Secret, Settings, Window,
};
use sha2::{Digest as _, Sha256};

use super::output;
use super::traffic::{Figures, Make, Outgoing, Pace, Target, progress, send};
use super::{ConfigArgs, DONE, FAILED};
use crate::config::resolve_secret;

/// Sign events and send them, as a provider would.
#[derive(Debug, Args)]
pub(crate) struct Send {
    #[command(flatten)]
    config: ConfigArgs,
    /// A file of events, one a line (.jsonl) or one in all; `-` reads lines from standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Take address, scheme and secret from this source of the config file
    #[arg(long, value_name = "ID", conflicts_with_all = ["url", "secret", "preset", "settings"], required_unless_present = "url")]
    source: Option<String>,
    /// Where to send, http://HOST:PORT/PATH
    #[arg(long, requires = "secret")]
    url: Option<String>,
    /// The URL as the receiver is known to its sender, where that is signed and differs
    #[arg(long, value_name = "URL", requires = "url")]
    public_url: Option<String>,
    /// The secret, env:NAME or file:PATH
    #[arg(long)]
    secret: Option<String>,
    /// Sign like this provider; `sekali providers` lists them
    #[arg(long, value_name = "NAME", conflicts_with = "scheme")]
    preset: Option<String>,
    /// A setting of the preset, NAME=VALUE
    #[arg(long = "setting", value_name = "NAME=VALUE", requires = "preset", value_parser = pair)]
    settings: Vec<(String, String)>,
    /// How to sign, for senders that are no provider's
    #[arg(long, default_value = "timestamped", value_parser = clap::builder::PossibleValuesParser::new(Scheme::generic_names()))]
    scheme: String,
    /// Where the event id is in the body
    #[arg(long, default_value = "/event_id", value_name = "POINTER")]
    id: Pointer,
    /// The header that repeats the event id; `none` for no header [default: X-Webhook-Id, or the preset's]
    #[arg(long, value_name = "NAME")]
    id_header: Option<String>,
    /// A further header, NAME:VALUE, such as the event's type
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Send each event this many times more
    #[arg(long, default_value_t = 0, value_name = "TIMES")]
    duplicates: usize,
    /// Send in a random order; the seed makes it the same again
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "0")]
    shuffle: Option<u64>,
    /// How many events a second; as fast as possible without
    #[arg(long, value_name = "PER_SECOND", value_parser = positive)]
    rate: Option<f64>,
    /// How many connections at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// Print the signed requests as JSON lines instead of sending them
    #[arg(long)]
    print: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| "a rate is above 0".to_owned())
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME:VALUE")?;
    let name = name
        .trim()
        .parse()
        .map_err(|_| format!("{name} is no header name"))?;
    let value = HeaderValue::from_str(value.trim());
    Ok((
        name,
        value.map_err(|_| "the value fits into no header".to_owned())?,
    ))
}

/// What signs the events.
struct Signer {
    prover: Prover,
    preset: Option<&'static Preset>,
    /// The URL as the receiver knows it, which may be signed.
    url: String,
}

impl Send {
    pub(crate) async fn run(self) -> anyhow::Result<u8> {
        let (target, signer) = self.signer()?;
        let bodies = read_bodies(&self.file)?;
        if bodies.is_empty() {
            bail!("{} holds no events", self.file.display());
        }
        let requests = self.requests(&signer, bodies)?;
        if self.print {
            return print_requests(&signer, requests);
        }
        let len = requests.len();
        let path = target.path().to_owned();
        let make: Make = Arc::new(move |index: usize| outgoing(&signer, &path, &requests[index]));
        let bar = progress(len);
        let started = Instant::now();
        let pace = Pace {
            concurrency: usize::from(self.concurrency),
            per_second: self.rate,
        };
        let replies = send(&target, (len, make), pace, &bar).await?;
        bar.finish_and_clear();
        let per_second = replies.len() as f64 / started.elapsed().as_secs_f64();
        let figures = Figures::of(&replies);
        self.print(&figures, replies.len(), per_second)?;
        let all_taken = replies.iter().all(|reply| {
            reply
                .status
                .is_some_and(|status| (200..300).contains(&status))
        });
        Ok(if all_taken { DONE } else { FAILED })
    }

    fn signer(&self) -> anyhow::Result<(Target, Signer)> {
        let Some(id) = &self.source else {
            let url = self.url.clone().unwrap_or_default();
            let secret = read_secret(self.secret.as_deref().unwrap_or_default())?;
            let (schemes, preset) = match &self.preset {
                Some(name) => {
                    let preset = Preset::find(name).with_context(|| {
                        format!("the preset {name} is unknown; `sekali providers` lists all")
                    })?;
                    (preset.schemes.clone(), Some(preset))
                }
                None => (
                    Scheme::generic(&self.scheme).cloned().into_iter().collect(),
                    None,
                ),
            };
            let mut settings = preset.map_or_else(Settings::default, Preset::defaults);
            for (name, value) in &self.settings {
                settings.insert(name, value);
            }
            let prover = Prover::new(&schemes, &[secret], settings, WINDOW)?;
            let target = Target::parse(&url)?;
            let url = self.public_url.clone().unwrap_or(url);
            return Ok((
                target,
                Signer {
                    prover,
                    preset,
                    url,
                },
            ));
        };
        let config = self.config.load()?;
        let sources = config.sources()?;
        let name = id.clone();
        let source = sources.get(id).ok_or(sekali::Error::NotFound {
            what: "source",
            name,
        })?;
        let prover = source
            .prover()
            .with_context(|| format!("source {id} is not signed; send with any HTTP client"))?;
        let address = format!("http://{}/hooks/{}", config.server.listen, source.path);
        let target = Target::parse(&address)?;
        let signer = Signer {
            prover: prover.clone(),
            preset: source.preset,
            url: source.public_url.clone().unwrap_or(address),
        };
        Ok((target, signer))
    }

    /// Makes what is signed and sent, in its order.
    fn requests(&self, signer: &Signer, bodies: Vec<Bytes>) -> anyhow::Result<Vec<Request>> {
        let id_header = self.id_header(signer.preset)?;
        let mut events = Vec::with_capacity(bodies.len() * (1 + self.duplicates));
        for body in bodies {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            if let Some(name) = &id_header {
                let id = match (event_id(&body, &self.id), signer.preset) {
                    (Some(id), _) => id,
                    (None, Some(_)) => format!("evt_{}", hex::encode(&Sha256::digest(&body)[..12])),
                    (None, None) => bail!("an event has no id at {}", self.id),
                };
                headers.insert(name, HeaderValue::from_str(&id)?);
            }
            for (name, value) in &self.headers {
                headers.insert(name, value.clone());
            }
            let event = Request::post(&signer.url, headers, body);
            events.extend(std::iter::repeat_n(event, 1 + self.duplicates));
        }
        if let Some(first) = events.first() {
            signer
                .prover
                .sign_request(first.clone(), Clock::System.now_ms())?;
        }
        if let Some(seed) = self.shuffle {
            fastrand::Rng::with_seed(seed).shuffle(&mut events);
        }
        Ok(events)
    }

    /// Finds the header that carries the event id beside the body, if there is one.
    fn id_header(&self, preset: Option<&Preset>) -> anyhow::Result<Option<HeaderName>> {
        match (self.id_header.as_deref(), preset) {
            (Some("none"), _) => Ok(None),
            (Some(name), _) => {
                let name = name
                    .parse()
                    .with_context(|| format!("{name} is no header name"));
                name.map(Some)
            }
            (None, None) => Ok(Some(HeaderName::from_static("x-webhook-id"))),
            (None, Some(preset)) => {
                let places = preset
                    .map
                    .event_id
                    .as_ref()
                    .map_or(&[][..], |ids| ids.places());
                Ok(places.iter().find_map(|place| match place {
                    Place::Header(name) => Some(name.clone()),
                    _ => None,
                }))
            }
        }
    }

    fn print(&self, figures: &Figures, count: usize, per_second: f64) -> anyhow::Result<()> {
        let [median, p99, longest] = figures.times.map(|time| time.as_secs_f64() * 1000.0);
        let answers = figures.answers.iter();
        if self.json {
            let answers: Vec<_> = answers
                .map(|((status, outcome), count)| serde_json::json!({ "status": status, "outcome": outcome, "count": count }))
                .collect();
            return output::json(&serde_json::json!({
                "sent": count, "per_second": per_second, "answers": answers,
                "median_ms": median, "p99_ms": p99, "longest_ms": longest,
            }));
        }
        let rows = answers.map(|((status, outcome), count)| {
            vec![
                status.map_or_else(|| "no answer".to_owned(), |status| status.to_string()),
                outcome.clone(),
                count.to_string(),
            ]
        });
        output::table(&["status", "outcome", "count"], rows.collect());
        output::line(&format!(
            "\n{count} sent, {per_second:.0} a second; answers took {median:.1} ms (median), {p99:.1} ms (99 %), {longest:.1} ms (longest)"
        ));
        Ok(())
    }
}

/// A sender needs no window: nothing is held against it.
const WINDOW: Window = Window {
    past_ms: 300_000,
    future_ms: 300_000,
};

/// Makes what signs with the scheme `timestamped`.
pub(super) fn standard_prover(secret: &str) -> anyhow::Result<Prover> {
    let secret = Secret::new(secret)?;
    Ok(Prover::new(
        &[Scheme::standard()],
        &[secret],
        Settings::default(),
        WINDOW,
    )?)
}

/// Signs a request now, for the path that it is sent to.
fn outgoing(signer: &Signer, path: &str, request: &Request) -> Outgoing {
    // The first one was signed before anything was sent, so that these can be.
    let signed = signer
        .prover
        .sign_request(request.clone(), Clock::System.now_ms());
    let signed = signed.unwrap_or_else(|_| request.clone());
    // What the provider adds to the URL: a token in the query or behind the path.
    let added = signed.url.strip_prefix(&signer.url).unwrap_or_default();
    Outgoing {
        path: (!added.is_empty()).then(|| format!("{path}{added}")),
        headers: signed.headers,
        body: signed.body,
        kind: "sent",
    }
}

fn print_requests(signer: &Signer, requests: Vec<Request>) -> anyhow::Result<u8> {
    for request in requests {
        let signed = signer
            .prover
            .sign_request(request, Clock::System.now_ms())?;
        let headers: serde_json::Map<String, serde_json::Value> = signed
            .headers
            .iter()
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into(),
                )
            })
            .collect();
        let line = serde_json::json!({
            "method": signed.method.as_str(), "url": signed.url, "headers": headers,
            "body": String::from_utf8_lossy(&signed.body),
        });
        output::line(&line.to_string());
    }
    Ok(DONE)
}

fn read_secret(reference: &str) -> anyhow::Result<Secret> {
    let bytes =
        resolve_secret(reference, Path::new("")).map_err(|problem| anyhow::anyhow!(problem))?;
    Secret::new(bytes).map_err(|problem| anyhow::anyhow!("{reference} {problem}"))
}

/// Reads the event id out of a body.
pub(super) fn event_id(body: &[u8], pointer: &Pointer) -> Option<String> {
    let json = Json::parse(body).ok()?;
    match json.get(pointer).ok()?? {
        Json::Number(number) => Some((*number).to_owned()),
        value => value.as_str().map(str::to_owned),
    }
}

fn read_bodies(file: &Path) -> anyhow::Result<Vec<Bytes>> {
    let mut text = Vec::new();
    let is_stdin = file.as_os_str() == "-";
    if is_stdin {
        std::io::stdin()
            .read_to_end(&mut text)
            .context("could not read standard input")?;
    } else {
        text = std::fs::read(file).with_context(|| format!("could not read {}", file.display()))?;
    }
    let has_lines = is_stdin
        || file
            .extension()
            .is_some_and(|extension| extension == "jsonl" || extension == "ndjson");
    if !has_lines {
        return Ok(vec![text.into()]);
    }
    let lines = text
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(Bytes::copy_from_slice)
        .collect())
}
