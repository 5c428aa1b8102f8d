//! The header `Forwarded` of RFC 7239: `for=192.0.2.60;proto=https, for="[2001:db8::1]:4711"`.

use http::HeaderMap;
use http::header::FORWARDED;

use super::{Hop, Proto, is_hidden, is_host, node};

/// Reads all values of the header as one list; `None` where one of them is malformed.
pub(super) fn read(headers: &HeaderMap) -> Option<Vec<Hop>> {
    let mut hops = Vec::new();
    for value in headers.get_all(FORWARDED) {
        let mut rest = Scanner(value.to_str().ok()?);
        while !rest.is_done() {
            hops.extend(rest.element()?);
        }
    }
    Some(hops)
}

/// What is left to read.
struct Scanner<'a>(&'a str);

impl Scanner<'_> {
    fn is_done(&mut self) -> bool {
        self.skip_space();
        self.0.is_empty()
    }

    /// Reads to the end of an element and over its comma. Lists may have empty elements, which say nothing.
    fn element(&mut self) -> Option<Option<Hop>> {
        let (mut hop, mut names) = (Hop::default(), Vec::<String>::new());
        loop {
            self.skip_space();
            match self.0.as_bytes().first() {
                None => break,
                Some(b',') => {
                    self.0 = &self.0[1..];
                    break;
                }
                Some(b';') => self.0 = &self.0[1..],
                Some(_) => {
                    let name = self.take_while(is_token).to_ascii_lowercase();
                    self.0 = self.0.strip_prefix('=')?;
                    let value = self.value()?;
                    set(&mut hop, &name, value)?;
                    // A parameter that comes twice is an attempt to be read in two ways.
                    if name.is_empty() || names.contains(&name) || !self.is_at_end_of_pair() {
                        return None;
                    }
                    names.push(name);
                }
            }
        }
        Some((!names.is_empty()).then_some(hop))
    }

    fn value(&mut self) -> Option<String> {
        let Some(text) = self.0.strip_prefix('"') else {
            // Many proxies leave out the quotes that the colon of a port asks for; nothing else can be meant.
            let value = self.take_while(|byte| is_token(byte) || b":[]".contains(&byte));
            return (!value.is_empty()).then(|| value.to_owned());
        };
        let (mut value, mut characters) = (String::new(), text.chars());
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => value.push(characters.next()?),
                character => value.push(character),
            }
        }
        self.0 = characters.as_str();
        Some(value)
    }

    fn is_at_end_of_pair(&mut self) -> bool {
        self.skip_space();
        self.0.is_empty() || self.0.starts_with([',', ';'])
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &str {
        let end = self.0.bytes().position(|byte| !is_part(byte));
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Notes a parameter; `None` where it must not have this value. What is unknown is none of our business.
fn set(hop: &mut Hop, name: &str, value: String) -> Option<()> {
    match name {
        "for" if is_hidden(&value) => {}
        "for" => hop.address = Some(node(&value, false)?),
        "proto" => hop.proto = Some(Proto::parse(&value)?),
        "host" if is_host(&value) => hop.host = Some(value),
        "host" => return None,
        _ => {}
    }
    Some(())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn hops(values: &[&str]) -> Option<Vec<String>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(FORWARDED, HeaderValue::from_str(value).unwrap());
        }
        let text = |hop: Hop| {
            let address = hop
                .address
                .map_or("-".into(), |address| address.to_string());
            let proto = hop.proto.map_or("-", Proto::name);
            format!("{address} {proto} {}", hop.host.as_deref().unwrap_or("-"))
        };
        read(&headers).map(|hops| hops.into_iter().map(text).collect())
    }

    #[test]
    fn the_forms_of_the_standard_are_read() {
        for (value, expected) in [
            ("for=192.0.2.43", "192.0.2.43 - -"),
            ("For=\"192.0.2.43:47011\"", "192.0.2.43 - -"),
            ("for=192.0.2.43:47011", "192.0.2.43 - -"),
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17 - -"),
            ("for=\"[2001:db8::1]\"", "2001:db8::1 - -"),
            (
                "for=192.0.2.60;proto=HTTPS;by=203.0.113.43",
                "192.0.2.60 https -",
            ),
            (
                "host=\"a.example:8443\";proto=http;for=_hidden",
                "- http a.example:8443",
            ),
            ("for=unknown; ext=\"a,b;c=\\\"d\\\"\"", "- - -"),
            (";for=1.2.3.4;;", "1.2.3.4 - -"),
            ("for=\"1.2.3\\.4\";", "1.2.3.4 - -"),
            ("for=\"_gazonk:_port\"", "- - -"),
        ] {
            assert_eq!(hops(&[value]), Some(vec![expected.into()]), "{value}");
        }
    }

    #[test]
    fn elements_and_headers_are_one_list() {
        let expected = ["192.0.2.43 - -", "198.51.100.17 - -", "203.0.113.60 http -"];
        let values = [
            "for=192.0.2.43, for=198.51.100.17",
            ", ,for=203.0.113.60;proto=http ,",
        ];
        assert_eq!(hops(&values).unwrap(), expected);
        assert_eq!(hops(&[]), Some(vec![]));
        assert_eq!(hops(&["", " , "]), Some(vec![]));
    }

    #[test]
    fn one_malformed_value_spoils_all() {
        for value in [
            "for",
            "for=",
            "=a",
            "for=\"192.0.2.43",
            "for=\"192.0.2.43\\",
            "for=example.com",
            "for=2001:db8::1",
            "for=\"2001:db8::1\"",
            "for=\"[192.0.2.43]\"",
            "for=192.0.2.43:999999",
            "for=192.0.2.43;for=192.0.2.44",
            "for=192.0.2.43 proto=http",
            "for=192.0.2.43;proto=gopher",
            "for=\"\"",
            "host=a@b",
            "host=\"a/b\"",
            "for = 192.0.2.43",
            "for=192.0.2.43 \u{7f}",
        ] {
            let mut headers = HeaderMap::new();
            headers.append(FORWARDED, HeaderValue::from_static("for=192.0.2.1"));
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.append(FORWARDED, value);
                assert_eq!(read(&headers), None);
            }
        }
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED, HeaderValue::from_bytes(b"for=\xff").unwrap());
        assert_eq!(read(&headers), None);
    }
}
