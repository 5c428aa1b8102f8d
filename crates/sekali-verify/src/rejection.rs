//! The reasons for which a request is not verified.
//!
//! Every reason has a stable code for machines and a sentence for people. None of them contains a
//! signature, or says how near a wrong one came.

use thiserror::Error;

use crate::outside::KeyDocument;
use crate::verify::Stale;

/// The outcome of a check that does not end in a verified request.
#[derive(Debug, Error)]
pub enum Rejection {
    /// Says that nothing proves who sent the request.
    #[error(transparent)]
    Signature(#[from] SignatureProblem),
    /// Says that the signature is genuine, but the time in it is unusable.
    #[error(transparent)]
    Timestamp(#[from] TimestampProblem),
    /// Says that the signature is genuine, but too old or from the future.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// Says that a key document is needed first; whoever fetches it asks again.
    #[error("the key at {} is needed first", .0.url)]
    KeyNeeded(Box<KeyDocument>),
}

impl Rejection {
    /// Gives the stable code of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Signature(problem) => problem.code(),
            Self::Timestamp(problem) => problem.code(),
            Self::Stale(stale) => stale.reason().code(),
            Self::KeyNeeded(_) => "key_needed",
        }
    }
}

/// The reason why a signature proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum SignatureProblem {
    /// Says that a header is missing without which there is nothing to compare.
    #[error("the signature, or the timestamp that is signed with it, is missing")]
    Missing,
    /// Says that the header is there, but holds no signature in the form of the scheme.
    #[error("the signature header holds no signature in the form that the source expects")]
    Malformed,
    /// Says that no signature belongs to this text under any of the secrets.
    #[error("the signature does not match the request under any active secret")]
    WrongSignature,
    /// Says that there are more entries than are ever looked at.
    #[error("there are more signatures than are looked at")]
    TooMany,
    /// Says that the key is not one that the source allows.
    #[error("the key or its address is not one that the source allows")]
    UntrustedKey,
}

impl SignatureProblem {
    /// Gives the stable code of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "signature_missing",
            Self::Malformed => "signature_malformed",
            Self::WrongSignature => "signature_wrong",
            Self::TooMany => "signature_too_many",
            Self::UntrustedKey => "signature_untrusted_key",
        }
    }
}

/// The reason why a genuinely signed time cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum TimestampProblem {
    /// Says that the text is something else than decimal digits.
    #[error("the timestamp is not a plain decimal number")]
    NotANumber,
    /// Says that the text is no date and time with an offset.
    #[error("the timestamp is no RFC 3339 time with an offset")]
    NotATime,
    /// Says that the number would be near to now in another unit.
    #[error(
        "the timestamp looks like another unit than the source's (seconds, milliseconds, microseconds)"
    )]
    Unit,
    /// Says that the number is too large for a time.
    #[error("the timestamp is too large")]
    OutOfRange,
    /// Says that there are several timestamps, of which only one can be signed.
    #[error("the timestamp header occurs more than once")]
    Repeated,
}

impl TimestampProblem {
    /// Gives the stable code of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotANumber => "timestamp_not_a_number",
            Self::NotATime => "timestamp_not_a_time",
            Self::Unit => "timestamp_unit",
            Self::OutOfRange => "timestamp_out_of_range",
            Self::Repeated => "timestamp_repeated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_pass_through_and_sentences_are_not_doubled() {
        let rejection = Rejection::from(SignatureProblem::WrongSignature);
        assert_eq!(rejection.code(), "signature_wrong");
        assert_eq!(
            rejection.to_string(),
            SignatureProblem::WrongSignature.to_string()
        );
        assert!(std::error::Error::source(&rejection).is_none());
        assert_eq!(
            Rejection::from(TimestampProblem::Unit).code(),
            "timestamp_unit"
        );
    }
}
