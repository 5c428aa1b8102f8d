//! The schemes that come with the crate, each a text file under `presets/`.
//!
//! Presets are data in the language of [`Scheme`]; no preset has code of its own.

use std::sync::LazyLock;

use crate::scheme::Scheme;

/// The preset with a signed time.
const TIMESTAMPED: &str = "timestamped";

/// The preset that signs the raw body and nothing else.
const BODY_HMAC: &str = "body-hmac";

static NAMES: [&str; 2] = [TIMESTAMPED, BODY_HMAC];

/// In the order of `NAMES`.
static SCHEMES: LazyLock<[Scheme; 2]> = LazyLock::new(|| {
    [
        include_str!("presets/timestamped.toml"),
        include_str!("presets/body-hmac.toml"),
    ]
    .map(|text| toml::from_str(text).expect("a test reads every preset"))
});

impl Scheme {
    /// Finds a built-in scheme by its name.
    pub fn preset(name: &str) -> Option<&'static Self> {
        let index = NAMES.iter().position(|known| *known == name)?;
        Some(&SCHEMES[index])
    }

    /// Lists the names of the built-in schemes.
    pub fn presets() -> &'static [&'static str] {
        &NAMES
    }

    /// Makes the scheme `timestamped`: HMAC-SHA256 over timestamp, dot and raw body.
    pub fn standard() -> Self {
        let [timestamped, _] = &*SCHEMES;
        timestamped.clone()
    }

    /// Makes the scheme `body-hmac`: HMAC-SHA256 over the raw body, without a time.
    pub fn body_only() -> Self {
        let [_, body_hmac] = &*SCHEMES;
        body_hmac.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_readable() {
        for name in Scheme::presets() {
            assert!(Scheme::preset(name).is_some(), "{name}");
        }
        assert!(Scheme::preset("nobody").is_none());
    }

    #[test]
    fn names_and_schemes_stand_in_the_same_order() {
        assert_eq!(Scheme::preset(TIMESTAMPED), Some(&Scheme::standard()));
        assert_eq!(Scheme::preset(BODY_HMAC), Some(&Scheme::body_only()));
        assert!(Scheme::standard().signs_time());
        assert!(!Scheme::body_only().signs_time());
    }
}
