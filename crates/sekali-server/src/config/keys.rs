//! How keys of senders are fetched that are not configured.

use std::path::PathBuf;
use std::time::Duration;

use sekali::source::Span;
use serde::Deserialize;

/// How keys of senders are fetched that are not configured.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeysConfig {
    /// How long a fetched document is used.
    pub(crate) keep: Span,
    /// How long one is not fetched anew, although a key is missing in it.
    pub(crate) refresh: Span,
    /// How long fetching one may take.
    pub(crate) timeout: Span,
    /// A file of further root certificates, in PEM.
    pub(crate) ca_file: Option<PathBuf>,
    /// Whether documents may come from private addresses, as in a test.
    pub(crate) allow_private: bool,
}

impl Default for KeysConfig {
    fn default() -> Self {
        Self {
            keep: Span(Duration::from_secs(3600)),
            refresh: Span(Duration::from_secs(60)),
            timeout: Span(Duration::from_secs(5)),
            ca_file: None,
            allow_private: false,
        }
    }
}
