//! Where a request came from, and what its sender called: both as they were before proxies passed it on.
//!
//! A header says what its writer likes, so it counts only as far as it was written by a proxy that is trusted: hop by hop,
//! from the peer of the connection towards the sender, and never past the first address that is not trusted. A header that
//! cannot be read counts as one that is not there. Nothing is refused here.

use std::net::{IpAddr, SocketAddr};

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, Uri};

use sekali::source::Addresses;

use crate::config::ServerConfig;

mod forwarded;
mod x_forwarded;

/// What a proxy says about the request that it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hop {
    /// Who sent it; `None` where the proxy does not say.
    address: Option<IpAddr>,
    proto: Option<Proto>,
    host: Option<String>,
    /// The port where `host`, or the header `Host`, has none.
    port: Option<u16>,
}

/// How a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proto {
    Http,
    Https,
}

impl Proto {
    fn parse(text: &str) -> Option<Self> {
        match text {
            _ if text.eq_ignore_ascii_case("http") => Some(Self::Http),
            _ if text.eq_ignore_ascii_case("https") => Some(Self::Https),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Returns the address of who sent a request: the last one on the way from the peer that no trusted proxy has.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &Addresses) -> IpAddr {
    follow(peer, headers, trusted).0
}

/// Returns the absolute URL as the sender called it; path and query are those of the request, byte for byte.
///
/// The peer is the `SocketAddr` among the extensions of the request. A request that names no host, in a configuration
/// that names none either, has a URL without one.
pub(crate) fn public_url(parts: &Parts, config: &ServerConfig) -> String {
    let target = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    if let Some(base) = &config.public_url {
        return format!("{base}{target}");
    }
    let peer = parts.extensions.get::<SocketAddr>();
    let hop = peer
        .and_then(|peer| follow(peer.ip(), &parts.headers, &config.trusted_proxies).1)
        .unwrap_or_default();
    let proto = hop.proto.unwrap_or(Proto::Http);
    let host = hop.host.unwrap_or_else(|| host(&parts.headers, &parts.uri));
    let port = hop
        .port
        .filter(|port| *port != proto.port() && !has_port(&host))
        .map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{host}{port}{target}", proto.name())
}

/// Follows what the headers say from the peer towards the sender; what the standard's header says of the URL wins.
///
/// A proxy that knows one kind of header passes the other one on as the sender wrote it. Where the two name different
/// senders, nobody can tell which is the sender's invention, so neither counts.
fn follow(peer: IpAddr, headers: &HeaderMap, trusted: &Addresses) -> (IpAddr, Option<Hop>) {
    let peer = peer.to_canonical();
    if !trusted.contains(peer) {
        return (peer, None);
    }
    let standard = forwarded::read(headers).unwrap_or_default();
    let other = x_forwarded::read(headers).unwrap_or_default();
    let named = [&standard, &other].map(|hops| hops.iter().any(|hop| hop.address.is_some()));
    let (first, first_hop) = walk(peer, standard, trusted);
    let (second, second_hop) = walk(peer, other, trusted);
    match named {
        [true, true] if first != second => (peer, None),
        [true, _] => (first, first_hop),
        [false, _] => (second, first_hop.or(second_hop)),
    }
}

/// Walks from the peer towards the sender, as long as a trusted proxy tells the next hop.
fn walk(peer: IpAddr, hops: Vec<Hop>, trusted: &Addresses) -> (IpAddr, Option<Hop>) {
    let (mut address, mut last) = (peer, None);
    for hop in hops.into_iter().rev() {
        let next = hop.address;
        last = Some(hop);
        match next {
            Some(next) => address = next.to_canonical(),
            None => break,
        }
        if !trusted.contains(address) {
            break;
        }
    }
    (address, last)
}

/// Returns the host that a request names. Two that differ are no name.
fn host(headers: &HeaderMap, uri: &Uri) -> String {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        (None, _) => uri.authority().map_or("", |authority| authority.as_str()),
        _ => "",
    }
    .to_owned()
}

/// Tells whether a host comes with its port; the colons of an address in brackets are none.
fn has_port(host: &str) -> bool {
    host.rsplit(']')
        .next()
        .is_some_and(|rest| rest.contains(':'))
}

/// Reads an address with or without a port; one of IPv6 stands in brackets, or alone where `is_bare_allowed`.
fn node(text: &str, is_bare_allowed: bool) -> Option<IpAddr> {
    let (address, rest) = match text.strip_prefix('[') {
        Some(text) => {
            let (address, rest) = text.split_once(']')?;
            (IpAddr::V6(address.parse().ok()?), rest)
        }
        None if is_bare_allowed && text.matches(':').count() > 1 => {
            (IpAddr::V6(text.parse().ok()?), "")
        }
        None => {
            let (address, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
            (IpAddr::V4(address.parse().ok()?), rest)
        }
    };
    let is_rest_fine = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    is_rest_fine.then_some(address)
}

/// Tells whether this is a port, or the hidden one that a proxy may write instead.
fn is_port(text: &str) -> bool {
    let is_hidden = text.starts_with('_');
    is_hidden || (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Tells whether a proxy says that it does not say the address.
fn is_hidden(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let (name, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_named = name.len() > 1 && name.starts_with('_') && name.bytes().all(is_name);
    (is_named || name.eq_ignore_ascii_case("unknown")) && is_port(port)
}

/// Tells whether this is a host with or without a port.
fn is_host(text: &str) -> bool {
    !text.contains('@')
        && text
            .parse::<http::uri::Authority>()
            .is_ok_and(|authority| !authority.host().is_empty())
}

#[cfg(test)]
mod tests;
