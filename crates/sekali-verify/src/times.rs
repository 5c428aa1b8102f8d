//! Times as providers write them, as nanoseconds since 1970, UTC.
//!
//! A time is an instant: text needs an offset, its own or the one that its provider is known for. Numbers
//! are read digit by digit and never pass through a float.

use std::fmt::Write as _;

use serde::Deserialize;

/// What a number counts where it stands for a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberUnit {
    /// Counts nothing: a number is no time.
    #[default]
    None,
    /// Counts seconds, with a fraction where there is one.
    Seconds,
    /// Counts milliseconds.
    Millis,
    /// Counts seconds below 100 000 000 000 and milliseconds from there on.
    Auto,
}

/// Reads a time in any of the forms that a provider uses.
pub fn parse_any(text: &str, unit: NumberUnit, offset: Option<&str>) -> Option<i64> {
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number {
        return parse_number(text, unit);
    }
    // GitLab writes `2015-05-17 18:08:09 UTC`, Jira `+0000`.
    if let Some(front) = text.strip_suffix(" UTC") {
        return parse_time(&format!("{front}Z"));
    }
    if let Some((front, minutes)) = text
        .len()
        .checked_sub(2)
        .and_then(|at| text.split_at_checked(at))
        && let [.., b'+' | b'-', _, _] = front.as_bytes()
    {
        return parse_time(&format!("{front}:{minutes}"));
    }
    parse_time(text).or_else(|| parse_time(&format!("{text}{}", offset?)))
}

/// Reads a decimal number of seconds or milliseconds.
fn parse_number(text: &str, unit: NumberUnit) -> Option<i64> {
    const MILLIS_FROM: i128 = 100_000_000_000;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_decimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 18 || !is_decimal(whole) || !is_decimal(fraction) {
        return None;
    }
    let number: i128 = whole.parse().ok()?;
    let digits = match unit {
        NumberUnit::None => return None,
        NumberUnit::Seconds => 9,
        NumberUnit::Auto if number < MILLIS_FROM => 9,
        NumberUnit::Millis | NumberUnit::Auto => 6,
    };
    let (kept, cut) = fraction.split_at(fraction.len().min(digits));
    if cut.bytes().any(|digit| digit != b'0') {
        return None;
    }
    let fraction: i128 = format!("{kept:0<digits$}").parse().ok()?;
    let scale = 10_i128.pow(u32::try_from(digits).ok()?);
    i64::try_from(number * scale + fraction).ok()
}

/// Reads an RFC 3339 time with an offset into nanoseconds UTC, from the year 1678 to 2261.
///
/// `T` and `Z` may be lower case and a blank may stand for the `T`, as RFC 3339 §5.6 allows; fraction digits after the
/// ninth must be 0. Without an offset there is no instant, so that such text is refused.
pub fn parse_time(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let has_shape = bytes.len() >= 20
        && bytes[..19]
            .iter()
            .zip(b"dddd-dd-ddTdd:dd:dd")
            .all(|(byte, form)| match form {
                b'd' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b't' | b' '),
                other => byte == other,
            });
    if !has_shape {
        return None;
    }
    let (fraction, offset) = split_fraction(&text[19..])?;
    let offset = match offset {
        "Z" | "z" => "Z",
        offset if is_offset(offset.as_bytes()) => offset,
        _ => return None,
    };
    let mut normal = String::with_capacity(40);
    let _ = write!(
        normal,
        "{}T{}{fraction}{offset}",
        &text[..10],
        &text[11..19]
    );
    let timestamp: jiff::Timestamp = normal.parse().ok()?;
    i64::try_from(timestamp.as_nanosecond()).ok()
}

/// Splits `.123Z` into `.123` and `Z`, cutting zeros after the ninth digit.
fn split_fraction(rest: &str) -> Option<(&str, &str)> {
    let Some(digits) = rest.strip_prefix('.') else {
        return Some(("", rest));
    };
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    if len == 0
        || digits.as_bytes()[..len]
            .iter()
            .skip(9)
            .any(|digit| *digit != b'0')
    {
        return None;
    }
    Some((&rest[..=len.min(9)], &digits[len..]))
}

fn is_offset(bytes: &[u8]) -> bool {
    matches!(bytes, [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_instants_whatever_their_spelling() {
        let at = |text| parse_time(text).unwrap_or_else(|| panic!("{text} was refused"));
        assert_eq!(at("1970-01-01T00:00:01Z"), 1_000_000_000);
        assert_eq!(at("2026-01-01T00:00:00Z"), at("2026-01-01t00:00:00z"));
        assert_eq!(at("2026-01-01T00:00:00Z"), at("2026-01-01 00:00:00+00:00"));
        assert_eq!(at("2026-01-01T00:00:00.10Z"), at("2026-01-01T00:00:00.1Z"));
        assert_eq!(
            at("2026-01-01T00:00:00.123456789Z") % 1_000_000_000,
            123_456_789
        );
        assert_eq!(
            at("2026-01-01T00:00:00.1234567890Z"),
            at("2026-01-01T00:00:00.123456789Z")
        );
        assert!(at("2026-01-01T00:30:00+03:00") < at("2026-01-01T00:00:00Z"));
        assert!(at("2026-01-01T00:00:00Z") < at("2026-01-01T00:00:00.1Z"));
    }

    #[test]
    fn text_without_one_instant_is_refused() {
        for text in [
            "2026-01-01T00:00:00",
            "2026-01-01",
            "",
            "1767225600",
            "2026-01-01T00:00:00.Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00+0300",
            "2026-01-01T00:00:00.1234567891Z",
            "1500-01-01T00:00:00Z",
            "9999-01-01T00:00:00Z",
            "2026-01-01T00:00:00[UTC]",
            "2026-01-01T00:00:00Z[UTC]",
            "20260101T000000Z",
            "2026-01-01T24:00:00Z",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn every_provider_s_form_is_read() {
        let at = |text: &str, unit| parse_any(text, unit, None);
        let second = Some(1_759_999_999_000_000_000);
        assert_eq!(at("1759999999", NumberUnit::Seconds), second);
        assert_eq!(at("1759999999000", NumberUnit::Millis), second);
        assert_eq!(at("1759999999", NumberUnit::Auto), second);
        assert_eq!(at("1759999999000", NumberUnit::Auto), second);
        assert_eq!(
            at("1759999999.000200", NumberUnit::Seconds),
            second.map(|at| at + 200_000)
        );
        assert_eq!(at("1759999999", NumberUnit::None), None);
        assert_eq!(at("2025-10-09 08:53:19 UTC", NumberUnit::None), second);
        assert_eq!(at("2025-10-09T08:53:19.000+0000", NumberUnit::None), second);
        assert_eq!(
            parse_any("2025-10-09 15:53:19", NumberUnit::None, Some("+07:00")),
            second
        );
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "1..2",
            "-1",
            "99999999999999999999",
            "1.0000000001",
        ] {
            let is_whole = text == "1.";
            assert_eq!(at(text, NumberUnit::Seconds).is_some(), is_whole, "{text}");
        }
    }
}
