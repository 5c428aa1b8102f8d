//! Requests that the receiver makes by itself: for documents with keys, and to confirm a subscription.
//!
//! Nothing else in the binary connects to another server on its own account. What is asked for may stand in a delivery
//! that nobody has verified yet, so every request comes with a [`Rule`] that says where it may go, the address that is
//! connected to is checked as well, redirects are not followed, and time, size and number are bounded. What an answer
//! means is not decided here.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

mod address;
mod cache;
mod client;
mod rule;

pub(crate) use cache::{KeyCache, Times};
pub(crate) use client::{Client, Limits};
pub(crate) use rule::Rule;

/// How a document is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Method {
    /// Without a body.
    Get,
    /// With a body of JSON, where there is one.
    Post,
}

/// What is asked for, and where that may be. Two that are equal are for the same document.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: String,
    /// JSON; it may hold credentials and is never shown.
    pub(crate) body: Option<Bytes>,
    pub(crate) rule: Arc<Rule>,
}

impl Request {
    /// Asks for a document.
    pub(crate) fn get(url: impl Into<String>, rule: Arc<Rule>) -> Self {
        Self {
            method: Method::Get,
            url: url.into(),
            body: None,
            rule,
        }
    }

    /// Sends JSON.
    pub(crate) fn post(url: impl Into<String>, body: Bytes, rule: Arc<Rule>) -> Self {
        Self {
            method: Method::Post,
            url: url.into(),
            body: Some(body),
            rule,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body.as_ref().map(|_| "***");
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("body", &body)
            .field("rule", &self.rule)
            .finish()
    }
}

/// What is on its way.
pub(crate) type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Bytes, FetchError>> + Send + 'a>>;

/// Something that answers requests; tests bring their own.
pub(crate) trait Fetch: Send + Sync {
    /// Returns the body of an answer with a status of 200 to 299.
    fn fetch(&self, request: Request) -> Fetching<'_>;
}

/// Why the connection failed, or the handshake on it. It is shared by all who waited for the same answer.
pub(crate) type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why there is no answer that can be used.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The URL is not one that the rule allows; nothing was sent.
    #[error("the URL is not one that may be asked")]
    HostNotAllowed,
    /// The host has an address inside of a network; nothing was sent.
    #[error("the host has an address that may not be asked")]
    AddressNotAllowed,
    /// Too much was asked for lately, or is being asked for; nothing was sent.
    #[error("too many documents were asked for")]
    Throttled,
    /// The whole answer was not there in time, or there was no free place to ask for it.
    #[error("there was no answer in time")]
    Timeout,
    /// The body is larger than the limit.
    #[error("the answer is too large")]
    TooLarge,
    /// The status says that the body is not what was asked for; that holds for redirects, too.
    #[error("the answer has the status {0}")]
    Status(u16),
    /// The host could not prove to be the one that was meant.
    #[error("could not agree on a secure connection")]
    Tls(#[source] Cause),
    /// The host could not be found or reached, or broke off.
    #[error("could not talk to the host")]
    Connection(#[source] Cause),
}

impl FetchError {
    /// Returns the stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::HostNotAllowed => "host_not_allowed",
            Self::AddressNotAllowed => "address_not_allowed",
            Self::Throttled => "throttled",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Status(_) => "status",
            Self::Tls(_) => "tls",
            Self::Connection(_) => "connection",
        }
    }
}

#[cfg(test)]
mod tests;
