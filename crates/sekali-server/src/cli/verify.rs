//! `sekali verify`: why does this captured request not verify?

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::Args;
use http::Method;
use sekali::Clock;
use sekali::store::{FindRejected, ListRejected, RejectedRow};
use sekali_verify::{
    Diagnosis, KeyDocument, KeyDocuments, Preset, Request, Scheme, Secret, Settings, Suspect,
    Window, diagnose,
};
use serde_json::json;

use super::capture::{self, Captured};
use super::{ConfigArgs, DONE, FAILED, output};
use crate::config::{Config, resolve_secret};
use crate::run;

/// Tell whether a captured request verifies, and if not, why.
///
/// The request is a file with raw HTTP, what `curl -v` prints, a HAR file or JSON with url, headers and body; or one that the
/// source kept (`keep_rejected`). The right signature is never shown.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    config: ConfigArgs,
    /// The file with the captured request; `-` for standard input
    #[arg(required_unless_present_any = ["rejected", "list"])]
    file: Option<PathBuf>,
    /// Take the body from this file
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// Hold it against this source of the config file
    #[arg(long, value_name = "ID", required_unless_present_any = ["preset", "rejected", "list"])]
    source: Option<String>,
    /// Hold it against this provider
    #[arg(long, value_name = "NAME", conflicts_with = "source")]
    preset: Option<String>,
    /// The secret, env:NAME or file:PATH
    #[arg(long, requires = "preset")]
    secret: Option<String>,
    /// A setting of the preset, NAME=VALUE
    #[arg(long = "setting", value_name = "NAME=VALUE", requires = "preset", value_parser = super::send::pair)]
    settings: Vec<(String, String)>,
    /// The file that the key's address answers, a certificate or a key set
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The URL that the sender called
    #[arg(long)]
    url: Option<String>,
    /// The time of receipt, RFC 3339 [default: now, or when a kept request arrived]
    #[arg(long, value_name = "TIME")]
    at: Option<jiff::Timestamp>,
    /// Take a request that was kept, the newest or the one with this number
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "0", conflicts_with = "file")]
    rejected: Option<i64>,
    /// List the requests that were kept
    #[arg(long, conflicts_with_all = ["file", "rejected"])]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a request is held against.
struct Against {
    schemes: Vec<Scheme>,
    secrets: Vec<Secret>,
    others: Vec<(String, Secret)>,
    settings: Settings,
    window: Window,
    public_url: Option<String>,
}

/// The one key document of a file.
struct KeyFile(Option<Bytes>);

impl KeyDocuments for KeyFile {
    fn find(&self, _: &KeyDocument) -> Option<Bytes> {
        self.0.clone()
    }
}

impl Verify {
    pub(crate) async fn run(self) -> anyhow::Result<u8> {
        if self.list {
            return self.list_kept().await;
        }
        let mut at_ms = self.at.map(jiff::Timestamp::as_millisecond);
        let (mut captured, source) = match &self.file {
            Some(file) => (capture::parse(&read(file)?)?, self.source.clone()),
            None => {
                let row = self.kept().await?;
                at_ms = at_ms.or(Some(row.at_ms));
                let source = self.source.clone().unwrap_or_else(|| row.source.clone());
                (of_row(row)?, Some(source))
            }
        };
        if let Some(file) = &self.body {
            captured.body = read(file)?.into();
        }
        let against = match (&self.preset, source) {
            (Some(preset), _) => self.against_preset(preset)?,
            (None, Some(source)) => against_source(&self.config.load()?, &source)?,
            (None, None) => bail!("name a source or a preset"),
        };
        let diagnosis = self.diagnose(&captured, &against, at_ms)?;
        self.print(&diagnosis)?;
        Ok(if diagnosis.code == "verified" {
            DONE
        } else {
            FAILED
        })
    }

    fn diagnose(
        &self,
        captured: &Captured,
        against: &Against,
        at_ms: Option<i64>,
    ) -> anyhow::Result<Diagnosis> {
        let key = self.key.as_deref().map(read).transpose()?;
        let url = self.url(captured, against);
        let request = Request {
            method: &captured.method,
            url: &url,
            tail: tail(&url),
            headers: &captured.headers,
            body: &captured.body,
        };
        let suspect = Suspect {
            schemes: &against.schemes,
            secrets: &against.secrets,
            others: &against.others,
            settings: &against.settings,
            window: against.window,
        };
        let now_ms = at_ms.unwrap_or_else(|| Clock::System.now_ms());
        Ok(diagnose(
            &suspect,
            &request,
            now_ms,
            &KeyFile(key.map(Bytes::from)),
        ))
    }

    fn url(&self, captured: &Captured, against: &Against) -> String {
        if let Some(url) = self.url.as_ref().or(against.public_url.as_ref()) {
            return url.clone();
        }
        if captured.url.contains("://") {
            return captured.url.clone();
        }
        let host = captured.headers.get(http::header::HOST);
        let host = host
            .and_then(|host| host.to_str().ok())
            .unwrap_or("localhost");
        format!("http://{host}{}", captured.url)
    }

    fn against_preset(&self, name: &str) -> anyhow::Result<Against> {
        let preset = Preset::find(name).with_context(|| {
            format!("the preset {name} is unknown; `sekali providers` lists all")
        })?;
        let mut settings = preset.defaults();
        for (name, value) in &self.settings {
            settings.insert(name, value);
        }
        let secret = self.secret.as_deref().map(|from| {
            let bytes =
                resolve_secret(from, Path::new("")).map_err(|problem| anyhow::anyhow!(problem))?;
            anyhow::Ok(Secret::new(bytes)?)
        });
        Ok(Against {
            schemes: preset.schemes.clone(),
            secrets: secret.transpose()?.into_iter().collect(),
            others: Vec::new(),
            settings,
            window: preset.window(),
            public_url: None,
        })
    }

    async fn kept(&self) -> anyhow::Result<RejectedRow> {
        let store = run::open_store(&self.config.load()?).await?;
        let found = match self.rejected {
            Some(id) if id > 0 => store.read(FindRejected { id }).await?,
            _ => {
                let newest = ListRejected {
                    source: self.source.clone(),
                    limit: 1,
                };
                match store.read(newest).await?.pop() {
                    Some(row) => store.read(FindRejected { id: row.id }).await?,
                    None => None,
                }
            }
        };
        let name = self.rejected.unwrap_or_default().to_string();
        let what = "kept request (set keep_rejected on the source)";
        found.ok_or_else(|| sekali::Error::NotFound { what, name }.into())
    }

    async fn list_kept(&self) -> anyhow::Result<u8> {
        let store = run::open_store(&self.config.load()?).await?;
        let list = ListRejected {
            source: self.source.clone(),
            limit: 1000,
        };
        let rows = store.read(list).await?;
        if self.json {
            output::json(&rows)?;
            return Ok(DONE);
        }
        let row = |row: &RejectedRow| {
            let bytes = row.bytes.to_string();
            let at = output::time(row.at_ms);
            vec![
                row.id.to_string(),
                at,
                row.source.clone(),
                row.method.clone(),
                bytes,
                row.reason.clone(),
            ]
        };
        output::table(
            &["id", "at", "source", "method", "bytes", "reason"],
            rows.iter().map(row).collect(),
        );
        Ok(DONE)
    }

    fn print(&self, diagnosis: &Diagnosis) -> anyhow::Result<()> {
        if self.json {
            let findings: Vec<_> = diagnosis
                .findings
                .iter()
                .map(|finding| json!({ "code": finding.code, "sentence": finding.sentence }))
                .collect();
            return output::json(&json!({
                "verified": diagnosis.code == "verified", "code": diagnosis.code, "sentence": diagnosis.sentence,
                "findings": findings,
            }));
        }
        output::line(&format!("{}: {}", diagnosis.code, diagnosis.sentence));
        for finding in &diagnosis.findings {
            output::line(&format!("  {finding}"));
        }
        if diagnosis.code != "verified" && diagnosis.findings.is_empty() {
            output::line(
                "  none of the usual reasons explains it: compare the secret with the provider's, character by character",
            );
        }
        Ok(())
    }
}

fn against_source(config: &Config, id: &str) -> anyhow::Result<Against> {
    let sources = config.sources()?;
    let name = id.to_owned();
    let source = sources.get(id).ok_or(sekali::Error::NotFound {
        what: "source",
        name,
    })?;
    let prover = source
        .prover()
        .with_context(|| format!("source {id} is not signed: everything is let through"))?;
    let others = sources.iter().filter(|other| *other.id != *id);
    let others = others.flat_map(|other| {
        let secrets = other
            .prover()
            .into_iter()
            .flat_map(sekali_verify::Prover::secrets);
        secrets.map(|secret| (other.id.to_string(), secret))
    });
    Ok(Against {
        schemes: prover.schemes(),
        secrets: prover.secrets(),
        others: others.collect(),
        settings: prover.settings().clone(),
        window: prover.window(),
        public_url: source.public_url.clone(),
    })
}

fn of_row(row: RejectedRow) -> anyhow::Result<Captured> {
    let headers: serde_json::Value = serde_json::from_str(&row.headers)?;
    let request = json!({ "method": row.method, "url": row.url, "headers": headers, "body": "" });
    let captured = capture::parse(request.to_string().as_bytes())?;
    let method: Method = row.method.parse()?;
    Ok(Captured {
        method,
        body: row.body.into(),
        ..captured
    })
}

/// Gives the path behind the source's name, where the URL is one of ours.
fn tail(url: &str) -> &str {
    let Some((_, path)) = url.split_once("/hooks/") else {
        return "";
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.split_once('/').map_or("", |(_, tail)| tail)
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    use std::io::Read as _;
    if file.as_os_str() != "-" {
        return std::fs::read(file).with_context(|| format!("could not read {}", file.display()));
    }
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .context("could not read standard input")?;
    Ok(text)
}
