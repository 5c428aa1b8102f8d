//! `sekali entities`: where an entity stands, its events and gaps, and a way to clear its position.

use anyhow::bail;
use clap::{Args, Subcommand};
use sekali::event::EntityKey;
use sekali::store::{EntityHistory, ResetEntity, ShowEntity};

use super::output::{self, or_dash, time, time_ns};
use super::{ConfigArgs, DONE};
use crate::run;

/// Look at entities, and clear their position.
#[derive(Debug, Subcommand)]
pub(crate) enum Entities {
    /// Show where an entity stands, its events and its gaps
    Show(Show),
    /// Clear an entity's position, so that a restored producer may start again from a lower version
    Reset(Reset),
}

impl Entities {
    pub(crate) async fn run(self) -> anyhow::Result<u8> {
        match self {
            Self::Show(args) => args.run().await,
            Self::Reset(args) => args.run().await,
        }
    }
}

/// One entity.
#[derive(Debug, Args)]
struct One {
    #[command(flatten)]
    config: ConfigArgs,
    /// The source's id
    source: String,
    /// The entity's type
    entity_type: String,
    /// The entity's id
    entity_id: String,
    /// The tenant, where the source maps one
    #[arg(long, default_value = "")]
    scope: String,
}

impl One {
    fn key(&self) -> EntityKey {
        EntityKey {
            source: self.source.as_str().into(),
            scope: self.scope.clone(),
            entity_type: self.entity_type.clone(),
            entity_id: self.entity_id.clone(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    one: One,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    async fn run(self) -> anyhow::Result<u8> {
        let store = run::open_store(&self.one.config.load()?).await?;
        let entity = store
            .read(ShowEntity {
                entity: self.one.key(),
            })
            .await?;
        match self.json {
            true => output::json(&entity)?,
            false => tell(&entity),
        }
        Ok(DONE)
    }
}

/// Tells about an entity to a person.
pub(super) fn tell(entity: &EntityHistory) {
    output::line(&format!(
        "\nEntity {} {} of source {}",
        entity.entity_type, entity.entity_id, entity.source
    ));
    let place = match (entity.version, entity.occurred_at) {
        (None, None) if entity.last_event_id.is_none() => "nowhere yet".to_owned(),
        (version, occurred_at) => format!(
            "version {}, {}",
            or_dash(version),
            or_dash(occurred_at.map(time_ns))
        ),
    };
    output::line(&format!(
        "  stands at   {place}{}",
        if entity.deleted { ", deleted" } else { "" }
    ));
    output::line(&format!(
        "  through     {}",
        or_dash(entity.last_event_id.as_deref())
    ));
    for gap in &entity.gaps {
        output::line(&format!(
            "  missing     versions {} to {}",
            gap.from, gap.to
        ));
    }
    let rows = entity.events.iter().map(|event| {
        vec![
            or_dash(event.source_version),
            event.event_id.clone(),
            event.event_type.clone(),
            event.status.clone(),
            or_dash(event.reason.as_deref()),
            or_dash(event.occurred_at.map(time_ns)),
            time(event.received_at),
        ]
    });
    output::table(
        &[
            "version", "event", "type", "status", "reason", "occurred", "received",
        ],
        rows.collect(),
    );
}

#[derive(Debug, Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    one: One,
    /// Reset without asking
    #[arg(long)]
    yes: bool,
}

impl Reset {
    async fn run(self) -> anyhow::Result<u8> {
        if !self.yes {
            bail!(
                "after a reset the next event is applied whatever its version; repeat the command with --yes"
            );
        }
        let store = run::open_store(&self.one.config.load()?).await?;
        store
            .write(ResetEntity {
                entity: self.one.key(),
            })
            .await?;
        output::line(&format!(
            "{} stands nowhere; its next event is applied whatever its version",
            self.one.entity_id
        ));
        Ok(DONE)
    }
}
