//! Whether the parts of a declaration fit each other.

use super::declaration::Unfit;
use super::{Algorithm, Entries, JwtRules, KeyForm, OutsideKeys, Part, Signature, Spot, Time};

pub(super) fn check_signed(signed: &[Part], algorithm: Algorithm) -> Result<(), Unfit> {
    let is_plain = matches!(algorithm, Algorithm::Sha256 | Algorithm::Sha512);
    let is_fixed = |part: &Part| matches!(part, Part::Literal(_) | Part::Setting(_) | Part::Key);
    match algorithm.signs_text() {
        false if !signed.is_empty() => Err(Unfit::SignedUnused),
        true if signed.iter().all(is_fixed) => Err(Unfit::NothingSigned),
        true if signed.contains(&Part::Key) != is_plain => Err(Unfit::KeyPart),
        _ => Ok(()),
    }
}

pub(super) fn check_time(time: &Time, signed: &[Part], signature: &Signature) -> Result<(), Unfit> {
    let is_covered = match &time.spot {
        Spot::Claim(_) => true,
        Spot::Json(pointer) => {
            signed.contains(&Part::Body) || signed.contains(&Part::Json(pointer.clone()))
        }
        _ => false,
    };
    if !is_covered && !signed.contains(&Part::Timestamp) {
        return Err(Unfit::TimeNotSigned);
    }
    match time.spot == signature.spot && time.entries.label == signature.entries.label {
        true => Err(Unfit::SameEntry),
        false => Ok(()),
    }
}

pub(super) fn check_key(algorithm: Algorithm, key: KeyForm) -> Result<(), Unfit> {
    let fits = match algorithm {
        Algorithm::HmacSha1 | Algorithm::HmacSha256 | Algorithm::HmacSha512 => matches!(
            key,
            KeyForm::Text | KeyForm::Hex | KeyForm::Base64 | KeyForm::Sha1
        ),
        Algorithm::Sha256 | Algorithm::Sha512 | Algorithm::Equals => key == KeyForm::Text,
        Algorithm::Ed25519 => matches!(
            key,
            KeyForm::PublicHex
                | KeyForm::PublicBase64
                | KeyForm::PublicDerBase64
                | KeyForm::PublicPem
        ),
        Algorithm::EcdsaP256Sha256 => {
            matches!(key, KeyForm::PublicDerBase64 | KeyForm::PublicPem)
        }
        Algorithm::RsaSha1 | Algorithm::RsaSha256 => matches!(
            key,
            KeyForm::PublicDerBase64 | KeyForm::PublicPem | KeyForm::Certificate
        ),
        Algorithm::Jwt => matches!(key, KeyForm::Jwks | KeyForm::Text),
    };
    if fits { Ok(()) } else { Err(Unfit::Key) }
}

pub(super) fn check_outside(
    algorithm: Algorithm,
    key: KeyForm,
    jwt: Option<&JwtRules>,
    keys: Option<&OutsideKeys>,
) -> Result<(), Unfit> {
    if jwt.is_some() != (algorithm == Algorithm::Jwt) {
        return Err(Unfit::Outside(
            "`jwt` belongs to the algorithm \"jwt\", and to it alone",
        ));
    }
    if key == KeyForm::Certificate && keys.is_none() {
        return Err(Unfit::Outside(
            "a certificate needs `keys`, with its address and the allowed hosts",
        ));
    }
    match keys {
        Some(_) if !matches!(key, KeyForm::Certificate | KeyForm::Jwks) => Err(Unfit::Outside(
            "`keys` belongs to the keys \"certificate\" and \"jwks\"",
        )),
        Some(keys) if keys.hosts.is_empty() => Err(Unfit::Outside(
            "`keys.hosts` must list the hosts that keys may come from",
        )),
        _ => Ok(()),
    }
}

/// Separators split entries, so a label with one of them could never be found.
pub(super) fn check_label(entries: &Entries) -> Result<(), Unfit> {
    let is_fine = |character: char| {
        (character.is_ascii_graphic() || character == ' ') && !entries.separator.contains(character)
    };
    match entries.label.chars().all(is_fine) && !entries.label.starts_with(' ') {
        true => Ok(()),
        false => Err(Unfit::Label),
    }
}
