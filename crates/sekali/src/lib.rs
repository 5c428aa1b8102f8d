//! The engine of Sekali: every webhook, applied once.
//!
//! A verified delivery is identified, admitted into a durable inbox by a group commit, and applied once and in order, in
//! the same transaction as its mark in the inbox. The modules stand in the order of that path.
//!
//! ```
//! use sekali::{SourceConfig, Source};
//!
//! // What a user writes in the config file is data; `Source::build` checks it.
//! let config: SourceConfig = serde_json::from_value(serde_json::json!({
//!     "id": "research",
//!     "scheme": "timestamped",
//!     "secrets": ["env:RESEARCH_SECRET"],
//!     "map": { "event_id": "/event_id", "event_type": "/event_type" },
//! }))?;
//! let resolve = |_: &str| Ok(b"not-a-real-secret".to_vec());
//! let source = Source::build(config, &resolve)?;
//! assert_eq!(&*source.id, "research");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admission;
pub mod clock;
pub mod effect;
pub mod engine;
pub mod error;
pub mod event;
mod fingerprint;
pub mod headers;
pub mod identify;
pub mod limits;
#[cfg(feature = "redis-lock")]
pub mod lock;
pub mod observer;
pub mod order;
pub mod reason;
pub mod retry;
pub mod source;
pub mod store;
mod wake;
mod worker;

pub use clock::Clock;
pub use engine::{Engine, EngineOptions};
pub use error::{Error, Result, chain};
pub use limits::Limits;
pub use observer::Observer;
pub use reason::{Outcome, Reason, Status};
pub use source::{Source, SourceConfig, Sources};
pub use store::{Database, Schema, Store, StoreOptions};
