//! `sekali send`: signs events like their provider and sends them, also as a provider in trouble does.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::Args;
use http::{HeaderName, HeaderValue};
use sekali::Clock;
use sekali_verify::{Json, Pointer, Scheme, Secret};

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
    #[arg(long, value_name = "ID", conflicts_with_all = ["url", "secret"], required_unless_present = "url")]
    source: Option<String>,
    /// Where to send, http://HOST:PORT/PATH
    #[arg(long, requires = "secret")]
    url: Option<String>,
    /// The secret, env:NAME or file:PATH
    #[arg(long)]
    secret: Option<String>,
    /// How to sign
    #[arg(long, default_value = "timestamped", value_parser = clap::builder::PossibleValuesParser::new(Scheme::presets()))]
    scheme: String,
    /// Where the event id is in the body
    #[arg(long, default_value = "/event_id", value_name = "POINTER")]
    id: Pointer,
    /// The header that repeats the event id; `none` for no header
    #[arg(long, default_value = "X-Webhook-Id", value_name = "NAME")]
    id_header: String,
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

/// What signs the events.
struct Signer {
    scheme: Scheme,
    secret: Secret,
}

impl Send {
    pub(crate) async fn run(self) -> anyhow::Result<u8> {
        let (target, signer) = self.signer()?;
        let bodies = read_bodies(&self.file)?;
        if bodies.is_empty() {
            bail!("{} holds no events", self.file.display());
        }
        let (len, make) = self.requests(signer, bodies)?;
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
            let (url, secret) = (
                self.url.as_deref().unwrap_or_default(),
                self.secret.as_deref().unwrap_or_default(),
            );
            let secret = read_secret(secret, Path::new(""))?;
            let scheme = Scheme::preset(&self.scheme)
                .context("the scheme is unknown")?
                .clone();
            return Ok((Target::parse(url)?, Signer { scheme, secret }));
        };
        let config = self.config.load()?;
        let sources = config.sources()?;
        let name = id.clone();
        let source = sources.get(id).ok_or(sekali::Error::NotFound {
            what: "source",
            name,
        })?;
        let scheme = source
            .scheme()
            .with_context(|| format!("source {id} is not signed; send with any HTTP client"))?;
        let secret = config
            .source
            .iter()
            .find(|source| source.id == *id)
            .and_then(|source| source.secrets.last());
        let secret = read_secret(
            &secret.context("the source has no secret")?.from,
            &config.folder,
        )?;
        let url = format!("http://{}/hooks/{}", config.server.listen, source.path);
        Ok((
            Target::parse(&url)?,
            Signer {
                scheme: scheme.clone(),
                secret,
            },
        ))
    }

    fn requests(&self, signer: Signer, bodies: Vec<Bytes>) -> anyhow::Result<(usize, Make)> {
        let id_header: Option<HeaderName> = match self.id_header.as_str() {
            "none" => None,
            name => Some(
                name.parse()
                    .with_context(|| format!("{name} is no header name"))?,
            ),
        };
        let mut events = Vec::with_capacity(bodies.len() * (1 + self.duplicates));
        for body in bodies {
            let id = id_header.as_ref().map(|name| {
                let id = event_id(&body, &self.id)
                    .with_context(|| format!("an event has no id at {}", self.id))?;
                anyhow::Ok((name.clone(), HeaderValue::from_str(&id)?))
            });
            let event = (id.transpose()?, body);
            events.extend(std::iter::repeat_n(event, 1 + self.duplicates));
        }
        if let Some(seed) = self.shuffle {
            fastrand::Rng::with_seed(seed).shuffle(&mut events);
        }
        let len = events.len();
        let make = move |index: usize| {
            let (id, body): &(Option<_>, Bytes) = &events[index];
            let mut headers = signer
                .scheme
                .sign(&signer.secret, body, Clock::System.now_ms());
            headers.extend(id.clone());
            Outgoing {
                headers,
                body: body.clone(),
                kind: "sent",
            }
        };
        Ok((len, Arc::new(make)))
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

fn read_secret(reference: &str, folder: &Path) -> anyhow::Result<Secret> {
    let bytes = resolve_secret(reference, folder).map_err(|problem| anyhow::anyhow!(problem))?;
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
