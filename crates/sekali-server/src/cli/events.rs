//! `sekali events`: lists, the whole story of an event, and another try for it.

use clap::{Args, Subcommand};
use sekali::store::{EventFilter, EventRow, ListEvents, ShowEvent, Story};
use sekali::{Status, Store};

use super::output::{self, or_dash, time};
use super::{ConfigArgs, DONE};
use crate::run;

mod act;
mod story;

use act::{Accept, EraseArgs, RedriveArgs, Replay};
use story::Show;

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
        let store = run::open_store(&self.config.load()?).await?;
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
        let store = run::open_store(&self.config.load()?).await?;
        let story = store
            .read(ShowEvent {
                id: self.id.clone(),
                source: self.source.clone(),
            })
            .await?;
        Ok((store, story))
    }
}
