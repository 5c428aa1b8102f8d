//! The address under which senders know the receiver, as it is written in the config file.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use serde::{Deserialize, Deserializer, de};

/// Scheme, authority and, where there is one, a prefix of the path; without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicUrl(String);

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem =
            |what: &str| format!("{text}: {what}; write it like https://hooks.example.com");
        let url: Uri = text.parse().map_err(|_| problem("this is no URL"))?;
        if !matches!(url.scheme_str(), Some("http" | "https")) {
            return Err(problem("it must begin with https:// or http://"));
        }
        let authority = url.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') || url.host().is_none_or(str::is_empty) {
            return Err(problem("after the scheme comes the host alone"));
        }
        if text.contains(['?', '#']) {
            return Err(problem("it has neither query nor fragment"));
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PublicUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_host_port_and_prefix_are_kept_as_written() {
        for (text, kept) in [
            ("https://hooks.example.com", "https://hooks.example.com"),
            ("https://hooks.example.com/", "https://hooks.example.com"),
            ("http://[::1]:8080/in/", "http://[::1]:8080/in"),
            (
                "https://Hooks.Example.com/a%2Fb",
                "https://Hooks.Example.com/a%2Fb",
            ),
        ] {
            assert_eq!(text.parse::<PublicUrl>().unwrap().to_string(), kept);
        }
    }

    #[test]
    fn what_is_no_base_is_refused() {
        for text in [
            "",
            "hooks.example.com",
            "/hooks",
            "ftp://example.com",
            "https://user@example.com",
            "https://example.com?a=b",
            "https://example.com/?",
            "https://example.com/#a",
            "https://",
        ] {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
