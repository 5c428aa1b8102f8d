//! The text that a signature is made of.
//!
//! It is passed on in pieces, as received, to whatever hashes it; the pieces are never joined or
//! re-printed.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use crate::scheme::Part;

/// The received pieces of the signed text, never joined into one buffer.
pub(crate) struct SignedText {
    /// Is none for a source without signature.
    pub(crate) parts: Option<Arc<[Part]>>,
    pub(crate) timestamp: Option<HeaderValue>,
    pub(crate) body: Bytes,
}

impl SignedText {
    /// Passes the signed text on, piece by piece.
    pub(crate) fn feed(&self, mut sink: impl FnMut(&[u8])) {
        let parts = self.parts.as_deref().unwrap_or(&[Part::Body]);
        let timestamp = self
            .timestamp
            .as_ref()
            .map_or(&b""[..], HeaderValue::as_bytes);
        feed(parts, timestamp, &self.body, &mut sink);
    }
}

/// Passes the signed text on, piece by piece, in the order of the scheme.
pub(crate) fn feed(parts: &[Part], timestamp: &[u8], body: &[u8], sink: &mut impl FnMut(&[u8])) {
    for part in parts {
        match part {
            Part::Literal(text) => sink(text.as_bytes()),
            Part::Timestamp => sink(timestamp),
            Part::Body => sink(body),
        }
    }
}
