//! `sekali demo`: the main job on real data, as a provider in trouble would bring it.
//!
//! The real server is started on loopback in a new folder. 400 update events of public research datasets are sent with
//! duplicates, parallel twins, late, replayed, forged, tampered and expired requests and with other bodies under known
//! ids, all in a random order. In the end the user's table must hold exactly the expected documents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use sekali::Store;
use sekali::store::ReadDepth;
use tokio::sync::oneshot;

use super::output;
use super::traffic::{Pace, Target, progress, send};
use super::{DONE, FAILED};
use crate::config::Config;
use crate::role::Role;
use crate::run;

mod check;
mod trouble;

use check::{expected, report};
use trouble::Trouble;

const CONFIG: &str = include_str!("../../../../examples/research-sync/sekali.toml");
const SCHEMA: &str = include_str!("../../../../examples/research-sync/schema.sql");
const EVENTS: &str = include_str!("../../../../fixtures/research-events.jsonl");
const EXPECTED: &str = include_str!("../../../../fixtures/research-events.final.json");

/// How long applying what was accepted may take.
const APPLIED_WITHIN: Duration = Duration::from_secs(60);

/// Show everything on real data, in a new folder, without a config file.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Leave the server running at the end, and say what to look at
    #[arg(long)]
    keep: bool,
    /// The order of the requests; another seed is another order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to work; a new folder in the temporary folder without it
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// A server that runs beside the demo.
struct Running {
    store: Store,
    url: String,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl Demo {
    pub(crate) async fn run(self) -> anyhow::Result<u8> {
        let folder = self.folder()?;
        let trouble = Trouble::new(EVENTS, self.seed)?;
        let running = start(&folder, trouble.secret()).await?;
        output::line(&format!(
            "A receiver runs at {} and keeps its data in {}.",
            running.url,
            folder.display()
        ));
        output::line(&format!(
            "A provider in trouble sends {} real events about {} research documents to it …\n",
            trouble.events(),
            expected()?.len()
        ));
        let target = Target::parse(&running.url)?;
        let requests = trouble.requests();
        let bar = progress(requests.len());
        let (len, make) = (
            requests.len(),
            std::sync::Arc::new(move |index: usize| requests[index].clone()),
        );
        let replies = send(
            &target,
            (len, make),
            Pace {
                concurrency: 8,
                per_second: None,
            },
            &bar,
        )
        .await?;
        bar.finish_and_clear();
        applied(&running.store).await?;
        let agrees = report(&running.store, &replies).await?;
        if self.keep {
            keep(&folder, &running, &trouble);
            run::asked_to_stop()?.await;
        }
        let _ = running.stop.send(());
        drop(running.store);
        running.task.await.context("the server's task failed")??;
        if !self.keep && self.folder.is_none() && agrees {
            // Whoever wants to look at it asks for it with --keep or --folder.
            let _ = std::fs::remove_dir_all(&folder);
        }
        Ok(if agrees { DONE } else { FAILED })
    }

    fn folder(&self) -> anyhow::Result<PathBuf> {
        let Some(folder) = &self.folder else {
            let folder = tempfile::Builder::new()
                .prefix("sekali-demo-")
                .tempdir()
                .context("could not create a folder")?;
            return Ok(folder.keep());
        };
        std::fs::create_dir_all(folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        if folder.join("research.db").exists() {
            bail!(
                "{} holds a demo already; choose a new folder",
                folder.display()
            );
        }
        Ok(folder.clone())
    }
}

/// Writes the example's files into the folder and starts the server that they describe.
async fn start(folder: &Path, secret: &str) -> anyhow::Result<Running> {
    let listen = async || {
        tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .context("could not listen on 127.0.0.1")
    };
    let (public, internal) = (listen().await?, listen().await?);
    let [address, internal_address] = [public.local_addr()?, internal.local_addr()?];
    let listeners = run::Listeners {
        public: Some(public),
        internal: Some(internal),
    };
    let server = format!("listen = \"{address}\"\ninternal_listen = \"{internal_address}\"");
    let text = CONFIG
        .replace("listen = \"127.0.0.1:8686\"", &server)
        .replace("env:RESEARCH_WEBHOOK_SECRET", "file:secret");
    let path = folder.join("sekali.toml");
    for (name, text) in [
        ("sekali.toml", text.as_str()),
        ("schema.sql", SCHEMA),
        ("secret", secret),
    ] {
        std::fs::write(folder.join(name), text)
            .with_context(|| format!("could not write {name}"))?;
    }
    let config = Config::load(Some(&path))?;
    let (stop, stopped) = oneshot::channel();
    let store = run::make_store(&config, true).await?;
    let served = store.clone();
    let task = tokio::spawn(async move {
        let end = async {
            // Whoever drops the other half wants the end as well.
            let _ = stopped.await;
        };
        run::run((config, Role::All), served, listeners, end).await
    });
    Ok(Running {
        store,
        url: format!("http://{address}/hooks/research"),
        stop,
        task,
    })
}

/// Waits until everything that was accepted is applied.
async fn applied(store: &Store) -> anyhow::Result<()> {
    let until_empty = async {
        while store.read(ReadDepth).await?.pending > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(APPLIED_WITHIN, until_empty)
        .await
        .context("events were still waiting after a minute")?
}

fn keep(folder: &Path, running: &Running, trouble: &Trouble) {
    let config = folder.join("sekali.toml");
    let config = config.display();
    let known = trouble.an_event_with_variants();
    output::line(&format!(
        "\nThe server goes on at {}; Ctrl-C ends it. In another terminal:\n\
         \x20 sekali events list --config {config}\n\
         \x20 sekali events show {known} --config {config}\n\
         \x20 sekali events list --status ignored_out_of_order --config {config}\n\
         \x20 sqlite3 {} 'select * from research_documents'",
        running.url,
        folder.join("research.db").display(),
    ));
}
