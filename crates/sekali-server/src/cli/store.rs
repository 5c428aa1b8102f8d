//! `sekali check`, `migrate` and `prune`: the commands about the configuration and the database as a whole.

use clap::Args;
use sekali::store::CheckEffects;

use super::{ConfigArgs, DONE, output};
use crate::config::Config;
use crate::run;

/// Tells whether a configuration can be used: sources, secrets, and the effects against the database.
pub(crate) async fn check(config: Config) -> anyhow::Result<u8> {
    let sources = config.sources()?;
    let database = config.database()?;
    let store = run::open_store(&config, false).await?;
    for source in sources.iter() {
        for check in CheckEffects::of(source) {
            store.write(check).await?;
        }
        let guard = if source.has_replay_guard() {
            "replay guard on"
        } else {
            "replay guard not needed"
        };
        let signed = if source.is_signed() {
            "signed"
        } else {
            "NOT signed: anybody can send"
        };
        output::line(&format!(
            "source {}: POST /hooks/{}, {signed}, {guard}, {} effects",
            source.id,
            source.path,
            source.effects.len()
        ));
    }
    output::line(&format!(
        "database {}: schema up to date",
        database.display()
    ));
    output::line("the configuration can be used");
    Ok(DONE)
}

/// Brings the database up to date and runs the set-up statements.
pub(crate) async fn migrate(config: Config) -> anyhow::Result<u8> {
    let store = run::open_store(&config, false).await?;
    output::line(&format!(
        "database {}: schema up to date",
        store.path().display()
    ));
    Ok(DONE)
}

/// Remove what has outlived its retention, in small steps beside a running server.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl PruneArgs {
    pub(crate) async fn run(&self) -> anyhow::Result<u8> {
        let config = self.config.load()?;
        let store = run::open_store(&config, false).await?;
        let pruned = run::prune_all(&store, &config).await?;
        if self.json {
            output::json(&pruned)?;
            return Ok(DONE);
        }
        let rows = [
            ("payloads", pruned.payloads),
            ("variants", pruned.variants),
            ("deliveries", pruned.deliveries),
            ("attempts", pruned.attempts),
            ("keys", pruned.keys),
        ];
        output::table(
            &["removed", "rows"],
            rows.map(|(what, count)| vec![what.into(), count.to_string()])
                .into(),
        );
        Ok(DONE)
    }
}
