//! `sekali events`: lists, the whole story of an event, and another try for it.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use sekali::identify::restore;
use sekali::store::{
    AcceptVariant, Erase, EventFilter, EventRow, ListEvents, Redrive, ShowEvent, Story,
};
use sekali::{Error, Reason, Status, Store};

use super::output::{self, or_dash, time, time_ns};
use super::{ConfigArgs, DONE};
use crate::run;

/// Look at events, and give them another try.
#[derive(Debug, Subcommand)]
pub(crate) enum Events {
    /// List events, newest first
    List(List),
    /// Tell the whole story of an event
    Show(Show),
    /// Give events in the dead letter, or waiting for a retry, another try
    Redrive(RedriveArgs),
    /// Apply an event again; order and guards count as always
    Replay(Replay),
    /// Accept a variant as an event of its own
    Accept(Accept),
    /// Erase an event's content; its key stays, so that it never becomes new again
    Erase(EraseArgs),
}

impl Events {
    pub(crate) async fn run(self) -> anyhow::Result<u8> {
        match self {
            Self::List(args) => args.run().await,
            Self::Show(args) => args.run().await,
            Self::Redrive(args) => args.run().await,
            Self::Replay(args) => args.run().await,
            Self::Accept(args) => args.run().await,
            Self::Erase(args) => args.run().await,
        }
    }
}

/// Which events.
#[derive(Debug, Args)]
struct Filter {
    /// Only events of this source
    #[arg(long)]
    source: Option<String>,
    /// Only events that stand there: received, processed, failed, dead_letter, …
    #[arg(long, value_parser = parse_status)]
    status: Option<Status>,
    /// Only events whose id starts so
    #[arg(long, value_name = "PREFIX")]
    id: Option<String>,
    /// Only events of this entity
    #[arg(long, value_name = "ENTITY_ID")]
    entity: Option<String>,
    /// Only events of this type
    #[arg(long = "type", value_name = "EVENT_TYPE")]
    event_type: Option<String>,
}

fn parse_status(text: &str) -> Result<Status, String> {
    Status::from_code(text).ok_or_else(|| {
        let known: Vec<_> = Status::ALL.iter().map(|status| status.code()).collect();
        format!("there are {}", known.join(", "))
    })
}

impl Filter {
    fn page(&self, before_seq: Option<i64>, limit: i64) -> ListEvents {
        ListEvents {
            filter: EventFilter {
                source: self.source.clone(),
                status: self.status,
                id_prefix: self.id.clone(),
                entity_id: self.entity.clone(),
                event_type: self.event_type.clone(),
                before_seq,
                limit,
            },
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    filter: Filter,
    /// How many events at most
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=10_000))]
    limit: i64,
    /// Only events below this number: the next page
    #[arg(long, value_name = "NUMBER")]
    before: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    async fn run(self) -> anyhow::Result<u8> {
        let store = run::open_store(&self.config.load()?, false).await?;
        let events = store
            .read(self.filter.page(self.before, self.limit))
            .await?;
        if self.json {
            output::json(&events)?;
            return Ok(DONE);
        }
        let last = events.last().map(|event| event.seq);
        let full = events.len() as i64 == self.limit;
        let rows = events.iter().map(list_row).collect();
        output::table(
            &[
                "number", "event", "type", "entity", "version", "status", "reason", "received",
            ],
            rows,
        );
        if let (Some(last), true) = (last, full) {
            output::note(&format!("there may be more: --before {last}"));
        }
        Ok(DONE)
    }
}

fn list_row(event: &EventRow) -> Vec<String> {
    vec![
        format!("#{}", event.seq),
        event.event_id.clone(),
        event.event_type.clone(),
        event.entity_id.clone(),
        or_dash(event.source_version),
        event.status.clone(),
        or_dash(event.reason.as_deref()),
        time(event.received_at),
    ]
}

/// One event.
#[derive(Debug, Args)]
struct One {
    #[command(flatten)]
    config: ConfigArgs,
    /// The event's id, or `#` and its number
    id: String,
    /// The source, where the id alone is not enough
    #[arg(long)]
    source: Option<String>,
}

impl One {
    async fn find(&self) -> anyhow::Result<(Store, Story)> {
        let store = run::open_store(&self.config.load()?, false).await?;
        let story = store
            .read(ShowEvent {
                id: self.id.clone(),
                source: self.source.clone(),
            })
            .await?;
        Ok((store, story))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    one: One,
    /// Print the body, too
    #[arg(long)]
    body: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    async fn run(self) -> anyhow::Result<u8> {
        let (_, story) = self.one.find().await?;
        let body = story.body.as_deref().map(String::from_utf8_lossy);
        if self.json {
            let mut value = serde_json::to_value(&story)?;
            if let (true, Some(object)) = (self.body, value.as_object_mut()) {
                object.insert("body".into(), body.map(|body| body.into_owned()).into());
            }
            output::json(&value)?;
            return Ok(DONE);
        }
        tell(&story);
        if let (true, Some(body)) = (self.body, body) {
            output::line(&format!("\nBody\n{body}"));
        }
        Ok(DONE)
    }
}

/// Tells a story to a person.
fn tell(story: &Story) {
    let event = &story.event;
    let code = |reason: &Option<String>| {
        reason
            .as_deref()
            .and_then(Reason::from_code)
            .map_or("", Reason::sentence)
    };
    output::line(&format!(
        "Event {} (#{}) of source {}",
        event.event_id, event.seq, event.source
    ));
    let facts = [
        ("type", event.event_type.clone()),
        (
            "entity",
            format!("{} {}", event.entity_type, event.entity_id),
        ),
        ("version", or_dash(event.source_version)),
        ("occurred", or_dash(event.occurred_at.map(time_ns))),
        ("received", time(event.received_at)),
        ("finished", or_dash(event.processed_at.map(time))),
        (
            "signature",
            event
                .signature_valid
                .map_or(
                    "unsigned source",
                    |valid| if valid { "valid" } else { "wrong" },
                )
                .into(),
        ),
        ("content", or_dash(event.content_hash.as_deref())),
        ("comes from", or_dash(event.source_url.as_deref())),
        (
            "body",
            format!(
                "sha256:{}{}",
                event.payload_hash,
                if story.body.is_some() {
                    ""
                } else {
                    " (not kept any more)"
                }
            ),
        ),
        (
            "status",
            format!(
                "{} {}",
                event.status,
                event.reason.as_deref().unwrap_or_default()
            ),
        ),
        ("because", code(&event.reason).to_owned()),
        ("error", or_dash(event.error_message.as_deref())),
        ("next try", or_dash(event.next_attempt_at.map(time))),
    ];
    for (name, value) in facts
        .into_iter()
        .filter(|(_, value)| !value.trim().is_empty() && value != "-")
    {
        output::line(&format!("  {name:<11} {}", value.trim()));
    }
    output::line("\nDeliveries");
    let rows = story.deliveries.iter().map(|delivery| {
        vec![
            time(delivery.received_at),
            delivery.outcome.clone(),
            or_dash(delivery.reason.as_deref()),
            delivery.http_status.to_string(),
            or_dash(delivery.remote_address.as_deref()),
            format!("{} µs", delivery.duration_us),
        ]
    });
    output::table(
        &["received", "outcome", "reason", "answer", "from", "took"],
        rows.collect(),
    );
    tell_attempts(story);
    if !story.variants.is_empty() {
        output::line("\nOther content under this id (kept as evidence, not applied)");
        let rows = story.variants.iter().map(|variant| {
            let hash = format!("sha256:{}", variant.payload_hash);
            vec![
                variant.id.to_string(),
                hash,
                variant.seen.to_string(),
                time(variant.last_at),
                or_dash(variant.decision.as_deref()),
            ]
        });
        output::table(
            &["variant", "body", "seen", "last", "decision"],
            rows.collect(),
        );
    }
    if let Some(entity) = &story.entity {
        super::entities::tell(entity);
    }
}

fn tell_attempts(story: &Story) {
    output::line("\nAttempts");
    let rows = story.attempts.iter().map(|attempt| {
        let decisions = attempt
            .decisions
            .as_array()
            .into_iter()
            .flatten()
            .map(|decision| {
                let text = |name: &str| decision[name].as_str().unwrap_or_default().to_owned();
                format!(
                    "{}: {} {}",
                    text("effect"),
                    text("decision"),
                    text("reason")
                )
                .trim()
                .to_owned()
            });
        let decisions: Vec<_> = decisions.collect();
        let who = if attempt.attempt == 0 {
            "operator".to_owned()
        } else {
            attempt.attempt.to_string()
        };
        let why = attempt.message.clone().or(attempt.reason.clone());
        vec![
            time(attempt.started_at),
            who,
            attempt.status.clone(),
            or_dash(why),
            decisions.join("; "),
        ]
    });
    output::table(
        &["started", "attempt", "status", "why", "effects"],
        rows.collect(),
    );
}

#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Ids of events, or `#` and their numbers; without one, a filter chooses
    ids: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// Only say how many events it would be
    #[arg(long)]
    dry_run: bool,
}

impl RedriveArgs {
    async fn run(self) -> anyhow::Result<u8> {
        let store = run::open_store(&self.config.load()?, false).await?;
        if self.ids.is_empty() {
            return self.redrive_many(&store).await;
        }
        let mut seqs = Vec::new();
        for id in &self.ids {
            let story = store
                .read(ShowEvent {
                    id: id.clone(),
                    source: self.filter.source.clone(),
                })
                .await?;
            seqs.push(story.event.seq);
        }
        let count = if self.dry_run {
            seqs.len()
        } else {
            store.write(Redrive { seqs, force: false }).await?
        };
        say_redriven(count, self.dry_run);
        Ok(DONE)
    }

    async fn redrive_many(mut self, store: &Store) -> anyhow::Result<u8> {
        const PAGE: i64 = 200;
        match self.filter.status {
            None => self.filter.status = Some(Status::DeadLetter),
            Some(Status::DeadLetter | Status::Failed) => {}
            Some(status) => bail!(
                "events that are {status} need no other try; `events replay` applies one again"
            ),
        }
        let (mut count, mut before) = (0, None);
        loop {
            let page = store.read(self.filter.page(before, PAGE)).await?;
            let Some(last) = page.last() else { break };
            before = Some(last.seq);
            let seqs: Vec<i64> = page.iter().map(|event| event.seq).collect();
            count += if self.dry_run {
                seqs.len()
            } else {
                store.write(Redrive { seqs, force: false }).await?
            };
        }
        say_redriven(count, self.dry_run);
        Ok(DONE)
    }
}

fn say_redriven(count: usize, dry_run: bool) {
    let verb = if dry_run { "would get" } else { "get" };
    output::line(&format!("{count} events {verb} another try"));
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    one: One,
    /// Also where the event is finished
    #[arg(long)]
    force: bool,
}

impl Replay {
    async fn run(self) -> anyhow::Result<u8> {
        let (store, story) = self.one.find().await?;
        store
            .write(Redrive {
                seqs: vec![story.event.seq],
                force: self.force,
            })
            .await?;
        output::line(&format!(
            "{} is applied again; `sekali events show` tells what became of it",
            story.event.event_id
        ));
        Ok(DONE)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Accept {
    #[command(flatten)]
    one: One,
    /// The number of the variant, as `events show` gives it
    #[arg(long, value_name = "NUMBER")]
    variant: i64,
}

impl Accept {
    async fn run(self) -> anyhow::Result<u8> {
        let (store, story) = self.one.find().await?;
        let name = format!("{} of {}", self.variant, story.event.event_id);
        let variant = story
            .variants
            .iter()
            .find(|variant| variant.id == self.variant);
        let variant = variant.ok_or(Error::NotFound {
            what: "variant",
            name,
        })?;
        let sources = self.one.config.load()?.sources()?;
        let source = sources
            .get(&story.event.source)
            .with_context(|| format!("source {} is not configured", story.event.source))?;
        let delivery = restore(&Arc::clone(source), variant, &sekali::Clock::System)?;
        let event_id = delivery.event.event_id.clone();
        store
            .write(AcceptVariant {
                id: variant.id,
                event: Box::new(delivery),
            })
            .await?;
        output::line(&format!("the variant is the event {event_id} now"));
        Ok(DONE)
    }
}

#[derive(Debug, Args)]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    one: One,
    /// Erase without asking
    #[arg(long)]
    yes: bool,
}

impl EraseArgs {
    async fn run(self) -> anyhow::Result<u8> {
        if !self.yes {
            bail!("erasing cannot be undone; repeat the command with --yes");
        }
        let (store, story) = self.one.find().await?;
        store
            .write(Erase {
                seq: story.event.seq,
            })
            .await?;
        output::line(&format!(
            "the content of {} is erased; its key and hashes remain",
            story.event.event_id
        ));
        Ok(DONE)
    }
}
