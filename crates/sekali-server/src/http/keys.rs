//! Keys of senders that are not configured: fetched, kept for a while, and handed to the verification.
//!
//! Verification itself never waits: it names the document that it lacks, the document is fetched here, and the request is
//! verified again. What cannot be fetched is a reason for the sender to come again, and never a valid signature.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sekali::{Source, Sources};
use sekali_verify::{KeyDocument, KeyDocuments};

use crate::config::Config;
use crate::fetch::{Client, Fetch, FetchError, KeyCache, Limits, Request, Rule, Times};

/// The documents that were fetched, and the client that fetches them.
pub(crate) struct Keys {
    /// Each source has its own, so that what is sent to one pushes nothing out of another.
    caches: HashMap<Arc<str>, KeyCache>,
    fetch: Arc<dyn Fetch>,
    roots: Vec<u8>,
    allow_private: bool,
}

impl Keys {
    /// Makes the client that the configuration asks for.
    pub(crate) fn new(config: &Config, sources: &Sources) -> anyhow::Result<Self> {
        let roots = config.further_roots()?;
        let limits = Limits {
            within: config.keys.timeout.into(),
            ..Limits::default()
        };
        let fetch: Arc<dyn Fetch> = Arc::new(Client::new(limits, roots.as_deref())?);
        let times = Times {
            keep: Duration::from(config.keys.keep),
            between_refreshes: Duration::from(config.keys.refresh),
            ..Times::default()
        };
        let cache = |source: &Arc<Source>| {
            let cache = KeyCache::new(fetch.clone(), times);
            (source.id.clone(), cache)
        };
        Ok(Self {
            caches: sources.iter().map(cache).collect(),
            fetch,
            roots: roots.unwrap_or_default(),
            allow_private: config.keys.allow_private,
        })
    }

    /// Looks at the documents of a source as they are now.
    pub(crate) fn at(&self, source: &str, now_ms: i64) -> KeysAt<'_> {
        KeysAt {
            keys: self,
            cache: self.caches.get(source),
            now_ms,
            refreshed: None,
        }
    }

    /// Calls an address that a handshake asks to confirm.
    pub(crate) async fn confirm(&self, url: &str, hosts: &[String]) -> Result<(), FetchError> {
        let request = self.request(url, None, hosts)?;
        self.fetch.fetch(request).await.map(drop)
    }

    fn request(
        &self,
        url: &str,
        post: Option<&str>,
        hosts: &[String],
    ) -> Result<Request, FetchError> {
        let rule = Rule::hosts(hosts.iter().map(String::as_str));
        let mut rule = rule.map_err(|_| FetchError::HostNotAllowed)?;
        if self.allow_private {
            rule = rule.allow_private();
        }
        let rule = Arc::new(rule);
        Ok(match post {
            Some(json) => Request::post(url, Bytes::copy_from_slice(json.as_bytes()), rule),
            None => Request::get(url, rule),
        })
    }
}

/// The documents as one request sees them.
pub(crate) struct KeysAt<'k> {
    keys: &'k Keys,
    cache: Option<&'k KeyCache>,
    now_ms: i64,
    /// What was fetched anew for this very request.
    refreshed: Option<Bytes>,
}

impl KeysAt<'_> {
    /// Fetches what the verification lacks, where `may_ask` allows another fetch.
    pub(crate) async fn fetch(
        &mut self,
        document: &KeyDocument,
        may_ask: impl FnOnce() -> bool,
    ) -> Result<(), FetchError> {
        let cache = self.cache.ok_or(FetchError::HostNotAllowed)?;
        let post = document.post.as_deref();
        let request = self.keys.request(&document.url, post, &document.hosts)?;
        if document.is_refresh {
            self.refreshed = Some(cache.refresh(&request, self.now_ms, may_ask).await?);
        } else {
            cache.get(&request, self.now_ms, may_ask).await?;
        }
        Ok(())
    }
}

impl KeyDocuments for KeysAt<'_> {
    fn find(&self, document: &KeyDocument) -> Option<Bytes> {
        if document.is_refresh {
            return self.refreshed.clone();
        }
        let post = document.post.as_deref();
        let request = self.keys.request(&document.url, post, &document.hosts);
        self.cache?.cached(&request.ok()?, self.now_ms)
    }

    fn extra_roots(&self) -> &[u8] {
        &self.keys.roots
    }
}
