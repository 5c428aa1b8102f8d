//! JSON Web Tokens (RFC 7519) in compact form, with the checks that a receiver of webhooks needs.
//!
//! The algorithm is chosen by the scheme and never by the token. A token without an expiry is good only where
//! its scheme checks another time.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use bytes::Bytes;

use crate::json::{Json, Pointer};
use crate::key::Key;
use crate::rejection::SignatureProblem;
use crate::request::scalar;
use crate::scheme::{Algorithm, JwtRules};
use crate::settings::Settings;

/// A token in its three parts, of which none is believed yet.
pub(crate) struct Token {
    header: Vec<u8>,
    claims: Vec<u8>,
    signed: Vec<u8>,
    signature: Vec<u8>,
}

/// What stands in a token's header.
pub(crate) struct Header {
    pub(crate) algorithm: String,
    pub(crate) kid: String,
}

impl Token {
    pub(crate) fn split(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).ok();
        Some(Self {
            header: decode(header)?,
            claims: decode(claims)?,
            signature: decode(signature)?,
            signed: signed.as_bytes().to_vec(),
        })
    }

    pub(crate) fn header(&self) -> Option<Header> {
        let json = Json::parse(&self.header).ok()?;
        let text = |name: &str| member(&json, name).map(str::to_owned);
        Some(Header {
            algorithm: text("alg")?,
            kid: text("kid").unwrap_or_default(),
        })
    }

    pub(crate) fn claims(&self) -> Option<Json<'_>> {
        Json::parse(&self.claims).ok()
    }

    /// Gives the bytes that the token's signature covers.
    pub(crate) fn signed(&self) -> &[u8] {
        &self.signed
    }

    /// Holds the signature against a key set; none where the set lacks the key.
    pub(crate) fn fits_set(&self, header: &Header, set: &[u8]) -> Option<bool> {
        let json = Json::parse(set).ok()?;
        let key = find_key(&json, &header.kid)?;
        let part = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(member(key, name)?).ok();
        Some(match (header.algorithm.as_str(), member(key, "kty")?) {
            ("RS256", "RSA") => {
                let components = RsaPublicKeyComponents {
                    n: part("n")?,
                    e: part("e")?,
                };
                let verify = &signature::RSA_PKCS1_2048_8192_SHA256;
                components
                    .verify(verify, &self.signed, &self.signature)
                    .is_ok()
            }
            ("ES256", "EC") if member(key, "crv") == Some("P-256") => {
                let point = [vec![4], part("x")?, part("y")?].concat();
                let key = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
                key.verify(&self.signed, &self.signature).is_ok()
            }
            _ => false,
        })
    }

    /// Holds the signature against a shared secret.
    pub(crate) fn fits_secret(&self, secret: &Bytes) -> bool {
        let Some(key) = Key::of_hmac(secret) else {
            return false;
        };
        let text = [Bytes::copy_from_slice(&self.signed)];
        key.fits(
            Algorithm::HmacSha256,
            &text,
            std::slice::from_ref(&self.signature),
        )
    }
}

/// Checks what a proven token says, beside its times.
pub(crate) fn check_claims(
    claims: &Json<'_>,
    rules: &JwtRules,
    settings: &Settings,
    body: &[u8],
) -> Result<(), SignatureProblem> {
    let wrong = SignatureProblem::WrongSignature;
    let issuer = member(claims, "iss");
    if !rules.issuers.is_empty() && !rules.issuers.iter().any(|wanted| issuer == Some(wanted)) {
        return Err(wrong);
    }
    if let Some(audience) = &rules.audience {
        let wanted = settings.expand(audience).ok_or(wrong)?;
        if !is_for(claims, &wanted) {
            return Err(wrong);
        }
    }
    for (name, text) in &rules.claims {
        let wanted = settings.expand(text).ok_or(wrong)?;
        if member(claims, name) != Some(&wanted) {
            return Err(wrong);
        }
    }
    if let Some(name) = &rules.body_hash {
        let hash = hex::encode(Sha256::digest(body));
        let given = member(claims, name).ok_or(wrong)?;
        if !bool::from(given.as_bytes().ct_eq(hash.as_bytes())) {
            return Err(wrong);
        }
    }
    Ok(())
}

/// Reads a numeric date, in seconds; a fraction is cut.
pub(crate) fn date(claims: &Json<'_>, name: &str) -> Option<i64> {
    let text = member(claims, name)?;
    text.split('.').next()?.parse().ok()
}

fn is_for(claims: &Json<'_>, wanted: &str) -> bool {
    match find(claims, "aud") {
        Some(Json::Array(all)) => all.iter().any(|one| one.as_str() == Some(wanted)),
        Some(one) => one.as_str() == Some(wanted),
        None => false,
    }
}

/// Finds the key in `{"keys": […]}`, or in `{"key": {…}}`, by its id.
fn find_key<'j, 'a>(set: &'j Json<'a>, kid: &str) -> Option<&'j Json<'a>> {
    let is_meant = |key: &&Json<'_>| member(key, "kid") == Some(kid);
    match (find(set, "keys"), find(set, "key")) {
        (Some(Json::Array(keys)), _) => keys.iter().find(is_meant),
        (_, Some(key)) => Some(key).filter(is_meant),
        _ => None,
    }
}

fn find<'j, 'a>(json: &'j Json<'a>, name: &str) -> Option<&'j Json<'a>> {
    let pointer = Pointer::try_from(format!("/{name}")).ok()?;
    json.get(&pointer).ok()?
}

fn member<'j>(json: &'j Json<'_>, name: &str) -> Option<&'j str> {
    let pointer = Pointer::try_from(format!("/{name}")).ok()?;
    scalar(json, &pointer).ok()?
}
