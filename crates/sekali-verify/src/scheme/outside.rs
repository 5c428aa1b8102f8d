//! What is demanded of tokens, and where keys may come from that are not configured.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::declaration::SpotDeclaration;
use super::{Spot, Unfit};

/// The rules for a JSON Web Token after RFC 7519; `exp` and `nbf` always count.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtRules {
    /// The algorithms that are accepted, of ES256, RS256 and HS256.
    pub algorithms: Vec<String>,
    /// The issuers that are accepted; any where the list is empty.
    #[serde(default)]
    pub issuers: Vec<String>,
    /// The audience that the token must be for, with settings and `{url}` in it.
    pub audience: Option<String>,
    /// Further claims and the values they must have, with settings in them.
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
    /// The claim with the SHA-256 of the body in hexadecimal digits.
    pub body_hash: Option<String>,
}

/// Where keys come from that are not configured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "OutsideDeclaration")]
pub struct OutsideKeys {
    /// The address of the keys.
    pub url: KeyUrl,
    /// The hosts they may come from; `*` stands for any characters of one label, `?` for one letter.
    pub hosts: Vec<String>,
    /// What the path must end with.
    pub path_suffix: Option<String>,
    /// The names of which a certificate must have one; `*.` stands for any labels in front.
    pub names: Vec<String>,
    /// Whether a certificate whose issuer does not come with it is trusted for the host that it came from.
    pub alone: bool,
    /// The members of a JSON object to post, with settings and `{kid}` in them; without it, it is a GET.
    pub post: BTreeMap<String, String>,
}

/// The address of a key document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyUrl {
    /// Is fixed, with settings in it.
    Fixed(String),
    /// Stands in the request.
    At(Spot),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutsideDeclaration {
    url: UrlDeclaration,
    hosts: Vec<String>,
    path_suffix: Option<String>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    post: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an address, or the place where one stands")]
enum UrlDeclaration {
    Fixed(String),
    At(SpotDeclaration),
}

impl TryFrom<OutsideDeclaration> for OutsideKeys {
    type Error = Unfit;

    fn try_from(declared: OutsideDeclaration) -> Result<Self, Unfit> {
        let url = match declared.url {
            UrlDeclaration::Fixed(text) => KeyUrl::Fixed(text),
            UrlDeclaration::At(spot) => KeyUrl::At(spot.spot()?),
        };
        Ok(Self {
            url,
            hosts: declared.hosts,
            path_suffix: declared.path_suffix,
            names: declared.names,
            alone: declared.alone,
            post: declared.post,
        })
    }
}
