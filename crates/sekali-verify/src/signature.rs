//! Finds the signatures in a request and decodes them.
//!
//! Works on the bytes of values, with a bounded number of entries. It does not know what is signed.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::key::decode_base64;
use crate::rejection::SignatureProblem;
use crate::scene::Scene;
use crate::scheme::{Algorithm, Encoding, Entries, Signature, Spot};

/// Rotation needs two entries, a few versions side by side some more; beyond that it is an attack.
const MAX_ENTRIES: usize = 16;

/// DocuSign numbers its headers up to 100, one for each active key.
const MAX_NUMBERED: usize = 100;

/// Collects the well-formed signatures of one request.
pub(crate) fn find(
    scene: &Scene<'_, '_>,
    signature: &Signature,
    label: &str,
    algorithm: Algorithm,
) -> Result<Vec<Vec<u8>>, SignatureProblem> {
    let limit = match signature.spot {
        Spot::Numbered(_) => MAX_NUMBERED,
        _ => MAX_ENTRIES,
    };
    let mut found = Vec::with_capacity(1);
    let (mut seen, mut is_missing, mut is_of_another) = (0, true, false);
    for value in scene.values(&signature.spot)? {
        // A blank value is as good as none.
        is_missing &= value.trim_ascii().is_empty();
        for entry in entries(&signature.entries, &value) {
            seen += 1;
            if seen > limit {
                return Err(SignatureProblem::TooMany);
            }
            is_of_another |= names_another_key(&signature.entries.label, entry);
            let text = unlabelled(entry, label, signature.entries.label_optional);
            found.extend(text.and_then(|text| decode(signature.encoding, algorithm, text)));
        }
    }
    match found.len() {
        _ if is_missing => Err(SignatureProblem::Missing),
        0 if is_of_another => Err(SignatureProblem::UntrustedKey),
        0 => Err(SignatureProblem::Malformed),
        _ => Ok(found),
    }
}

/// Tells whether an entry is labelled like ours, but with another value of the setting in the label.
fn names_another_key(label: &str, entry: &[u8]) -> bool {
    let Some((_, end)) = label.rsplit_once('}') else {
        return false;
    };
    !end.is_empty() && entry.windows(end.len()).any(|part| part == end.as_bytes())
}

/// Finds the one text behind a label, such as the `t` of `t=1,v1=…`.
pub(crate) fn labelled<'v>(entries_of: &Entries, value: &'v [u8]) -> Option<&'v [u8]> {
    let mut texts =
        entries(entries_of, value).filter_map(|entry| unlabelled(entry, &entries_of.label, false));
    match (texts.next(), texts.next()) {
        (Some(text), None) => Some(text),
        _ => None,
    }
}

fn entries<'v>(entries: &Entries, value: &'v [u8]) -> impl Iterator<Item = &'v [u8]> {
    let is_separator = move |byte: &u8| entries.separator.as_bytes().contains(byte);
    value
        .split(is_separator)
        .map(<[u8]>::trim_ascii)
        .filter(|entry| !entry.is_empty())
}

/// Entries with another label are passed over, whatever they hold.
fn unlabelled<'v>(entry: &'v [u8], label: &str, is_optional: bool) -> Option<&'v [u8]> {
    let label = label.as_bytes();
    let Some((front, text)) = entry.split_at_checked(label.len()) else {
        return is_optional.then_some(entry);
    };
    // The names of HTTP's own authentication schemes have no case (RFC 9110 §11.1).
    let is_labelled = match label.last() {
        Some(b' ') => front.eq_ignore_ascii_case(label),
        _ => front == label,
    };
    match is_labelled {
        true => Some(text),
        false => is_optional.then_some(entry),
    }
}

/// Texts of another form or length are no signatures.
fn decode(encoding: Encoding, algorithm: Algorithm, text: &[u8]) -> Option<Vec<u8>> {
    let bytes = match encoding {
        Encoding::Hex => hex::decode(text).ok()?,
        Encoding::Base64 => decode_base64(text)?,
        Encoding::Base64url => BASE64_URL_SAFE_NO_PAD.decode(text).ok()?,
        Encoding::Text => text.to_vec(),
    };
    let has_length = match algorithm.signature_bytes() {
        Some(len) => bytes.len() == len,
        None => !bytes.is_empty(),
    };
    has_length.then_some(bytes)
}

/// Writes a signature's bytes.
pub(crate) fn encode(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
    match encoding {
        Encoding::Hex => hex::encode(bytes).into_bytes(),
        Encoding::Base64 => base64::prelude::BASE64_STANDARD.encode(bytes).into_bytes(),
        Encoding::Base64url => BASE64_URL_SAFE_NO_PAD.encode(bytes).into_bytes(),
        Encoding::Text => bytes.to_vec(),
    }
}
