//! Algorithms, the forms of their keys, the encodings of signatures, and what these cover.

use serde::Deserialize;

/// The function that makes a signature out of a key and a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Algorithm {
    /// Is HMAC with SHA-1.
    HmacSha1,
    /// Is HMAC with SHA-256.
    HmacSha256,
    /// Is HMAC with SHA-512.
    HmacSha512,
    /// Is the plain SHA-256 of a text with the secret in it.
    Sha256,
    /// Is the plain SHA-512 of a text with the secret in it.
    Sha512,
    /// Is Ed25519.
    Ed25519,
    /// Is ECDSA on P-256 with SHA-256, the signature in DER.
    EcdsaP256Sha256,
    /// Is RSA with PKCS#1 v1.5 padding and SHA-1.
    RsaSha1,
    /// Is RSA with PKCS#1 v1.5 padding and SHA-256.
    RsaSha256,
    /// Is a JSON Web Token after RFC 7519.
    Jwt,
    /// Is nothing but the secret itself.
    Equals,
}

impl Algorithm {
    /// Gives the number of bytes of a signature, where it is always the same.
    pub(crate) fn signature_bytes(self) -> Option<usize> {
        match self {
            Self::HmacSha1 => Some(20),
            Self::HmacSha256 | Self::Sha256 => Some(32),
            Self::HmacSha512 | Self::Sha512 | Self::Ed25519 => Some(64),
            _ => None,
        }
    }

    /// Tells whether the receiver's secret is also what signs.
    pub fn is_symmetric(self) -> bool {
        !matches!(
            self,
            Self::Ed25519 | Self::EcdsaP256Sha256 | Self::RsaSha1 | Self::RsaSha256 | Self::Jwt
        )
    }

    /// Tells whether a signature can be extended to a longer text without the key.
    pub(crate) fn is_extensible(self) -> bool {
        matches!(self, Self::Sha256 | Self::Sha512)
    }

    pub(crate) fn signs_text(self) -> bool {
        !matches!(self, Self::Equals | Self::Jwt)
    }
}

/// The way from the configured secret to the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyForm {
    /// Takes the secret's bytes as they are, with any prefix it may have.
    #[default]
    Text,
    /// Decodes hexadecimal digits.
    Hex,
    /// Decodes standard base64.
    Base64,
    /// Takes the 20 bytes of the secret's SHA-1.
    Sha1,
    /// Decodes a raw public key from hexadecimal digits.
    PublicHex,
    /// Decodes a raw public key from base64.
    PublicBase64,
    /// Decodes a SubjectPublicKeyInfo from base64.
    PublicDerBase64,
    /// Reads a SubjectPublicKeyInfo in PEM.
    PublicPem,
    /// Takes the key from a JSON Web Key Set.
    Jwks,
    /// Takes the key from an X.509 certificate at an address.
    Certificate,
}

/// The encoding of a signature's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Encoding {
    /// Is two hexadecimal digits a byte; either case is accepted, lower case is written.
    Hex,
    /// Is standard base64 with padding, in its one canonical form.
    Base64,
    /// Is base64 for URLs without padding, in its one canonical form.
    Base64url,
    /// Is the text itself.
    Text,
}

/// What a signature covers, from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Covers nothing: whoever knows the token may say anything.
    #[default]
    Nothing,
    /// Covers the address that was called.
    Url,
    /// Covers some fields of the body.
    Fields,
    /// Covers every byte of the body.
    Body,
}

impl Coverage {
    /// Gives the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Url => "the URL only",
            Self::Fields => "some fields",
            Self::Body => "the whole body",
        }
    }
}
