//! Lists of addresses as they are written in the config file: `["203.0.113.7", "10.0.0.0/8", "::1"]`.
//!
//! An IPv4 address that is written as an IPv6 one (`::ffff:10.0.0.1`, which is how a socket for both kinds reports it) is
//! the IPv4 address. Names are not resolved.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

/// Addresses and networks; the empty list contains nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Addresses(Vec<Network>);

impl Addresses {
    /// Tells whether an address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl FromIterator<Network> for Addresses {
    fn from_iter<T: IntoIterator<Item = Network>>(networks: T) -> Self {
        Self(networks.into_iter().collect())
    }
}

/// All addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix_len: u32,
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4()
            && masked(address, self.prefix_len) == bits(self.first)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem =
            || format!("{text} is no address; write 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32");
        let (first, prefix_len) = match text.split_once('/') {
            Some((first, len)) if len.bytes().all(|byte| byte.is_ascii_digit()) => {
                (first, Some(len.parse::<u32>().map_err(|_| problem())?))
            }
            Some(_) => return Err(problem()),
            None => (text, None),
        };
        let written: IpAddr = first.parse().map_err(|_| problem())?;
        let first = written.to_canonical();
        if prefix_len.is_some() && first != written {
            return Err(format!("{text}: write the network as one of IPv4"));
        }
        let prefix_len = prefix_len.unwrap_or(width(first));
        if prefix_len > width(first) {
            return Err(problem());
        }
        if masked(first, prefix_len) != bits(first) {
            return Err(format!(
                "{text}: the address goes on after its first {prefix_len} bits; one of the two is a typing error"
            ));
        }
        Ok(Self { first, prefix_len })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix_len)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn masked(address: IpAddr, prefix_len: u32) -> u128 {
    let rest = width(address) - prefix_len;
    let cut = bits(address).checked_shr(rest).unwrap_or(0);
    cut.checked_shl(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        let addresses: Addresses = [network.parse::<Network>().unwrap()].into_iter().collect();
        addresses.contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_ends_where_its_bits_say() {
        for (network, inside, outside) in [
            ("203.0.113.7", "203.0.113.7", "203.0.113.8"),
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("203.0.113.128/25", "203.0.113.128", "203.0.113.127"),
            ("192.0.2.4/32", "192.0.2.4", "192.0.2.5"),
            ("::1", "::1", "::2"),
            ("2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::/0", "ffff::", "1.2.3.4"),
        ] {
            assert!(contains(network, inside), "{network} {inside}");
            assert!(!contains(network, outside), "{network} {outside}");
        }
    }

    #[test]
    fn an_ipv4_address_is_known_in_its_ipv6_form() {
        assert!(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(contains("::ffff:10.1.2.3", "10.1.2.3"));
        assert!(!contains("::/0", "::ffff:10.1.2.3"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "localhost",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.1/8",
            "10.0.0.0/8/8",
            "::/129",
            "::ffff:10.0.0.0/104",
            "10.0.0.0/99999999999",
            "10.0.0",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
