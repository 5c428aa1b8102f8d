//! Secrets that are shared with a sender, and public keys that stand in their place.
//!
//! A secret is judged once, when it is made. What a scheme makes of it is the key ([`crate::key`]);
//! this module does not read files or the environment, and nothing of a secret is ever printed.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

/// The shortest secret that is accepted; anything below can be tried out in a day.
const MIN_SECRET_BYTES: usize = 8;

/// A shared secret or a public key, never printed.
#[derive(Clone)]
pub struct Secret {
    text: Arc<[u8]>,
    until_ms: Option<i64>,
}

impl Secret {
    /// Makes a secret from its text, without the line ends that files and shells leave behind it.
    ///
    /// Every other blank at either end is refused: it may be part of the secret or a slip, and a
    /// wrong guess would show up only as signatures that never match.
    pub fn new(text: impl Into<Vec<u8>>) -> Result<Self, WeakSecret> {
        let text = text.into();
        let key = without_line_ends(&text);
        match (key.first(), key.last()) {
            _ if key.is_empty() && text.is_empty() => Err(WeakSecret::Empty),
            _ if key.iter().copied().all(is_blank) => Err(WeakSecret::Blank),
            (Some(&first), Some(&last)) if is_blank(first) || is_blank(last) => {
                Err(WeakSecret::OuterBlanks)
            }
            _ if key.len() < MIN_SECRET_BYTES => Err(WeakSecret::TooShort),
            _ => Ok(Self::of_any_length(key)),
        }
    }

    /// Makes a secret without judging it, for the published examples of providers.
    #[doc(hidden)]
    pub fn of_any_length(text: &[u8]) -> Self {
        Self {
            text: text.into(),
            until_ms: None,
        }
    }

    /// Lets the secret count only before a time, in milliseconds since 1970.
    pub fn until(self, until_ms: Option<i64>) -> Self {
        Self { until_ms, ..self }
    }

    /// Gives eight hexadecimal digits that tell secrets apart in a log without showing them.
    pub fn fingerprint(&self) -> String {
        let digest: [u8; 32] = Sha256::digest(&self.text).into();
        hex::encode(&digest[..4])
    }

    pub(crate) fn counts_at(&self, now_ms: i64) -> bool {
        self.until_ms.is_none_or(|until_ms| now_ms < until_ms)
    }

    /// Gives the bytes to somebody who asked for them; never for a log.
    pub fn reveal(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.text
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.until_ms == other.until_ms && bool::from(self.text.ct_eq(&other.text))
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The reason why a secret is refused; it never contains the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WeakSecret {
    /// Says that there is nothing.
    #[error("the secret is empty")]
    Empty,
    /// Says that there are only blanks and line ends.
    #[error("the secret has only blanks in it")]
    Blank,
    /// Says that a blank stands in front or behind.
    #[error("the secret begins or ends with a blank")]
    OuterBlanks,
    /// Says that it can be guessed.
    #[error("the secret is shorter than {MIN_SECRET_BYTES} bytes")]
    TooShort,
}

fn without_line_ends(mut text: &[u8]) -> &[u8] {
    while let Some(rest) = text
        .strip_suffix(b"\r\n")
        .or_else(|| text.strip_suffix(b"\n"))
    {
        text = rest;
    }
    text
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> WeakSecret {
        Secret::new(text).unwrap_err()
    }

    #[test]
    fn trailing_line_ends_are_cut() {
        let plain = Secret::new("s3cret-s3cret").unwrap().fingerprint();
        for text in [
            "s3cret-s3cret\n",
            "s3cret-s3cret\r\n",
            "s3cret-s3cret\n\r\n",
        ] {
            assert_eq!(Secret::new(text).unwrap().fingerprint(), plain, "{text:?}");
        }
    }

    #[test]
    fn weak_secrets_are_refused() {
        assert_eq!(refusal(""), WeakSecret::Empty);
        assert_eq!(refusal("\n"), WeakSecret::Blank);
        assert_eq!(refusal("          "), WeakSecret::Blank);
        assert_eq!(refusal("x"), WeakSecret::TooShort);
        assert_eq!(refusal("1234567\n"), WeakSecret::TooShort);
        assert!(Secret::new("12345678").is_ok());
    }

    #[test]
    fn outer_blanks_are_refused_and_inner_ones_kept() {
        for text in [
            " s3cret-s3cret",
            "\ns3cret-s3cret",
            "s3cret-s3cret \n",
            "s3cret-s3cret\r",
        ] {
            assert_eq!(refusal(text), WeakSecret::OuterBlanks, "{text:?}");
        }
        assert!(Secret::new("four words of text").is_ok());
    }

    #[test]
    fn a_prefix_is_part_of_the_secret() {
        let prefixed = Secret::new("whsec_c2VjcmV0").unwrap();
        assert_ne!(
            prefixed.fingerprint(),
            Secret::new("c2VjcmV0").unwrap().fingerprint()
        );
    }

    #[test]
    fn nothing_of_the_secret_is_printed() {
        let secret = Secret::new("s3cret-s3cret").unwrap();
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(secret.fingerprint().len(), 8);
        assert!(!refusal(" s3cret").to_string().contains("s3cret"));
    }
}
