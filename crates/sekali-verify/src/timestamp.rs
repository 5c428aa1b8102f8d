//! Signed times: their grammar, their unit and the window around now.
//!
//! Only called for text that a genuine signature covers. It does not know headers or schemes, and
//! no number can make it overflow.

use std::fmt;

use crate::rejection::TimestampProblem;
use crate::scheme::TimeUnit;
use crate::times::parse_time;

/// Longer numbers are no time in any unit, and these still fit into 64 bits.
const MAX_DIGITS: usize = 18;

/// A time further from now than this is rather a wrong unit than a late delivery.
const PLAUSIBLE_MS: i128 = 366 * 24 * 60 * 60 * 1000;

/// How far from now a signed time may be; both limits are still inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The greatest age, in milliseconds.
    pub past_ms: i64,
    /// The greatest lead over the receiver's clock, in milliseconds.
    pub future_ms: i64,
}

/// The side on which a signed time lies outside of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaleReason {
    /// Says that it is too old.
    Expired,
    /// Says that it is too far ahead.
    InFuture,
}

impl StaleReason {
    /// Gives the stable code of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Expired => "timestamp_expired",
            Self::InFuture => "timestamp_in_future",
        }
    }
}

impl fmt::Display for StaleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the signed timestamp is older than the source allows",
            Self::InFuture => "the signed timestamp is further ahead than the source allows",
        })
    }
}

/// A readable signed time, held against now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) signed_at_ms: i64,
    pub(crate) drift_ms: i64,
    /// Is none inside of the window.
    pub(crate) stale: Option<StaleReason>,
}

/// Reads a timestamp and places it in or outside of the window.
pub(crate) fn read(
    text: &[u8],
    unit: TimeUnit,
    window: Window,
    now_ms: i64,
) -> Result<Reading, TimestampProblem> {
    let now = i128::from(now_ms);
    // 128 bits: no product of 18 digits and a unit, and no difference to now, can overflow.
    let (signed_at, number) = match unit {
        TimeUnit::UnixSeconds => digits(text).map(|number| (number * 1000, Some(number)))?,
        TimeUnit::UnixMillis => digits(text).map(|number| (number, Some(number)))?,
        TimeUnit::Rfc3339 => (written(text)?, None),
    };
    let drift = now - signed_at;
    let stale = if drift > i128::from(window.past_ms) {
        Some(StaleReason::Expired)
    } else if -drift > i128::from(window.future_ms) {
        Some(StaleReason::InFuture)
    } else {
        None
    };
    let seems_other = |number| fits_another_unit(number, now);
    if stale.is_some() && drift.abs() > PLAUSIBLE_MS && number.is_some_and(seems_other) {
        return Err(TimestampProblem::Unit);
    }
    let signed_at_ms = i64::try_from(signed_at).map_err(|_| TimestampProblem::OutOfRange)?;
    Ok(Reading {
        signed_at_ms,
        drift_ms: now_ms.saturating_sub(signed_at_ms),
        stale,
    })
}

/// Tells whether a text is a time at all, before it is known whether anybody signed it.
pub(crate) fn is_readable(text: &[u8], unit: TimeUnit) -> bool {
    match unit {
        TimeUnit::UnixSeconds | TimeUnit::UnixMillis => digits(text).is_ok(),
        TimeUnit::Rfc3339 => written(text).is_ok(),
    }
}

fn written(text: &[u8]) -> Result<i128, TimestampProblem> {
    let nanos = std::str::from_utf8(text).ok().and_then(parse_time);
    nanos
        .map(|nanos| i128::from(nanos.div_euclid(1_000_000)))
        .ok_or(TimestampProblem::NotATime)
}

fn digits(text: &[u8]) -> Result<i128, TimestampProblem> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(TimestampProblem::NotANumber);
    }
    if text.len() > MAX_DIGITS {
        return Err(TimestampProblem::OutOfRange);
    }
    Ok(text
        .iter()
        .fold(0, |number, digit| number * 10 + i128::from(digit - b'0')))
}

/// Asked only after the number was implausible in its own unit, which need not be left out here.
fn fits_another_unit(number: i128, now: i128) -> bool {
    [number * 1000, number, number / 1000]
        .iter()
        .any(|other| (now - other).abs() <= PLAUSIBLE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_767_225_600_000;
    const WINDOW: Window = Window {
        past_ms: 300_000,
        future_ms: 200_000,
    };

    fn seconds(text: &str) -> Result<Reading, TimestampProblem> {
        read(text.as_bytes(), TimeUnit::UnixSeconds, WINDOW, NOW)
    }

    fn millis(text: &str) -> Result<Reading, TimestampProblem> {
        read(text.as_bytes(), TimeUnit::UnixMillis, WINDOW, NOW)
    }

    #[test]
    fn the_limits_are_inside() {
        let stale = |at: i64| millis(&at.to_string()).unwrap().stale;
        assert_eq!(stale(NOW - 300_000), None);
        assert_eq!(stale(NOW - 300_001), Some(StaleReason::Expired));
        assert_eq!(stale(NOW + 200_000), None);
        assert_eq!(stale(NOW + 200_001), Some(StaleReason::InFuture));
        assert_eq!(seconds("1767225590").unwrap().drift_ms, 10_000);
    }

    #[test]
    fn only_plain_digits_are_a_time() {
        for text in [
            "",
            "abc",
            "+1767225600",
            "-1",
            "1.0",
            "1.7e9",
            "0x10",
            "NaN",
            "1 2",
            "１",
        ] {
            assert_eq!(seconds(text), Err(TimestampProblem::NotANumber), "{text:?}");
        }
    }

    #[test]
    fn written_times_are_read_to_the_millisecond() {
        let at = |text: &str| read(text.as_bytes(), TimeUnit::Rfc3339, WINDOW, NOW);
        assert_eq!(at("2025-12-31T23:59:59.9994Z").unwrap().drift_ms, 1);
        assert_eq!(at("2026-01-01T07:00:00+07:00").unwrap().drift_ms, 0);
        assert_eq!(at("2026-01-01T00:00:00"), Err(TimestampProblem::NotATime));
        assert_eq!(at("1767225600"), Err(TimestampProblem::NotATime));
    }

    #[test]
    fn another_unit_is_named() {
        assert_eq!(seconds("1767225600000"), Err(TimestampProblem::Unit));
        assert_eq!(seconds("1767225600000000"), Err(TimestampProblem::Unit));
        assert_eq!(millis("1767225600"), Err(TimestampProblem::Unit));
        assert_eq!(millis("1767225600000000"), Err(TimestampProblem::Unit));
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        assert_eq!(
            seconds("999999999999999999"),
            Err(TimestampProblem::OutOfRange)
        );
        assert_eq!(
            seconds("9999999999999999999"),
            Err(TimestampProblem::OutOfRange)
        );
        assert_eq!(
            millis("999999999999999999").unwrap().stale,
            Some(StaleReason::InFuture)
        );
        let widest = Window {
            past_ms: i64::MAX,
            future_ms: i64::MAX,
        };
        for now in [i64::MIN, 0, i64::MAX] {
            assert!(read(b"999999999999999999", TimeUnit::UnixMillis, widest, now).is_ok());
        }
        let narrowest = Window {
            past_ms: i64::MIN,
            future_ms: i64::MIN,
        };
        assert!(
            read(b"0", TimeUnit::UnixMillis, narrowest, 0)
                .unwrap()
                .stale
                .is_some()
        );
    }

    #[test]
    fn small_clocks_are_not_taken_for_another_unit() {
        let reading = read(b"800", TimeUnit::UnixSeconds, WINDOW, 400_000).unwrap();
        assert_eq!(reading.stale, Some(StaleReason::InFuture));
    }
}
