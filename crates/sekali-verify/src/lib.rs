//! Proves who sent a webhook: signature schemes as data, pure and synchronous.
//!
//! A [`Scheme`] says what a provider signs and where it puts the signature, a [`Preset`] everything about a
//! provider, a [`Prover`] holds requests against the schemes of one source, and only a [`Verified`] comes out
//! of that. A [`View`] reads ids and times out of it, with the strict [`json`] reader underneath. The crate does
//! no input or output, keeps no state, and never looks at a clock: now is an argument, and keys that have to be
//! fetched are asked for ([`KeyDocuments`]).
//!
//! ```
//! use bytes::Bytes;
//! use sekali_verify::{NoDocuments, Preset, Prove, Prover, Request, Secret, Settings, Window};
//!
//! let github = Preset::find("github").ok_or("no such preset")?;
//! let secrets = [Secret::new("a-secret-that-both-sides-know")?];
//! let window = Window { past_ms: 300_000, future_ms: 300_000 };
//! let prover = Prover::new(&github.schemes, &secrets, Settings::default(), window)?;
//! let now_ms = 1_767_225_600_000;
//!
//! // The sender.
//! let body = Bytes::from_static(br#"{"action":"opened"}"#);
//! let headers = prover.sign(&body, now_ms)?;
//!
//! // The receiver.
//! let verified = prover.verify(&Request::post(&headers, &body), now_ms, &NoDocuments)?;
//! assert!(verified.covers_whole_body());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod diagnose;
mod handshake;
pub mod json;
mod jwt;
mod key;
mod map;
mod outside;
mod place;
mod preset;
mod prover;
mod rejection;
mod request;
mod scene;
mod scheme;
mod secret;
mod settings;
mod sign;
mod signature;
mod span;
mod times;
mod timestamp;
mod verify;
mod view;

pub use batch::{Element, MAX_ELEMENTS, Pattern, TooManyElements, elements};
pub use diagnose::{Diagnosis, Finding, Suspect, diagnose};
pub use handshake::{Handshake, Reply, all_hold};
pub use json::{Ambiguous, Json, JsonError, Pointer, PointerError, Text};
pub use map::{EventIds, Map, TimeOffset, VersionIs};
pub use outside::{KeyDocument, KeyDocuments, NoDocuments, is_allowed, matches_label};
pub use place::{OneOrMany, Path, PathStep, Piece, Place, Places};
pub use preset::{
    AnswerRules, Preset, Retries, RetryTimestamp, SettingRule, Unusable, Vectors, signs_places,
};
pub use prover::{CannotProve, Prover};
pub use rejection::{Rejection, SignatureProblem, TimestampProblem};
pub use request::Request;
pub use scheme::{
    Algorithm, Condition, Coverage, Encoding, Entries, JwtRules, KeyForm, KeyUrl, OutsideKeys,
    Part, Scheme, Signature, Spot, Time, TimeUnit,
};
pub use secret::{Secret, WeakSecret};
pub use settings::Settings;
pub use sign::{CannotSign, Outgoing};
pub use span::Span;
pub use times::{NumberUnit, parse_any, parse_time};
pub use timestamp::{StaleReason, Window};
pub use verify::{Proof, Prove, Stale, Verified};
pub use view::{Decode, DocumentField, InnerPlace, Opening, Scalar, Unreadable, View};
