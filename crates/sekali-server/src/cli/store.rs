//! `sekali check`, `migrate` and `prune`: the commands about the configuration and the database as a whole.

use anyhow::Context as _;
use clap::Args;
use sekali::store::CheckEffects;
use sekali::{Database, Source};

use super::{ConfigArgs, DONE, output};
use crate::config::{Config, LockConfig};
use crate::run;

/// Tells whether a configuration can be used: sources, secrets, and the effects against the database.
///
/// Nothing is changed: a database that is not there yet is tried out in the temporary folder.
pub(crate) async fn check(mut config: Config) -> anyhow::Result<u8> {
    let sources = config.sources()?;
    // What is wrong with its settings; that Redis is away is no error.
    let lock = config.lock.as_ref().map(LockConfig::start).transpose()?;
    let database = config.database()?;
    let trial = tempfile::tempdir().context("could not create a folder to try the database in")?;
    let is_new = matches!(&database, Database::Sqlite(path) if !path.exists());
    let store = match is_new {
        true => {
            config.store.url = Some(format!(
                "sqlite:{}",
                trial.path().join("trial.db").display()
            ));
            run::make_store(&config, false).await?
        }
        false => run::try_store(&config).await?,
    };
    for source in sources.iter() {
        for check in CheckEffects::of(source) {
            let checked = store.write(check).await;
            checked.context("a table that `store.setup` makes is there after `sekali migrate`")?;
        }
        describe(source);
        if config.server.public_url.is_none() && source.public_url.is_none() && source.signs_url() {
            output::line(
                "  its signatures cover the URL, which is taken from what the request says: set public_url",
            );
        }
    }
    let state = match is_new {
        true => "will be made",
        false => "reached",
    };
    output::line(&format!("database {database}: {state}"));
    if lock.is_some() {
        output::line("lock in Redis: set up; that Redis is away never fails a delivery");
    }
    output::line("the configuration can be used");
    Ok(DONE)
}

fn describe(source: &Source) {
    let guard = match source.has_replay_guard() {
        true => "replay guard on",
        false => "replay guard not needed",
    };
    let signed = match source.is_signed() {
        true => "signed",
        false => "NOT signed: anybody can send",
    };
    let (id, path, effects) = (&source.id, &source.path, source.effects.len());
    output::line(&format!(
        "source {id}: POST /hooks/{path}, {signed}, {guard}, {effects} effects"
    ));
}

/// Brings the database up to date and runs the set-up statements.
pub(crate) async fn migrate(config: Config) -> anyhow::Result<u8> {
    let store = run::make_store(&config, false).await?;
    output::line(&format!("database {}: schema up to date", store.database()));
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
        let store = run::open_store(&config).await?;
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
