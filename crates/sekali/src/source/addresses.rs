//! Lists of addresses: single ones, and networks as `10.0.0.0/8`.

use std::net::IpAddr;

/// A list of addresses and networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(Vec<(IpAddr, u8)>);

impl Addresses {
    /// Reads a list.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> std::result::Result<Self, String> {
        let network = |text: &T| {
            let text = text.as_ref();
            let (address, bits) = match text.split_once('/') {
                Some((address, bits)) => (address, Some(bits)),
                None => (text, None),
            };
            let problem = || format!("`{text}` is no address; write 203.0.113.7 or 10.0.0.0/8");
            let address: IpAddr = address.parse().map_err(|_| problem())?;
            let all = if address.is_ipv4() { 32 } else { 128 };
            let bits = match bits {
                Some(bits) => bits
                    .parse()
                    .ok()
                    .filter(|bits| *bits <= all)
                    .ok_or_else(problem)?,
                None => all,
            };
            Ok((address, bits))
        };
        texts
            .iter()
            .map(network)
            .collect::<std::result::Result<_, String>>()
            .map(Self)
    }

    /// Tells whether an address is listed; an IPv4 address inside of IPv6 counts as itself.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0
            .iter()
            .any(|(network, bits)| match (network.to_canonical(), address) {
                (IpAddr::V4(network), IpAddr::V4(address)) => {
                    let shift = 32 - u32::from((*bits).min(32));
                    let front = |bits: u32| bits.checked_shr(shift).unwrap_or(0);
                    front(network.to_bits()) == front(address.to_bits())
                }
                (IpAddr::V6(network), IpAddr::V6(address)) => {
                    let shift = 128 - u32::from(*bits);
                    let front = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
                    front(network.to_bits()) == front(address.to_bits())
                }
                _ => false,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        let list =
            Addresses::parse(&["10.0.0.0/8", "203.0.113.7", "2001:db8::/32", "::1"]).unwrap();
        for address in [
            "10.255.0.1",
            "203.0.113.7",
            "::ffff:10.1.2.3",
            "2001:db8:1::9",
            "::1",
        ] {
            assert!(list.contain(address.parse().unwrap()), "{address}");
        }
        for address in ["11.0.0.1", "203.0.113.8", "2001:db9::1", "::2"] {
            assert!(!list.contain(address.parse().unwrap()), "{address}");
        }
        assert!(
            Addresses::parse(&["0.0.0.0/0"])
                .unwrap()
                .contain([9, 9, 9, 9].into())
        );
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "example",
            "10.0.0.0/-1",
        ] {
            assert!(Addresses::parse(&[text]).is_err(), "{text}");
        }
    }
}
