//! Proves who sent a webhook: signature schemes as data, pure and synchronous.
//!
//! A [`Scheme`] says what a provider signs and where it puts the signature, a [`Check`] holds one
//! request against it, and only a [`Verified`] comes out of that. The crate also has the strict
//! [`json`] reader which the rest of the system takes ids and versions from. It does no input or
//! output, keeps no state, and never looks at a clock: now is an argument.
//!
//! ```
//! use bytes::Bytes;
//! use http::HeaderMap;
//! use sekali_verify::{Check, Scheme, Secret, Window};
//!
//! let scheme = Scheme::preset("timestamped").ok_or("no such preset")?;
//! let secret = Secret::new("a-secret-that-both-sides-know")?;
//! let now_ms = 1_767_225_600_000;
//!
//! // The sender.
//! let body = Bytes::from_static(br#"{"event_id":"evt_1"}"#);
//! let headers: HeaderMap = scheme.sign(&secret, &body, now_ms).into_iter().collect();
//!
//! // The receiver.
//! let window = Window { past_ms: 300_000, future_ms: 300_000 };
//! let check = Check { scheme, secrets: &[secret], window, now_ms };
//! let verified = check.verify(&headers, body)?;
//! assert_eq!(verified.drift_ms(), Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod json;
mod preset;
mod rejection;
mod scheme;
mod secret;
mod sign;
mod signature;
mod signed;
mod timestamp;
mod verify;

pub use json::{Ambiguous, Json, JsonError, Pointer, PointerError, Text};
pub use rejection::{Rejection, SignatureProblem, TimestampProblem};
pub use scheme::{Algorithm, Encoding, KeyForm, Part, Place, Scheme, Signature, Time, TimeUnit};
pub use secret::{Secret, WeakSecret};
pub use timestamp::{StaleReason, Window};
pub use verify::{Check, Stale, Verified};
