//! What is believed of a request's way, and the URL that comes of it.

use http::Request;

use super::*;
use crate::config::ServerConfig;

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Trusts the loopback address and 10.0.0.0/8.
fn config() -> ServerConfig {
    let trusted = ["127.0.0.1", "::1", "10.0.0.0/8"];
    ServerConfig {
        trusted_proxies: trusted.iter().map(|text| text.parse().unwrap()).collect(),
        ..ServerConfig::default()
    }
}

fn request(peer: &str, target: &str, headers: Headers<'_>) -> Parts {
    let mut request = Request::post(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut parts = request.body(()).unwrap().into_parts().0;
    let peer = SocketAddr::new(peer.parse().unwrap(), 4711);
    parts.extensions.insert(peer);
    parts
}

fn client(peer: &str, headers: Headers<'_>) -> String {
    let parts = request(peer, "/", headers);
    let trusted = config().trusted_proxies;
    client_address(peer.parse().unwrap(), &parts.headers, &trusted).to_string()
}

fn url(peer: &str, headers: Headers<'_>) -> String {
    public_url(&request(peer, "/hooks/a?b=%2f", headers), &config())
}

#[test]
fn only_a_trusted_peer_is_believed() {
    let headers: Headers = &[("x-forwarded-for", "203.0.113.7")];
    assert_eq!(client("127.0.0.1", headers), "203.0.113.7");
    assert_eq!(client("::1", headers), "203.0.113.7");
    assert_eq!(client("::ffff:127.0.0.1", headers), "203.0.113.7");
    assert_eq!(client("198.51.100.1", headers), "198.51.100.1");
    assert_eq!(client("::ffff:198.51.100.1", headers), "198.51.100.1");
    assert_eq!(client("127.0.0.1", &[]), "127.0.0.1");
}

#[test]
fn the_client_is_the_last_address_that_is_not_trusted() {
    for (chain, expected) in [
        ("203.0.113.7", "203.0.113.7"),
        // What the sender wrote itself stands on the left.
        ("1.2.3.4, 203.0.113.7", "203.0.113.7"),
        ("10.9.9.9, 203.0.113.7, 10.0.0.1", "203.0.113.7"),
        ("10.9.9.9, 10.0.0.1", "10.9.9.9"),
        // A proxy that does not say who it was sent by is the last that is known.
        ("203.0.113.7, unknown, 10.0.0.1", "10.0.0.1"),
        ("203.0.113.7:1234", "203.0.113.7"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:80, ::ffff:10.0.0.1", "2001:db8::1"),
        (", 203.0.113.7 ,", "203.0.113.7"),
    ] {
        assert_eq!(
            client("127.0.0.1", &[("x-forwarded-for", chain)]),
            expected,
            "{chain}"
        );
    }
    let two: Headers = &[
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-for", "10.0.0.1"),
    ];
    assert_eq!(client("127.0.0.1", two), "203.0.113.7");
}

#[test]
fn a_malformed_header_is_not_there() {
    for chain in [
        "203.0.113.7, nonsense",
        "203.0.113.7;",
        "203.0.113.256",
        "203.0.113.7:x",
    ] {
        assert_eq!(
            client("127.0.0.1", &[("x-forwarded-for", chain)]),
            "127.0.0.1",
            "{chain}"
        );
    }
    let both: Headers = &[("forwarded", "for="), ("x-forwarded-for", "203.0.113.7")];
    assert_eq!(client("127.0.0.1", both), "203.0.113.7");
}

#[test]
fn the_header_of_the_standard_tells_the_url() {
    for standard in ["for=203.0.113.7;proto=http", "proto=http"] {
        let headers: Headers = &[
            ("x-forwarded-for", "203.0.113.7"),
            ("x-forwarded-proto", "https"),
            ("forwarded", standard),
            ("host", "in.example"),
        ];
        assert_eq!(client("127.0.0.1", headers), "203.0.113.7");
        assert_eq!(url("127.0.0.1", headers), "http://in.example/hooks/a?b=%2f");
    }
}

#[test]
fn two_headers_that_name_different_senders_name_none() {
    // A proxy that knows one of them passes on the other as the sender invented it.
    for standard in [
        "for=203.0.113.8",
        "for=203.0.113.7, for=_hidden",
        "for=10.0.0.1",
    ] {
        let headers: Headers = &[
            ("x-forwarded-for", "203.0.113.7"),
            ("x-forwarded-proto", "https"),
            ("forwarded", standard),
            ("host", "in.example"),
        ];
        assert_eq!(client("127.0.0.1", headers), "127.0.0.1", "{standard}");
        assert_eq!(url("127.0.0.1", headers), "http://in.example/hooks/a?b=%2f");
    }
}

/// Holds URLs against requests, whose headers are written as `proto: https | host: out` without `X-Forwarded-`.
fn assert_urls(cases: &[(&str, &str)]) {
    for (headers, base) in cases {
        let named = headers
            .split(" | ")
            .filter_map(|text| text.split_once(": "));
        let named = named.map(|(name, value)| match name {
            "forwarded" => (name.to_owned(), value),
            _ => (format!("x-forwarded-{name}"), value),
        });
        let named: Vec<_> = named.collect();
        let mut headers = vec![("host", "in.example:81")];
        headers.extend(named.iter().map(|(name, value)| (name.as_str(), *value)));
        let expected = format!("{base}/hooks/a?b=%2f");
        assert_eq!(url("127.0.0.1", &headers), expected, "{headers:?}");
        let expected = "http://in.example:81/hooks/a?b=%2f";
        assert_eq!(url("198.51.100.1", &headers), expected);
    }
}

#[test]
fn the_url_is_what_the_outermost_trusted_proxy_was_sent() {
    let sender = "forwarded: for=203.0.113.7;proto=https";
    assert_urls(&[
        ("", "http://in.example:81"),
        (sender, "https://in.example:81"),
        (&format!("{sender};host=out.example"), "https://out.example"),
        ("forwarded: host=\"out:8443\";for=_a", "http://out:8443"),
        // The first element is the sender's own, the last the inner proxy's.
        (
            "forwarded: for=1.1.1.1;host=evil, for=203.0.113.7;host=out, for=10.0.0.1;host=mid",
            "http://out",
        ),
    ]);
}

#[test]
fn the_unofficial_headers_tell_the_url_too() {
    assert_urls(&[
        ("proto: https | host: out.example", "https://out.example"),
        (
            "for: 203.0.113.7, 10.0.0.1 | proto: https, http",
            "https://in.example:81",
        ),
        (
            "for: 203.0.113.7, 10.0.0.1 | proto: https",
            "https://in.example:81",
        ),
        // It cannot be told to whom which of the three belongs.
        (
            "for: 203.0.113.7, 10.0.0.1 | proto: https, http, http",
            "http://in.example:81",
        ),
        ("host: out | port: 8443", "http://out:8443"),
        ("host: out | port: 443 | proto: https", "https://out"),
        ("host: out | port: 80 | proto: https", "https://out:80"),
        ("host: out:1 | port: 2", "http://out:1"),
        ("host: [::1] | port: 2", "http://[::1]:2"),
        ("host: out | port: 0", "http://in.example:81"),
        ("host: out | port: +1", "http://in.example:81"),
        ("host: a/b | proto: https", "http://in.example:81"),
        ("host: a@b | proto: https", "http://in.example:81"),
        ("host: out | proto: ws", "http://in.example:81"),
    ]);
}

#[test]
fn a_configured_url_is_the_base_whatever_headers_say() {
    let headers: Headers = &[("host", "in.example"), ("forwarded", "host=out.example")];
    for (base, target, expected) in [
        (
            "https://hooks.example.com",
            "/hooks/a",
            "https://hooks.example.com/hooks/a",
        ),
        (
            "https://example.com/in/",
            "/hooks/a?",
            "https://example.com/in/hooks/a?",
        ),
        (
            "https://x",
            "/hooks/%41//..?a=b+c&%zz&",
            "https://x/hooks/%41//..?a=b+c&%zz&",
        ),
        (
            "https://x",
            "http://absolute.example/hooks/a?b",
            "https://x/hooks/a?b",
        ),
    ] {
        let config = ServerConfig {
            public_url: Some(base.parse().unwrap()),
            ..config()
        };
        assert_eq!(
            public_url(&request("127.0.0.1", target, headers), &config),
            expected
        );
    }
}

#[test]
fn the_host_is_what_the_request_names() {
    let config = config();
    let url = |target: &str, headers| public_url(&request("127.0.0.1", target, headers), &config);
    assert_eq!(
        url("http://absolute.example/a", &[]),
        "http://absolute.example/a"
    );
    assert_eq!(url("/a", &[]), "http:///a");
    assert_eq!(url("/a", &[("host", "x"), ("host", "y")]), "http:///a");
    let mut parts = request(
        "127.0.0.1",
        "/a",
        &[("host", "x"), ("x-forwarded-host", "y")],
    );
    parts.extensions.clear();
    assert_eq!(public_url(&parts, &config), "http://x/a");
}
