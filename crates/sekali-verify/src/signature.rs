//! Finds the signatures in a request and compares them.
//!
//! Works on the bytes of header values, with a fixed number of entries and no allocation. It does
//! not know what is signed.

use hmac::Hmac;
use hmac::digest::CtOutput;
use http::HeaderMap;
use sha2::Sha256;

use crate::rejection::SignatureProblem;
use crate::scheme::{Encoding, Place, Signature};

/// Rotation needs two entries, a few versions side by side some more; beyond that it is an attack.
const MAX_ENTRIES: usize = 16;

const DIGEST_BYTES: usize = 32;

/// The well-formed signatures of one request.
pub(crate) struct Candidates {
    decoded: [[u8; DIGEST_BYTES]; MAX_ENTRIES],
    len: usize,
}

impl Candidates {
    /// Collects the signatures out of all values of the scheme's header.
    pub(crate) fn find(
        signature: &Signature,
        headers: &HeaderMap,
    ) -> Result<Self, SignatureProblem> {
        let mut found = Self {
            decoded: [[0; DIGEST_BYTES]; MAX_ENTRIES],
            len: 0,
        };
        let mut seen = 0;
        let mut is_missing = true;
        for value in headers.get_all(signature.place.header()) {
            is_missing = false;
            for entry in entries(&signature.place, value.as_bytes()) {
                seen += 1;
                if seen > MAX_ENTRIES {
                    return Err(SignatureProblem::TooMany);
                }
                found.take(signature, entry);
            }
        }
        match found.len {
            _ if is_missing => Err(SignatureProblem::Missing),
            0 => Err(SignatureProblem::Malformed),
            _ => Ok(found),
        }
    }

    /// Tells whether one of the signatures is the expected one, in constant time for each.
    pub(crate) fn contain(&self, expected: &CtOutput<Hmac<Sha256>>) -> bool {
        self.decoded[..self.len]
            .iter()
            .any(|bytes| *expected == CtOutput::new((*bytes).into()))
    }

    /// Entries with another label or of another length are passed over, whatever they hold.
    fn take(&mut self, signature: &Signature, entry: &[u8]) {
        let Some(text) = entry.strip_prefix(signature.place.label().as_bytes()) else {
            return;
        };
        let slot = &mut self.decoded[self.len];
        let is_decoded = match signature.encoding {
            Encoding::Hex => hex::decode_to_slice(text, slot).is_ok(),
        };
        self.len += usize::from(is_decoded);
    }
}

fn entries<'a>(place: &Place, value: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let is_list = matches!(place, Place::Labelled { .. });
    let is_separator = move |byte: &u8| is_list && matches!(byte, b',' | b' ' | b'\t');
    value
        .split(is_separator)
        .map(<[u8]>::trim_ascii)
        .filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::Scheme;
    use http::HeaderValue;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn count(scheme: &Scheme, values: &[&str]) -> Result<usize, SignatureProblem> {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            headers.append(scheme.signature.place.header(), value);
        }
        Candidates::find(&scheme.signature, &headers).map(|found| found.len)
    }

    #[test]
    fn entries_of_all_values_count() {
        let scheme = Scheme::standard();
        for list in [
            "v1=A,v1=A",
            "v1=A, v1=A",
            "v1=A v1=A",
            " v1=A ,\tv1=A ",
            "v0=A,v1=A,v1=A",
        ] {
            assert_eq!(count(&scheme, &[&list.replace('A', A)]), Ok(2), "{list}");
        }
        let one = format!("v1={A}");
        assert_eq!(count(&scheme, &[&one, "v1=bad", &one]), Ok(2));
    }

    #[test]
    fn absent_and_unusable_differ() {
        let scheme = Scheme::standard();
        assert_eq!(count(&scheme, &[]), Err(SignatureProblem::Missing));
        for list in [
            "", "v1=", "v1=abc", "A", "v0=A", "V1=A", "sha256=A", "v1=Aa", "v1= A", ",, ,",
        ] {
            let list = list.replace('A', A);
            assert_eq!(
                count(&scheme, &[&list]),
                Err(SignatureProblem::Malformed),
                "{list}"
            );
        }
    }

    #[test]
    fn a_plain_header_is_one_signature() {
        let scheme = Scheme::body_only();
        assert_eq!(count(&scheme, &[A]), Ok(1));
        assert_eq!(
            count(&scheme, &[&format!("  {}  ", A.to_uppercase())]),
            Ok(1)
        );
        assert_eq!(
            count(&scheme, &[&format!("{A},{A}")]),
            Err(SignatureProblem::Malformed)
        );
    }

    #[test]
    fn the_number_of_entries_is_limited() {
        let scheme = Scheme::standard();
        let one = format!("v1={A},");
        assert_eq!(count(&scheme, &[&one.repeat(16)]), Ok(16));
        assert_eq!(
            count(&scheme, &[&one.repeat(16), &one]),
            Err(SignatureProblem::TooMany)
        );
        assert_eq!(
            count(&scheme, &[&"v1=00,".repeat(10_000)]),
            Err(SignatureProblem::TooMany)
        );
    }

    #[test]
    fn good_entries_may_fill_the_list_with_bad_ones_behind() {
        let full = format!("{}v1=00", format!("v1={A},").repeat(15));
        assert_eq!(count(&Scheme::standard(), &[&full]), Ok(15));
    }
}
