//! The configuration: a TOML file, secrets from the environment or from files, checked once at the start.
//!
//! The only file that reads the environment. A key that is not known is refused with its line and the nearest key that
//! is, so that a typing error never switches a protection off in silence.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use sekali::source::{Addresses, RateLimit, Span};
use sekali::store::Retention;
use sekali::{Database, Limits, Source, SourceConfig, Sources};
use serde::Deserialize;

mod explain;
mod keys;
mod lock;
mod public_url;
mod units;

use explain::explain;
pub(crate) use keys::KeysConfig;
pub(crate) use lock::LockConfig;
pub(crate) use public_url::PublicUrl;
pub(crate) use units::{Keep, Size};

/// The file that is read unless another is named.
pub(crate) const DEFAULT_FILE: &str = "sekali.toml";

/// What `sekali init` writes.
pub(crate) const TEMPLATE: &str = include_str!("config.default.toml");

/// How requests are taken in.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerConfig {
    /// Where webhooks are received.
    pub(crate) listen: SocketAddr,
    /// Where metrics are shown; not for the public.
    pub(crate) internal_listen: Option<SocketAddr>,
    /// Under which address senders know the receiver, where that is fixed.
    pub(crate) public_url: Option<PublicUrl>,
    /// Whose word counts about who sent a request, and where to.
    pub(crate) trusted_proxies: Addresses,
    /// The largest body.
    pub(crate) max_body: Size,
    /// How long a body may take to arrive.
    pub(crate) body_timeout: Span,
    /// How long the head of a request may take to arrive.
    pub(crate) header_timeout: Span,
    /// How many connections are open at once; one more waits.
    pub(crate) max_connections: usize,
    /// How many bytes of bodies are held at once.
    pub(crate) max_in_flight: Size,
    /// How long a delivery may wait for the store before it is answered 503.
    pub(crate) answer_within: Span,
    /// How long the end may take.
    pub(crate) drain: Span,
    /// How many deliveries with a wrong signature an address may send before they are only answered 429.
    pub(crate) unverified_rate: RateLimit,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8686)),
            internal_listen: Some(SocketAddr::from(([127, 0, 0, 1], 8687))),
            public_url: None,
            trusted_proxies: Addresses::default(),
            max_body: Size(5 << 20),
            body_timeout: Span(Duration::from_secs(10)),
            header_timeout: Span(Duration::from_secs(10)),
            max_connections: 4096,
            max_in_flight: Size(64 << 20),
            answer_within: Span(Duration::from_secs(10)),
            drain: Span(Duration::from_secs(20)),
            unverified_rate: RateLimit {
                per_second: 50,
                burst: Some(200),
            },
        }
    }
}

/// Where events are stored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreConfig {
    /// `sqlite:PATH`; relative to the config file.
    pub(crate) url: Option<String>,
    /// A file of statements that are run at start, such as `create table if not exists`.
    pub(crate) setup: Option<PathBuf>,
    /// How long `serve` and `migrate` wait for a database that cannot be reached yet (30s).
    pub(crate) connect_within: Option<Span>,
    /// Whether a server is used that may lose what it committed when its machine crashes (false).
    pub(crate) allow_unsafe_durability: bool,
}

/// How events are applied.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorkerConfig {
    /// How many workers apply events (2); with 0 the process only receives.
    pub(crate) count: Option<usize>,
    /// How long a claim holds without being renewed (30s).
    pub(crate) lease: Option<Span>,
    /// After how long an apply transaction gives way to waiting deliveries (20ms).
    pub(crate) apply_budget: Option<Span>,
    /// After how long the statements of one event are interrupted (1s).
    pub(crate) effect_timeout: Option<Span>,
}

/// How long things are kept; `"forever"` keeps them.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RetentionConfig {
    /// Bodies and variants of finished events.
    pub(crate) payloads: Keep,
    /// Delivery and attempt rows.
    pub(crate) audit: Keep,
    /// Keys of finished events.
    pub(crate) keys: Keep,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        let days = |days: u64| Keep(Some(Duration::from_secs(days * 24 * 3600)));
        Self {
            payloads: days(90),
            audit: days(90),
            keys: days(400),
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For a person.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// What is logged.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogConfig {
    /// How lines look.
    pub(crate) format: LogFormat,
    /// `error`, `warn`, `info`, `debug`, or directives such as `info,sekali=debug`.
    pub(crate) level: Option<String>,
}

/// The whole configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// How requests are taken in.
    pub(crate) server: ServerConfig,
    /// Where events are stored.
    pub(crate) store: StoreConfig,
    /// How events are applied.
    pub(crate) worker: WorkerConfig,
    /// How long things are kept.
    pub(crate) retention: RetentionConfig,
    /// How keys of senders are fetched.
    pub(crate) keys: KeysConfig,
    /// The lock in Redis, where there is one.
    pub(crate) lock: Option<LockConfig>,
    /// What is logged.
    pub(crate) log: LogConfig,
    /// Sources that are not configured any more, although events of theirs may be pending.
    pub(crate) retired: Vec<String>,
    /// The senders.
    pub(crate) source: Vec<SourceConfig>,
    /// Where the file stands; paths in it are relative to this.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

impl Config {
    /// Reads a config file; without one it says how to get one.
    pub(crate) fn load(path: Option<&Path>) -> anyhow::Result<Self> {
        let path = path.unwrap_or(Path::new(DEFAULT_FILE));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(
                "there is no config file {}\n  `sekali init` writes one with comments, `--config FILE` names another, \
                 `sekali demo` shows everything without one",
                path.display()
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("could not read {}", path.display()));
            }
        };
        let mut config = Self::parse(&text, &path.display().to_string())?;
        config.folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(config)
    }

    /// Reads the text of a config file.
    pub(crate) fn parse(text: &str, name: &str) -> anyhow::Result<Self> {
        let config: Self =
            toml::from_str(text).map_err(|error| anyhow::anyhow!(explain(&error, text, name)))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> anyhow::Result<()> {
        let (payloads, keys) = (self.retention.payloads.0, self.retention.keys.0);
        if keys.is_some_and(|keys| payloads.is_none_or(|payloads| keys < payloads)) {
            bail!("retention.keys: keys must outlive payloads, or an old event would become new");
        }
        for source in &self.source {
            let tolerance = source
                .tolerance
                .map_or(Duration::from_secs(300), Duration::from);
            if keys.is_some_and(|keys| keys < tolerance.saturating_mul(2)) {
                bail!(
                    "retention.keys: keys must outlive twice the tolerance of source {}",
                    source.id
                );
            }
        }
        if self.server.max_connections == 0 {
            bail!("server.max_connections: at least one connection is needed");
        }
        Ok(())
    }

    /// Checks the sources and makes them, secrets included.
    pub(crate) fn sources(&self) -> anyhow::Result<Sources> {
        let resolve = |reference: &str| resolve_secret(reference, &self.folder);
        let sources = self
            .source
            .iter()
            .map(|source| Source::build(source.clone(), &resolve));
        Ok(Sources::new(sources.collect::<Result<_, _>>()?)?)
    }

    /// Returns the path of the database file.
    pub(crate) fn database(&self) -> anyhow::Result<Database> {
        let url = self.store.url.as_deref().unwrap_or("sqlite:sekali.db");
        let url = match url.strip_prefix("env:") {
            Some(name) => environment(name)
                .with_context(|| format!("store.url: the variable {name} is not set"))?,
            None => url.to_owned(),
        };
        Ok(match Database::parse(&url) {
            Ok(Database::Sqlite(path)) => Database::Sqlite(self.folder.join(path)),
            Ok(database) => database,
            Err(problem) => bail!("store.url: {problem}"),
        })
    }

    /// Reads the set-up statements, where there are any.
    pub(crate) fn setup(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.store.setup else {
            return Ok(None);
        };
        let path = self.folder.join(path);
        let sql = std::fs::read_to_string(&path)
            .with_context(|| format!("store.setup: could not read {}", path.display()));
        sql.map(Some)
    }

    /// Reads the further root certificates, where there are any.
    pub(crate) fn further_roots(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(path) = &self.keys.ca_file else {
            return Ok(None);
        };
        let path = self.folder.join(path);
        let pem = std::fs::read(&path)
            .with_context(|| format!("keys.ca_file: could not read {}", path.display()));
        pem.map(Some)
    }

    /// Returns the engine's limits.
    pub(crate) fn limits(&self) -> Limits {
        let (worker, default) = (&self.worker, Limits::default());
        Limits {
            lease: worker.lease.map_or(default.lease, Into::into),
            apply_budget: worker.apply_budget.map_or(default.apply_budget, Into::into),
            effect_timeout: worker
                .effect_timeout
                .map_or(default.effect_timeout, Into::into),
            ..default
        }
    }

    /// Returns how long things are kept.
    pub(crate) fn retention(&self) -> Retention {
        Retention {
            payloads_ms: self.retention.payloads.ms(),
            audit_ms: self.retention.audit.ms(),
            keys_ms: self.retention.keys.ms(),
        }
    }
}

/// Turns `env:NAME` or `file:PATH` into the secret it stands for.
pub(crate) fn resolve_secret(reference: &str, folder: &Path) -> Result<Vec<u8>, String> {
    if let Some(name) = reference.strip_prefix("env:") {
        return environment(name)
            .map(String::into_bytes)
            .ok_or_else(|| format!("the variable {name} is not set"));
    }
    if let Some(path) = reference.strip_prefix("file:") {
        let path = folder.join(path);
        return std::fs::read(&path)
            .map_err(|error| format!("could not read {}: {error}", path.display()));
    }
    Err("a secret stands in the environment (\"env:NAME\") or in a file (\"file:PATH\"), never in the config file".into())
}

/// Reads a variable of the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the file that reads the environment"
)]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Config::parse(text, "sekali.toml").unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_key() {
        let text = "[server]\nlisten = \"127.0.0.1:1\"\nmax_bodi = \"5MiB\"\n";
        assert_eq!(
            problem(text),
            "sekali.toml:3: the key `max_bodi` is unknown; did you mean `max_body`?"
        );
        let text = "[[source]]\nid = \"a\"\nunsinged = true\n";
        assert_eq!(
            problem(text),
            "sekali.toml:3: the key `unsinged` is unknown; did you mean `unsigned`?"
        );
        let text = "[[source]]\nid = \"a\"\nunsigned = true\nequal_version = \"tiebreak\"\n";
        assert_eq!(
            problem(text),
            "sekali.toml:4: the value `tiebreak` is unknown; did you mean `tie_break`?"
        );
    }

    #[test]
    fn retention_that_forgets_too_early_is_refused() {
        assert!(
            problem("[retention]\npayloads = \"30d\"\nkeys = \"1d\"\n")
                .contains("outlive payloads")
        );
        let text = "[retention]\npayloads = \"1m\"\naudit = \"1m\"\nkeys = \"5m\"\n[[source]]\nid = \"a\"\nunsigned = true\n";
        assert!(problem(text).contains("twice the tolerance"));
    }

    #[test]
    fn secrets_never_stand_in_the_file() {
        let config = "[[source]]\nid = \"a\"\nscheme = \"timestamped\"\nsecrets = [\"not-a-real-secret\"]\n[source.map]\nevent_id = \"/id\"\n";
        let error = Config::parse(config, "x").unwrap().sources().unwrap_err();
        assert!(sekali::chain(&*error).contains("env:NAME"), "{error}");
        assert!(!sekali::chain(&*error).contains("not-a-real-secret"));
    }

    #[test]
    fn the_lines_of_the_template_are_valid_without_their_marks() {
        let is_setting =
            |line: &str| line.starts_with("# ") && line.contains(" = ") && !line.contains("{ from");
        let uncommented =
            TEMPLATE
                .lines()
                .map(|line| match is_setting(line) || line.starts_with("# [") {
                    true => line.trim_start_matches("# "),
                    false => line,
                });
        let text: Vec<&str> = uncommented.collect();
        let config = Config::parse(&text.join("\n"), "template").unwrap();
        assert_eq!(config.source.len(), 1);
        assert_eq!(
            config.retention.payloads,
            RetentionConfig::default().payloads
        );
        assert_eq!(config.limits(), Limits::default());
    }

    #[test]
    fn the_template_is_valid() {
        let config = Config::parse(TEMPLATE, "template").unwrap();
        assert_eq!(config.server.listen, ServerConfig::default().listen);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!("5MiB".parse(), Ok(Size(5 << 20)));
        assert_eq!("10".parse(), Ok(Size(10)));
        for text in ["", "0", "5MB", "-1", "1.5MiB", "99999999999999999999GiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
