//! Spans of time as they are configured.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// A span of time, written as `300s`, `5m`, `24h`, `90d` or `1m 30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let problem = || format!("{text} is no span of time; write 300s, 5m, 24h or 90d");
        let (mut span, mut rest) = (Duration::ZERO, text.trim());
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, unit) = rest.split_at(digits);
            let letters = unit.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, more) = unit.split_at(letters);
            let unit_ms: u64 = match unit {
                "ms" => 1,
                "s" => 1000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(problem()),
            };
            let number: u64 = number.parse().map_err(|_| problem())?;
            let part = number.checked_mul(unit_ms).map(Duration::from_millis);
            span = part
                .and_then(|part| span.checked_add(part))
                .ok_or_else(problem)?;
            rest = more.trim_start();
        }
        match text.trim().is_empty() {
            true => Err(problem()),
            false => Ok(Self(span)),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units_up_to_days() {
        let seconds = |text: &str| text.parse::<Span>().unwrap().0.as_secs_f64();
        assert_eq!(seconds("300s"), 300.0);
        assert_eq!(seconds("1m 30s"), 90.0);
        assert_eq!(seconds("400d"), 400.0 * 86_400.0);
        assert_eq!(seconds("20ms"), 0.02);
        for text in [
            "",
            " ",
            "5",
            "m",
            "5 m",
            "-5m",
            "1.5h",
            "5x",
            "NaN",
            "99999999999999999999d",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
