//! `sekali handshakes`: what providers asked at set-up, what became of it, and the tokens that they sent.

use clap::Args;
use sekali::store::{HandshakeRow, ListHandshakes};

use super::output::{self, or_dash, time};
use super::{ConfigArgs, DONE};
use crate::run;

/// List what providers asked beside sending events, newest first.
#[derive(Debug, Args)]
pub(crate) struct Handshakes {
    #[command(flatten)]
    config: ConfigArgs,
    /// Only of this source
    #[arg(long, value_name = "ID")]
    source: Option<String>,
    /// Show the secrets that came with them, such as Notion's verification token
    #[arg(long)]
    reveal: bool,
    /// How many
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Handshakes {
    pub(crate) async fn run(self) -> anyhow::Result<u8> {
        let store = run::open_store(&self.config.load()?).await?;
        let list = ListHandshakes {
            source: self.source.clone(),
            limit: self.limit.into(),
        };
        let rows = store.read(list).await?;
        if self.json {
            let all: Vec<_> = rows.iter().map(|row| self.describe(row)).collect();
            output::json(&all)?;
            return Ok(DONE);
        }
        let row = |row: &HandshakeRow| {
            vec![
                time(row.at_ms),
                row.source.clone(),
                row.kind.clone(),
                row.outcome.clone(),
                or_dash(row.remote_address.clone()),
                or_dash(row.detail.clone()),
                or_dash(self.secret(row)),
            ]
        };
        let head = [
            "at",
            "source",
            "handshake",
            "outcome",
            "from",
            "detail",
            "secret",
        ];
        output::table(&head, rows.iter().map(row).collect());
        let mut secrets: Vec<_> = rows.iter().filter_map(|row| row.secret.as_ref()).collect();
        secrets.dedup();
        if self.reveal && secrets.len() > 1 {
            output::note(
                "there is more than one secret: anybody can send one of their own, so take the one that \
                the provider shows, or that came from an address of the provider when you asked for it",
            );
        }
        Ok(DONE)
    }

    fn secret(&self, row: &HandshakeRow) -> Option<String> {
        row.secret.as_ref().map(|secret| match self.reveal {
            true => String::from_utf8_lossy(secret.reveal()).into_owned(),
            false => "*** (--reveal shows it)".to_owned(),
        })
    }

    fn describe(&self, row: &HandshakeRow) -> serde_json::Value {
        let mut value = serde_json::to_value(row).unwrap_or_default();
        if self.reveal {
            value["secret"] = self.secret(row).into();
        }
        value
    }
}
