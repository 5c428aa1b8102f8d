//! The two schemes for senders that are nobody's product: written down once, used by name.

use std::sync::LazyLock;

use crate::scheme::Scheme;

/// The scheme with a signed time.
const TIMESTAMPED: &str = "timestamped";

/// The scheme that signs the raw body and nothing else.
const BODY_HMAC: &str = "body-hmac";

static NAMES: [&str; 2] = [TIMESTAMPED, BODY_HMAC];

/// In the order of `NAMES`.
static SCHEMES: LazyLock<[Scheme; 2]> = LazyLock::new(|| {
    [
        include_str!("../schemes/timestamped.toml"),
        include_str!("../schemes/body-hmac.toml"),
    ]
    .map(|text| toml::from_str(text).expect("a test reads every scheme"))
});

impl Scheme {
    /// Finds a generic scheme by its name.
    pub fn generic(name: &str) -> Option<&'static Self> {
        let index = NAMES.iter().position(|known| *known == name)?;
        Some(&SCHEMES[index])
    }

    /// Lists the names of the generic schemes.
    pub fn generic_names() -> &'static [&'static str] {
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
    fn names_and_schemes_stand_in_the_same_order() {
        assert_eq!(Scheme::generic(TIMESTAMPED), Some(&Scheme::standard()));
        assert_eq!(Scheme::generic(BODY_HMAC), Some(&Scheme::body_only()));
        assert_eq!(Scheme::generic("nobody"), None);
        assert!(Scheme::standard().signs_time());
        assert!(!Scheme::body_only().signs_time());
    }
}
