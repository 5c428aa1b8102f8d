//! What a scheme makes of a secret: a keyed state, a public key, or a token to compare with.
//!
//! Made once when a source is built, so that no delivery pays for it. A secret that a scheme cannot use is
//! no error here: another scheme of the same provider may be meant.

use base64::Engine as _;
use hmac::{Hmac, KeyInit, Mac};
use ring::signature::{self as asymmetric, UnparsedPublicKey, VerificationAlgorithm};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject as _;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq as _;

use bytes::Bytes;

use crate::scheme::{Algorithm, KeyForm, Scheme};
use crate::secret::Secret;

/// A key that signatures are held against.
#[derive(Clone)]
pub(crate) enum Key {
    // The states after the key went in: hashing the key again for each request would cost more than a
    // small body does.
    HmacSha1(Hmac<Sha1>),
    HmacSha256(Hmac<Sha256>),
    HmacSha512(Hmac<Sha512>),
    Plain(Bytes),
    Public(Vec<u8>),
    Jwks(Bytes),
}

impl Key {
    /// Makes the key of a secret, where the scheme can use it.
    pub(crate) fn new(scheme: &Scheme, secret: &Secret) -> Option<Self> {
        let text = secret.bytes();
        let text = match scheme.key_prefix.as_deref() {
            Some(prefix) => match text.strip_prefix(prefix.as_bytes()) {
                Some(rest) => rest,
                None if scheme.key_prefix_needed => return None,
                None => text,
            },
            None => text,
        };
        let bytes = match scheme.key {
            KeyForm::Text => text.to_vec(),
            KeyForm::Hex | KeyForm::PublicHex => hex::decode(text).ok()?,
            KeyForm::Base64 => decode_base64(&padded(text))?,
            KeyForm::PublicBase64 => decode_base64(text)?,
            KeyForm::Sha1 => Sha1::digest(text).to_vec(),
            KeyForm::PublicDerBase64 => public_key_bits(&decode_base64(text)?)?.to_vec(),
            KeyForm::PublicPem => {
                let der = SubjectPublicKeyInfoDer::from_pem_slice(text).ok()?;
                public_key_bits(&der)?.to_vec()
            }
            KeyForm::Jwks => return Some(Self::Jwks(Bytes::copy_from_slice(text))),
            KeyForm::Certificate => return None,
        };
        if bytes.is_empty() {
            return None;
        }
        Some(match scheme.algorithm {
            Algorithm::HmacSha1 => Self::HmacSha1(keyed(&bytes)),
            Algorithm::HmacSha256 => Self::HmacSha256(keyed(&bytes)),
            Algorithm::HmacSha512 => Self::HmacSha512(keyed(&bytes)),
            Algorithm::Sha256 | Algorithm::Sha512 | Algorithm::Equals | Algorithm::Jwt => {
                Self::Plain(bytes.into())
            }
            Algorithm::Ed25519 if bytes.len() != 32 => return None,
            _ => Self::Public(bytes),
        })
    }

    /// Makes the key of a SubjectPublicKeyInfo.
    pub(crate) fn of_public_info(der: &[u8]) -> Option<Self> {
        Some(Self::Public(public_key_bits(der)?.to_vec()))
    }

    /// Makes the key of HMAC-SHA256 out of a secret's bytes.
    pub(crate) fn of_hmac(secret: &[u8]) -> Option<Self> {
        (!secret.is_empty()).then(|| Self::HmacSha256(keyed(secret)))
    }

    /// Gives the secret's bytes where they are part of the signed text.
    pub(crate) fn plain(&self) -> Option<&Bytes> {
        match self {
            Self::Plain(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Computes the signature of a text, where the receiver's key can make one.
    pub(crate) fn sign(&self, algorithm: Algorithm, text: &[Bytes]) -> Option<Vec<u8>> {
        Some(match (self, algorithm) {
            (Self::HmacSha1(mac), _) => authenticate(mac, text),
            (Self::HmacSha256(mac), _) => authenticate(mac, text),
            (Self::HmacSha512(mac), _) => authenticate(mac, text),
            (Self::Plain(_), Algorithm::Sha256) => hash::<Sha256>(text),
            (Self::Plain(_), Algorithm::Sha512) => hash::<Sha512>(text),
            (Self::Plain(bytes), Algorithm::Equals) => bytes.to_vec(),
            _ => return None,
        })
    }

    /// Tells whether one of the signatures belongs to a text; in constant time for each.
    pub(crate) fn fits(
        &self,
        algorithm: Algorithm,
        text: &[Bytes],
        signatures: &[Vec<u8>],
    ) -> bool {
        if let Self::Public(key) = self {
            let Some(verify) = verification(algorithm) else {
                return false;
            };
            let key = UnparsedPublicKey::new(verify, key);
            let text = text.concat();
            return signatures
                .iter()
                .any(|signature| key.verify(&text, signature).is_ok());
        }
        let Some(expected) = self.sign(algorithm, text) else {
            return false;
        };
        match algorithm {
            // A token's length would show in the time that a comparison takes.
            Algorithm::Equals => {
                let expected = Sha256::digest(&expected);
                let equals = |given: &Vec<u8>| bool::from(Sha256::digest(given).ct_eq(&expected));
                signatures.iter().any(equals)
            }
            _ => signatures
                .iter()
                .any(|given| bool::from(given.as_slice().ct_eq(&expected))),
        }
    }
}

fn verification(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match algorithm {
        Algorithm::Ed25519 => &asymmetric::ED25519,
        Algorithm::EcdsaP256Sha256 => &asymmetric::ECDSA_P256_SHA256_ASN1,
        Algorithm::RsaSha1 => &asymmetric::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
        Algorithm::RsaSha256 => &asymmetric::RSA_PKCS1_2048_8192_SHA256,
        _ => return None,
    })
}

fn keyed<M: KeyInit>(key: &[u8]) -> M {
    M::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn authenticate<M: Mac + Clone>(mac: &M, text: &[Bytes]) -> Vec<u8> {
    let mut mac = mac.clone();
    for piece in text {
        mac.update(piece);
    }
    mac.finalize().into_bytes().to_vec()
}

fn hash<D: Digest>(text: &[Bytes]) -> Vec<u8> {
    let mut digest = D::new();
    for piece in text {
        digest.update(piece);
    }
    digest.finalize().to_vec()
}

/// Completes base64 whose padding was left out, which the SDKs of Standard Webhooks take for a secret too.
fn padded(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    if !text.ends_with(b"=") {
        text.resize(text.len().next_multiple_of(4), b'=');
    }
    text
}

/// Decodes standard base64 in its one canonical form.
pub(crate) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    base64::prelude::BASE64_STANDARD.decode(text).ok()
}

/// Finds the key in a SubjectPublicKeyInfo: SEQUENCE { algorithm SEQUENCE, key BIT STRING }.
fn public_key_bits(der: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const BIT_STRING: u8 = 0x03;
    let (info, rest) = der_value(der, SEQUENCE)?;
    let (_algorithm, info) = der_value(info, SEQUENCE)?;
    let (bits, inner_rest) = der_value(info, BIT_STRING)?;
    let (unused, bits) = bits.split_first()?;
    (rest.is_empty() && inner_rest.is_empty() && *unused == 0).then_some(bits)
}

/// Splits the value under a tag from what is behind it (X.690 §8.1, definite lengths).
fn der_value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.split_first()?;
    let (len, rest) = rest.split_first()?;
    let (len, rest) = match usize::from(*len) {
        short @ 0..=0x7f => (short, rest),
        long @ 0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(long - 0x80)?;
            let len = bytes
                .iter()
                .fold(0, |len, byte| len << 8 | usize::from(*byte));
            (len, rest)
        }
        _ => return None,
    };
    (*first == tag)
        .then(|| rest.split_at_checked(len))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_public_keys_are_no_keys() {
        let good = [0x30, 0x08, 0x30, 0x02, 0x06, 0x00, 0x03, 0x02, 0x00, 0x07];
        assert_eq!(public_key_bits(&good), Some(&[7][..]));
        for len in 0..good.len() {
            assert_eq!(public_key_bits(&good[..len]), None);
        }
        let mut long = good.to_vec();
        long.push(0);
        assert_eq!(public_key_bits(&long), None);
        assert_eq!(public_key_bits(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }

    #[test]
    fn secrets_may_lack_their_padding() {
        let decoded = |text: &[u8]| decode_base64(&padded(text));
        assert_eq!(decoded(b"AQ").as_deref(), Some(&[1][..]));
        assert_eq!(decoded(b"AQ==").as_deref(), Some(&[1][..]));
        assert_eq!(decoded(b"AQI").as_deref(), Some(&[1, 2][..]));
        assert_eq!(decoded(b"AQ="), None);
        assert_eq!(decoded(b"A"), None);
    }

    #[test]
    fn base64_has_one_form() {
        assert_eq!(decode_base64(b"AQ==").as_deref(), Some(&[1][..]));
        for text in ["AQ", "AQ=", "AR==", "A Q==", "AQ==\n", "AQ__"] {
            assert_eq!(decode_base64(text.as_bytes()), None, "{text}");
        }
    }
}
