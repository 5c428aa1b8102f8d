//! The command line: what can be typed, and what the exit codes mean.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::config::{Config, environment};
use crate::role::Role;
use crate::run;

mod capture;
mod completions;
mod demo;
mod entities;
mod events;
mod handshakes;
mod init;
mod output;
mod providers;
mod send;
mod store;
mod traffic;
mod verify;

/// The command did what was asked.
const DONE: u8 = 0;
/// It could not: the message says why.
const FAILED: u8 = 1;

/// Receives webhooks and applies each of them once.
///
/// Exit codes: 0 done, 1 failed (the message says why), 2 wrong use of the command line, 3 nothing found under that
/// name, 4 not possible in the present state (already served, already finished, …).
#[derive(Debug, Parser)]
#[command(
    name = "sekali",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Which configuration a command works with.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The config file [default: sekali.toml, or the variable SEKALI_CONFIG]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgs {
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        let path = self
            .config
            .clone()
            .or_else(|| environment("SEKALI_CONFIG").map(PathBuf::from));
        Config::load(path.as_deref())
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Receive webhooks and apply them
    Serve {
        #[command(flatten)]
        config: ConfigArgs,
        /// Which part of the work this process does
        #[arg(long, value_enum, default_value_t)]
        role: Role,
    },
    /// Show everything on real data, in a new folder, without a config file
    Demo(demo::Demo),
    /// Write a config file with comments
    Init(init::Init),
    /// Tell whether a config file can be used
    Check {
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Bring the database up to date and run the set-up statements
    Migrate {
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Sign events and send them, as a provider would
    Send(send::Send),
    /// Tell whether a captured request verifies, and if not, why
    Verify(Box<verify::Verify>),
    /// List what providers asked beside sending events
    Handshakes(handshakes::Handshakes),
    /// List the providers that are known, or show everything about one
    Providers(providers::Providers),
    /// Look at events, and give them another try
    #[command(subcommand)]
    Events(events::Events),
    /// Look at entities, and clear their position
    #[command(subcommand)]
    Entities(entities::Entities),
    /// Remove what has outlived its retention
    Prune(store::PruneArgs),
    /// Write completions for a shell
    Completions(completions::Completions),
}

/// Parses the command line and runs the command.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("could not start")),
    };
    match runtime.block_on(dispatch(cli.command)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(&error),
    }
}

async fn dispatch(command: Command) -> anyhow::Result<u8> {
    match command {
        Command::Serve { config, role } => serve(config.load()?, role).await,
        Command::Demo(demo) => demo.run().await,
        Command::Init(init) => init.run(),
        Command::Check { config } => store::check(config.load()?).await,
        Command::Migrate { config } => store::migrate(config.load()?).await,
        Command::Send(send) => send.run().await,
        Command::Verify(verify) => verify.run().await,
        Command::Handshakes(handshakes) => handshakes.run().await,
        Command::Providers(providers) => providers.run(),
        Command::Events(events) => events.run().await,
        Command::Entities(entities) => entities.run().await,
        Command::Prune(prune) => prune.run().await,
        Command::Completions(completions) => completions.run(&mut Cli::command()),
    }
}

async fn serve(config: Config, role: Role) -> anyhow::Result<u8> {
    role.check(&config)?;
    crate::telemetry::start_logs(&config.log)?;
    let asked_to_stop = run::asked_to_stop()?;
    // The database first: that it is served already says more than that the address is taken.
    let mut asked_to_stop = std::pin::pin!(asked_to_stop);
    let store = tokio::select! {
        store = run::make_store(&config, true) => store?,
        () = &mut asked_to_stop => return Ok(DONE),
    };
    let listeners = run::Listeners::bind(&config, role).await?;
    run::run((config, role), store, listeners, asked_to_stop).await?;
    Ok(DONE)
}

/// Prints an error with its causes, and finds its exit code.
fn failed(error: &anyhow::Error) -> ExitCode {
    output::error(error);
    if error.downcast_ref().is_some_and(run::is_forbidden) {
        output::note(
            "  hint: the role in store.url lacks a right; the role that owns the tables has it",
        );
    }
    let code = match error.downcast_ref::<sekali::Error>() {
        Some(sekali::Error::NotFound { .. }) => 3,
        Some(sekali::Error::Conflict { .. }) => 4,
        _ => FAILED,
    };
    ExitCode::from(code)
}
