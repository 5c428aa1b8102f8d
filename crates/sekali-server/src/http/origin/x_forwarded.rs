//! The headers `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`, which no standard describes.
//!
//! Each is a list that every proxy extends, or one value that the outermost proxy wrote. A list of as many values as there
//! are addresses belongs to them one by one, one value belongs to all; anything else cannot be told and spoils all four.

use http::HeaderMap;

use super::{Hop, Proto, is_hidden, is_host, node};

/// Reads all values of the headers; `None` where one of them is malformed.
pub(super) fn read(headers: &HeaderMap) -> Option<Vec<Hop>> {
    let addresses = list(headers, "x-forwarded-for", |text| match is_hidden(text) {
        true => Some(None),
        false => node(text, true).map(Some),
    })?;
    let protos = list(headers, "x-forwarded-proto", Proto::parse)?;
    let hosts = list(headers, "x-forwarded-host", |text| {
        is_host(text).then(|| text.to_owned())
    })?;
    let ports = list(headers, "x-forwarded-port", port)?;
    let says_nothing = protos.is_empty() && hosts.is_empty() && ports.is_empty();
    let addresses = match addresses.is_empty() {
        true if says_nothing => return Some(Vec::new()),
        true => vec![None],
        false => addresses,
    };
    let len = addresses.len();
    let (protos, hosts, ports) = (
        spread(protos, len)?,
        spread(hosts, len)?,
        spread(ports, len)?,
    );
    let of_hops = addresses.into_iter().zip(protos).zip(hosts).zip(ports);
    let hop = |(((address, proto), host), port)| Hop {
        address,
        proto,
        host,
        port,
    };
    Some(of_hops.map(hop).collect())
}

/// Reads all values of a header as one list.
fn list<T>(headers: &HeaderMap, name: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let mut values = Vec::new();
    for value in headers.get_all(name) {
        let texts = value.to_str().ok()?.split(',').map(str::trim);
        for text in texts.filter(|text| !text.is_empty()) {
            values.push(read(text)?);
        }
    }
    Some(values)
}

/// Gives each hop its value; `None` where it cannot be told which.
fn spread<T: Clone>(values: Vec<T>, len: usize) -> Option<Vec<Option<T>>> {
    match values.as_slice() {
        [] => Some(vec![None; len]),
        [value] => Some(vec![Some(value.clone()); len]),
        values if values.len() == len => Some(values.iter().cloned().map(Some).collect()),
        _ => None,
    }
}

fn port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0)
}
