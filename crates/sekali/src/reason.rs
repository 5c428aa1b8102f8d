//! Every code that explains a decision: one spelling in SQL, JSON, metrics, logs and answers.
//!
//! [`Outcome`] says what became of a delivery, [`Status`] where an event stands, [`Reason`] why. A code never changes
//! its meaning and is never reused; the sentence beside it may be improved at any time.

/// Declares a closed set of codes with their spelling and, where there is one, their sentence.
macro_rules! codes {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $code:literal, $sentence:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $(#[doc = $sentence] $(#[$doc])* $variant,)+ }

        impl $name {
            /// All codes, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the stable machine-readable code.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// Returns the sentence for a person.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }

            /// Finds the value that a code stands for.
            pub fn from_code(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.code())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.code())
            }
        }
    };
}

codes! {
    /// What became of one delivery.
    Outcome {
        Accepted = "accepted", "The event is stored and will be applied.";
        Duplicate = "duplicate", "The event is known and its content is the same.";
        InconsistentDuplicate = "rejected_inconsistent_duplicate",
            "The event id is known with other content; the new content is kept as evidence and not applied.";
        Replay = "rejected_replay",
            "The same signed bytes came before under another event id; they are kept as evidence and not applied.";
        Signature = "rejected_signature", "The signature is missing or wrong.";
        Timestamp = "rejected_timestamp", "The signed time is unreadable or outside of the window.";
        Malformed = "rejected_malformed", "The delivery cannot be used as an event.";
        TooLarge = "rejected_too_large", "The body is larger than the limit.";
        Timeout = "rejected_timeout", "The body did not arrive in time.";
        Throttled = "throttled", "Too many requests; try again later.";
        Unavailable = "unavailable", "The event could not be stored now; try again later.";
    }
}

codes! {
    /// Where an event stands.
    Status {
        Received = "received", "Stored, and waiting to be applied.";
        Processing = "processing", "A worker holds its lease.";
        Processed = "processed", "At least one effect was applied.";
        IgnoredOutOfOrder = "ignored_out_of_order", "Stale: its entity already stands at or above its position.";
        IgnoredUnmatched = "ignored_unmatched", "No effect is configured for it.";
        Failed = "failed", "Failed for now; it is tried again.";
        DeadLetter = "dead_letter", "Given up; a person can redrive it.";
        Erased = "erased", "Its content was erased; its key and hashes remain.";
    }
}

impl Status {
    /// Tells whether a worker may still have to do something for the event.
    pub fn is_pending(self) -> bool {
        matches!(self, Self::Received | Self::Processing | Self::Failed)
    }
}

codes! {
    /// Why something was rejected, waits, was skipped or failed.
    Reason {
        // Verification.
        SignatureMissing = "signature_missing", "A header that the signature needs is missing.";
        SignatureMalformed = "signature_malformed", "The signature header cannot be read.";
        SignatureWrong = "signature_wrong", "No active secret produces this signature.";
        SignatureTooMany = "signature_too_many", "The signature header holds more entries than are looked at.";
        SignatureUntrustedKey = "signature_untrusted_key", "The key, or the address it comes from, is not one that the source allows.";
        KeyUnavailable = "key_unavailable", "The sender's key could not be fetched.";
        TimestampNotATime = "timestamp_not_a_time", "The timestamp is no RFC 3339 time with an offset.";
        TimestampUnreadable = "timestamp_not_a_number", "The timestamp is not a plain decimal number.";
        TimestampRepeated = "timestamp_repeated", "The timestamp header occurs more than once.";
        TimestampUnit = "timestamp_unit", "The timestamp seems to be in another unit than the source's.";
        TimestampTooOld = "timestamp_expired", "The timestamp is further in the past than the window allows.";
        TimestampInFuture = "timestamp_in_future", "The timestamp is further in the future than the window allows.";
        TimestampOutOfRange = "timestamp_out_of_range", "The timestamp is no time that can be represented.";
        // Receiving.
        ContentEncoding = "content_encoding", "The body is compressed; only plain bodies are received.";
        BodyTooLarge = "body_too_large", "The body is larger than the configured limit.";
        BodyIncomplete = "body_incomplete", "The body ended before its announced length.";
        BodyTooSlow = "body_too_slow", "The body did not arrive within the time limit.";
        AddressNotAllowed = "address_not_allowed", "The request came from an address that is not listed.";
        RateLimited = "rate_limited", "The rate limit was reached.";
        ShuttingDown = "shutting_down", "The receiver is shutting down.";
        QueueFull = "queue_full", "The admission queue is full.";
        MemoryFull = "memory_full", "The budget for bodies in flight is used up.";
        StoreUnavailable = "store_unavailable", "The store could not take the event.";
        // Identification.
        BodyNotJson = "body_not_json", "The body is not one JSON document.";
        BodyTooDeep = "body_too_deep", "The body is nested too deeply.";
        BodyTooManyValues = "body_too_many_values", "The body holds more values than are read.";
        DuplicateKey = "duplicate_key", "A key on a mapped path occurs twice.";
        BatchTooLarge = "batch_too_large", "The delivery has more elements than are looked at.";
        EventIdMissing = "event_id_missing", "The event id is missing or empty.";
        EventIdTooLong = "event_id_too_long", "The event id is longer than 255 bytes.";
        EventIdInvalid = "event_id_invalid", "The event id is no usable text or number.";
        IdMismatch = "id_mismatch", "The id in the header is not the id in the body.";
        FieldInvalid = "field_invalid", "A mapped field is no usable text or number.";
        FieldTooLong = "field_too_long", "A mapped field is longer than its column.";
        EntityMissing = "entity_missing", "The entity's type or id is missing.";
        VersionInvalid = "version_invalid", "The version is not an integer from 0 to 9223372036854775807.";
        VersionMissing = "version_missing", "The source requires a version and the event has none.";
        OccurredAtInvalid = "occurred_at_invalid", "The time of the event is not RFC 3339 with an offset.";
        OccurredAtInFuture = "occurred_at_in_future", "The time of the event lies too far in the future.";
        PositionMissing = "position_missing", "The event has neither a version nor a time to order it by.";
        // Order.
        OlderVersion = "older_version", "The entity already stands at a higher version.";
        EqualVersion = "equal_version", "The entity already stands at this version.";
        OlderTime = "older_time", "The entity already stands at a later time.";
        LowerRank = "lower_rank", "At the same time, the entity's last event type ranks higher.";
        LowerEventId = "lower_event_id", "At the same time and rank, the entity's last event id is higher.";
        Unversioned = "unversioned", "The entity is ordered by versions and the event has none.";
        VersionConflict = "version_conflict", "Another event with other content claims the same version.";
        VersionRegressed = "version_regressed", "The version is lower although the time is later.";
        WaitingForVersion = "waiting_for_version", "An earlier version has not arrived yet.";
        WaitingForTime = "waiting_for_time", "The event is held until the time it says it happened at.";
        GapTimedOut = "gap_timed_out", "Earlier versions never arrived within the time limit.";
        // Applying.
        NoEffect = "no_effect", "No effect matches the event's type.";
        FieldMissing = "field_missing", "A field that an effect needs is missing.";
        WriteGuard = "write_guard", "The row already stands at a higher version than the event.";
        Constraint = "constraint", "The database refuses the row.";
        EffectTimeout = "effect_timeout", "The effect ran longer than allowed.";
        Preempted = "preempted", "The effect was put back so that new deliveries could be stored.";
        EffectFailed = "effect_failed", "The database could not run the effect.";
        LeaseLost = "lease_lost", "Another worker took the event over.";
        LeaseExpired = "lease_expired", "The worker that held the event did not finish in time.";
        PayloadMissing = "payload_missing", "The stored payload is not there any more.";
        PayloadDamaged = "payload_damaged", "The stored payload is not what was received.";
        SourceRetired = "source_retired", "The event's source is not configured any more.";
        AttemptsExhausted = "attempts_exhausted", "The event failed as often as allowed.";
        // Operators.
        Redriven = "redriven", "An operator asked for another try.";
        Replayed = "replayed", "An operator asked to apply the event again.";
        GivenBack = "given_back", "The worker stopped and gave its lease back.";
        ErasedByOperator = "erased_by_operator", "An operator erased the content.";
        EntityReset = "entity_reset", "An operator cleared the entity's position.";
        VariantAccepted = "variant_accepted", "An operator accepted the content as an event of its own.";
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Reason, Status};

    #[test]
    fn codes_are_unique_and_find_their_value() {
        for (index, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(Reason::from_code(reason.code()), Some(*reason));
            assert!(
                Reason::ALL[..index]
                    .iter()
                    .all(|other| other.code() != reason.code())
            );
            assert!(reason.sentence().ends_with('.'), "{reason} has no sentence");
        }
        assert_eq!(Status::from_code("dead_letter"), Some(Status::DeadLetter));
        assert_eq!(Outcome::from_code("rejected_replay"), Some(Outcome::Replay));
        assert_eq!(Reason::from_code("nonsense"), None);
    }
}
