//! What an operator does to events.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use sekali::identify::restore;
use sekali::store::{AcceptVariant, Erase, Redrive, ShowEvent};
use sekali::{Error, Status, Store};

use super::{Filter, One};
use crate::cli::{ConfigArgs, DONE, output};
use crate::run;

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
    pub(super) async fn run(self) -> anyhow::Result<u8> {
        let store = run::open_store(&self.config.load()?).await?;
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
    pub(super) async fn run(self) -> anyhow::Result<u8> {
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
    pub(super) async fn run(self) -> anyhow::Result<u8> {
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
    pub(super) async fn run(self) -> anyhow::Result<u8> {
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
