//! Where a request may go: a list of hosts, and exceptions that only tests and closed networks need.

use http::Uri;
use http::uri::Scheme;
use sekali_verify::matches_label;

use super::FetchError;

/// The longest URL; the ones of providers have less than a tenth.
const MAX_URL_LEN: usize = 2048;

/// Where a request may go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    hosts: Vec<HostPattern>,
    allow_http: bool,
    allow_private: bool,
}

impl Rule {
    /// Allows hosts by patterns such as `sns.*.amazonaws.com` or `keys.example.com:8443`; the error says what is wrong.
    ///
    /// A `*` stands for any characters of one label, a `?` for one letter. A port may be called only where the pattern has it.
    pub(crate) fn hosts<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let hosts = patterns.into_iter().map(HostPattern::parse);
        Ok(Self {
            hosts: hosts.collect::<Result<_, _>>()?,
            allow_http: false,
            allow_private: false,
        })
    }

    /// Allows `http://` beside `https://`: whoever is on the way can then write the answer.
    #[cfg(test)]
    pub(crate) fn allow_http(self) -> Self {
        Self {
            allow_http: true,
            ..self
        }
    }

    /// Allows addresses that are not of the public internet.
    pub(crate) fn allow_private(self) -> Self {
        Self {
            allow_private: true,
            ..self
        }
    }

    pub(super) fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// Reads a URL that this rule allows.
    pub(crate) fn target(&self, url: &str) -> Result<Target, FetchError> {
        self.read(url).ok_or(FetchError::HostNotAllowed)
    }

    fn read(&self, url: &str) -> Option<Target> {
        let is_plain = url.len() <= MAX_URL_LEN && url.bytes().all(|byte| byte.is_ascii_graphic());
        let uri: Uri = is_plain.then(|| url.parse().ok())??;
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let is_http = self.allow_http && uri.scheme() == Some(&Scheme::HTTP);
        if !is_tls && !is_http {
            return None;
        }
        let host = uri.host()?.to_ascii_lowercase();
        let port = uri.port_u16();
        let authority = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        // Whatever is not written like this has user info, an empty port or one with zeros in front.
        if !uri.authority()?.as_str().eq_ignore_ascii_case(&authority) {
            return None;
        }
        let is_allowed = self.hosts.iter().any(|pattern| pattern.allows(&host, port));
        is_allowed.then(|| Target {
            is_tls,
            port: port.unwrap_or(if is_tls { 443 } else { 80 }),
            host: host.trim_matches(['[', ']']).to_owned(),
            authority,
            path: uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
        })
    }
}

/// A URL that was checked, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) is_tls: bool,
    /// In lower case, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// The host, and the port where the URL has one.
    pub(super) authority: String,
    /// With the query.
    pub(super) path: String,
}

/// A host, with `*` for any label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HostPattern {
    host: String,
    port: Option<u16>,
}

impl HostPattern {
    fn parse(text: &str) -> Result<Self, String> {
        let problem = || format!("{text} is no host; write sns.*.amazonaws.com, without https://");
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => {
                (host, Some(port.parse::<u16>().map_err(|_| problem())?))
            }
            _ => (text, None),
        };
        let is_name = host.split('.').all(|label| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_*?".contains(&byte);
            !label.is_empty() && label.bytes().all(is_part)
        });
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let is_address = bracketed.is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
        // One that ends in a star would allow the hosts of anybody.
        if !(is_name || is_address) || host.ends_with('*') || port == Some(0) {
            return Err(problem());
        }
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port,
        })
    }

    fn allows(&self, host: &str, port: Option<u16>) -> bool {
        let (mut wanted, mut labels) = (self.host.split('.'), host.split('.'));
        let is_host = loop {
            match (wanted.next(), labels.next()) {
                (None, None) => break true,
                (Some(wanted), Some(label))
                    if !label.is_empty() && matches_label(wanted.as_bytes(), label.as_bytes()) => {}
                _ => break false,
            }
        };
        is_host && self.port == port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        Rule::hosts([
            "sns.*.amazonaws.com",
            "Keys.example.com:8443",
            "[2606:4700::1]",
        ])
        .unwrap()
    }

    #[test]
    fn hosts_of_the_patterns_are_allowed() {
        for (url, authority, port) in [
            (
                "https://sns.eu-central-1.amazonaws.com/a?b",
                "sns.eu-central-1.amazonaws.com",
                443,
            ),
            ("HTTPS://SNS.x.AmazonAWS.com", "sns.x.amazonaws.com", 443),
            (
                "https://keys.example.com:8443/",
                "keys.example.com:8443",
                8443,
            ),
            ("https://[2606:4700::1]/", "[2606:4700::1]", 443),
        ] {
            let target = rule().target(url).unwrap();
            assert_eq!(
                (target.authority.as_str(), target.port),
                (authority, port),
                "{url}"
            );
        }
        let url = "https://sns.x.amazonaws.com/a//b?c=%2f&d#e";
        assert_eq!(rule().target(url).unwrap().path, "/a//b?c=%2f&d");
    }

    #[test]
    fn everything_else_is_refused() {
        for url in [
            "",
            "sns.x.amazonaws.com",
            "//sns.x.amazonaws.com/",
            "/path",
            "http://sns.x.amazonaws.com/",
            "ftp://sns.x.amazonaws.com/",
            "https://sns.amazonaws.com/",
            "https://sns..amazonaws.com/",
            "https://sns.x.y.amazonaws.com/",
            "https://a.sns.x.amazonaws.com/",
            "https://sns.x.amazonaws.com.evil.example/",
            "https://sns.x.amazonaws.com./",
            "https://evil.example/sns.x.amazonaws.com",
            "https://evil.example#.sns.x.amazonaws.com/",
            "https://evil.example\\.sns.x.amazonaws.com/",
            "https://sns.x.amazonaws.com@evil.example/",
            "https://user@sns.x.amazonaws.com/",
            "https://user:pass@sns.x.amazonaws.com/",
            "https://sns.x.amazonaws.com:443/",
            "https://sns.x.amazonaws.com:8443/",
            "https://sns.x.amazonaws.com:/",
            "https://keys.example.com/",
            "https://keys.example.com:08443/",
            "https://sns.x%2eamazonaws.com/",
            "https://sns.x\u{ff0e}y.amazonaws.com/",
            " https://sns.x.amazonaws.com/",
            "https://sns.x.amazonaws.com/\r\nHost: x",
            "https://[2606:4700::2]/",
        ] {
            let refused = rule().target(url).unwrap_err();
            assert_eq!(refused.code(), "host_not_allowed", "{url}");
        }
        let long = format!("https://sns.x.amazonaws.com/{}", "a".repeat(MAX_URL_LEN));
        assert!(rule().target(&long).is_err());
        assert!(
            Rule::hosts([])
                .unwrap()
                .target("https://example.com/")
                .is_err()
        );
    }

    #[test]
    fn http_needs_a_rule_that_says_so() {
        let rule = rule().allow_http();
        assert_eq!(rule.target("http://sns.x.amazonaws.com/").unwrap().port, 80);
        assert!(rule.target("https://sns.x.amazonaws.com/").unwrap().is_tls);
        assert!(rule.target("ftp://sns.x.amazonaws.com/").is_err());
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            "*",
            "example.*",
            "a..b",
            ".a",
            "a.",
            "https://example.com",
            "example.com/a",
            "example.com:0",
            "example.com:x",
            "example.com:",
            "user@example.com",
            "[::1",
            "[x]",
        ] {
            assert!(Rule::hosts([text]).is_err(), "{text}");
        }
    }
}
