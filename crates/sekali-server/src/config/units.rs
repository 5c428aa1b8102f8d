//! Sizes and spans as they are written in the config file.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sekali::source::Span;
use serde::{Deserialize, Deserializer, de};

/// A size in bytes, written as `1048576`, `512KiB` or `5MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) usize);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || format!("{text} is no size; write 1048576, 512KiB or 5MiB");
        let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
        let factor: usize = match &text[digits.len()..] {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(problem()),
        };
        let number: usize = digits.parse().map_err(|_| problem())?;
        number
            .checked_mul(factor)
            .filter(|size| *size > 0)
            .map(Self)
            .ok_or_else(problem)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 1048576 or \"5MiB\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
                usize::try_from(bytes)
                    .ok()
                    .filter(|size| *size > 0)
                    .map(Size)
                    .ok_or_else(|| E::custom("a size is above 0"))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A span of time, or for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep(pub(crate) Option<Duration>);

impl Keep {
    pub(super) fn ms(self) -> Option<i64> {
        self.0
            .map(|keep| i64::try_from(keep.as_millis()).unwrap_or(i64::MAX))
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "forever" {
            return Ok(Self(None));
        }
        text.parse::<Span>()
            .map(|span| Self(Some(span.into())))
            .map_err(de::Error::custom)
    }
}
