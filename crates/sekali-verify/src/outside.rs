//! Key documents that are not configured but stand at an address: certificates and key sets.
//!
//! This crate fetches nothing. It says which document it needs ([`KeyDocument`]), asks whoever has it
//! ([`KeyDocuments`]), and judges it: only listed hosts, only https, a certificate only with a chain to a root
//! that is trusted, a name that is expected, and within its dates.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::rejection::{Rejection, SignatureProblem};
use crate::request::split_authority;
use crate::scene::Scene;
use crate::scheme::{KeyUrl, OutsideKeys};

/// A document that holds keys, by its address.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyDocument {
    /// The address, https and on a listed host.
    pub url: String,
    /// The hosts that are listed; `*` stands for any characters of one label, `?` for one letter.
    pub hosts: Vec<String>,
    /// The JSON to post, with the credentials in it; without it, it is a GET.
    pub post: Option<String>,
    /// Whether a copy from before was asked already and lacks the key: a newer one is needed.
    pub is_refresh: bool,
}

// What is posted holds credentials.
impl fmt::Debug for KeyDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyDocument")
            .field("url", &self.url)
            .field("is_refresh", &self.is_refresh)
            .finish_non_exhaustive()
    }
}

/// Has the key documents that were fetched, and says what they are held against.
pub trait KeyDocuments: Sync {
    /// Finds a document that was fetched and has not expired.
    fn find(&self, document: &KeyDocument) -> Option<Bytes>;

    /// Gives further roots that certificates may lead to, in PEM.
    fn extra_roots(&self) -> &[u8] {
        &[]
    }

    /// Tells whether a certificate's chain, dates and names are checked; only tests may say no.
    #[doc(hidden)]
    fn checks_certificates(&self) -> bool {
        true
    }
}

/// Has no documents at all.
#[derive(Clone, Copy, Debug)]
pub struct NoDocuments;

impl KeyDocuments for NoDocuments {
    fn find(&self, _: &KeyDocument) -> Option<Bytes> {
        None
    }
}

/// Says which document a request's key stands in.
pub(crate) fn document(
    rules: &OutsideKeys,
    scene: &Scene<'_, '_>,
    kid: &str,
) -> Result<KeyDocument, SignatureProblem> {
    let untrusted = SignatureProblem::UntrustedKey;
    let url = match &rules.url {
        KeyUrl::Fixed(text) => scene.settings.expand(text).ok_or(untrusted)?,
        KeyUrl::At(spot) => {
            let value = scene.value(spot)?.ok_or(SignatureProblem::Missing)?;
            String::from_utf8(value.into_owned()).map_err(|_| untrusted)?
        }
    };
    let has_suffix = rules
        .path_suffix
        .as_deref()
        .is_none_or(|suffix| url.ends_with(suffix));
    // A query would make many documents of one.
    let is_plain = matches!(rules.url, KeyUrl::Fixed(_)) || !url.contains(['?', '#']);
    if !is_plain || !has_suffix || !is_allowed(&url, &rules.hosts) || !is_key_id(kid) {
        return Err(untrusted);
    }
    let mut settings = scene.settings.clone();
    settings.insert("kid", kid);
    let member = |(name, text): (&String, &String)| Some((name.clone(), settings.expand(text)?));
    let post = match rules.post.is_empty() {
        true => None,
        false => {
            let members: Option<Vec<_>> = rules.post.iter().map(member).collect();
            Some(object(&members.ok_or(untrusted)?))
        }
    };
    Ok(KeyDocument {
        url,
        hosts: rules.hosts.clone(),
        post,
        is_refresh: false,
    })
}

/// Tells whether a text may name a key; it is passed on to whoever has the keys.
fn is_key_id(kid: &str) -> bool {
    kid.len() <= 256 && kid.bytes().all(|byte| byte.is_ascii_graphic())
}

fn object(members: &[(String, String)]) -> String {
    use crate::json::{Json, Text};
    let text = |text: &str| Text::Unescaped(text.to_owned());
    let members = members.iter();
    Json::Object(
        members
            .map(|(name, value)| (text(name), Json::String(text(value))))
            .collect(),
    )
    .to_string()
}

/// Tells whether an address is https, without a user, and on a listed host; a port must be listed with it.
pub fn is_allowed(url: &str, hosts: &[String]) -> bool {
    let (front, _) = split_authority(url);
    let Some(host) = front.strip_prefix("https://") else {
        return false;
    };
    let is_name = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':'));
    is_name && hosts.iter().any(|pattern| matches_host(pattern, host))
}

fn matches_host(pattern: &str, host: &str) -> bool {
    let mut labels = host.split('.');
    let mut wanted = pattern.split('.');
    loop {
        match (wanted.next(), labels.next()) {
            (None, None) => return true,
            (Some(wanted), Some(label)) if !label.is_empty() => {
                if !matches_label(wanted.as_bytes(), label.as_bytes()) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Compares one label: `*` stands for any characters of it, `?` for one letter.
pub fn matches_label(pattern: &[u8], label: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match (pattern.split_first(), label.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=label.len())
            .take_while(|end| label[..*end].iter().all(is_part))
            .any(|end| matches_label(rest, &label[end..])),
        (Some((b'?', rest)), Some((first, left))) => {
            first.is_ascii_alphabetic() && matches_label(rest, left)
        }
        (Some((wanted, rest)), Some((first, left))) => {
            wanted.eq_ignore_ascii_case(first) && matches_label(rest, left)
        }
        _ => false,
    }
}

/// Takes the public key out of a certificate that is trusted for one of the names.
pub(crate) fn certified_key(
    pem: &[u8],
    rules: &OutsideKeys,
    documents: &dyn KeyDocuments,
    now_ms: i64,
) -> Result<Vec<u8>, Rejection> {
    let untrusted = || Rejection::from(SignatureProblem::UntrustedKey);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|_| untrusted())?;
    let (leaf, rest) = chain.split_first().ok_or_else(untrusted)?;
    let leaf = EndEntityCert::try_from(leaf).map_err(|_| untrusted())?;
    if documents.checks_certificates() {
        let is_named = leaf
            .valid_dns_names()
            .any(|name| rules.names.iter().any(|wanted| is_name(wanted, name)));
        let is_trusted = match leads_to_root(&leaf, rest, documents, now_ms) {
            Ok(()) => true,
            // Its use and its dates were right: only its issuer is not there.
            Err(webpki::Error::UnknownIssuer) => rules.alone && rest.is_empty(),
            Err(_) => false,
        };
        if !is_named || !is_trusted {
            return Err(untrusted());
        }
    }
    Ok(leaf.subject_public_key_info().to_vec())
}

fn leads_to_root(
    leaf: &EndEntityCert<'_>,
    chain: &[CertificateDer<'_>],
    documents: &dyn KeyDocuments,
    now_ms: i64,
) -> Result<(), webpki::Error> {
    let extra: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(documents.extra_roots())
        .flatten()
        .collect();
    let mut roots: Vec<TrustAnchor<'_>> = webpki_roots::TLS_SERVER_ROOTS.to_vec();
    roots.extend(
        extra
            .iter()
            .filter_map(|root| anchor_from_trusted_cert(root).ok()),
    );
    let now = Duration::from_millis(u64::try_from(now_ms).unwrap_or_default());
    leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &roots,
        chain,
        UnixTime::since_unix_epoch(now),
        KeyUsage::server_auth(),
        None,
        None,
    )
    .map(drop)
}

/// Compares a certificate's name with `host.example` or `*.example`.
fn is_name(wanted: &str, name: &str) -> bool {
    match wanted.strip_prefix("*.") {
        Some(domain) => name.len().checked_sub(domain.len()).is_some_and(|at| {
            at > 1 && name[..at].ends_with('.') && name[at..].eq_ignore_ascii_case(domain)
        }),
        None => matches_host(wanted, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_hosts_are_allowed() {
        let hosts = [
            "sns.??-*-*.amazonaws.com",
            "keys.example",
            "localhost:8443",
            "any.*",
        ];
        let hosts = hosts.map(str::to_owned);
        for url in [
            "https://sns.eu-west-1.amazonaws.com/a.pem",
            "https://SNS.eu-west-1.amazonaws.com",
            "https://keys.example?x",
            "https://localhost:8443/keys",
            "https://any.example/",
            "https://sns.us-gov-west-1.amazonaws.com/a.pem",
        ] {
            assert!(is_allowed(url, &hosts), "{url}");
        }
        for url in [
            "http://keys.example/",
            "https://keys.example.evil.test/",
            "https://keys.example@evil.test/",
            "https://evil.test\\@keys.example/",
            "https://keys.example:444/",
            "https://localhost/keys",
            "https://any.example:444/",
            "https://sns.a.b.amazonaws.com/",
            "https://sns..amazonaws.com/",
            // Buckets with the name sns.
            "https://sns.s3.amazonaws.com/a.pem",
            "https://sns.s3-us-west-2.amazonaws.com/a.pem",
            "https://keys.example./",
            "keys.example",
            "https://",
        ] {
            assert!(!is_allowed(url, &hosts), "{url}");
        }
    }

    #[test]
    fn a_certificate_without_its_issuer_counts_only_where_that_is_usual() {
        const LEAF: &[u8] = include_bytes!("../testdata/leaf.pem");
        const YEAR_MS: i64 = 365 * 86_400_000;
        const IN_2027: i64 = 57 * YEAR_MS + YEAR_MS / 2;
        let rules = |alone, name: &str| OutsideKeys {
            url: KeyUrl::Fixed(String::new()),
            hosts: Vec::new(),
            path_suffix: None,
            names: vec![name.to_owned()],
            alone,
            post: std::collections::BTreeMap::new(),
        };
        let key = |rules, now_ms| certified_key(LEAF, &rules, &NoDocuments, now_ms);
        assert!(key(rules(true, "localhost"), IN_2027).is_ok());
        let is_untrusted = |rules, now_ms| {
            let untrusted = SignatureProblem::UntrustedKey;
            matches!(key(rules, now_ms), Err(Rejection::Signature(problem)) if problem == untrusted)
        };
        assert!(is_untrusted(rules(false, "localhost"), IN_2027));
        assert!(is_untrusted(rules(true, "other.example"), IN_2027));
        for now_ms in [0, IN_2027 + 200 * YEAR_MS] {
            assert!(is_untrusted(rules(true, "localhost"), now_ms));
        }
    }

    #[test]
    fn labels_have_letters_and_stars() {
        let matches =
            |pattern: &str, label: &str| matches_label(pattern.as_bytes(), label.as_bytes());
        assert!(matches("*", "a") && matches("a*c", "abbc") && matches("??-*", "eu-1"));
        assert!(matches("A", "a") && matches("a*", "a") && matches("localhost:1", "localhost:1"));
        for (pattern, label) in [
            ("?", "1"),
            ("?", ""),
            ("a*c", "ab"),
            ("*", "a:1"),
            ("a", "ab"),
        ] {
            assert!(!matches(pattern, label), "{pattern} {label}");
        }
    }

    #[test]
    fn certificates_have_names_below_a_domain() {
        assert!(is_name(
            "*.paypal.com",
            "messageverificationcerts.paypal.com"
        ));
        assert!(is_name("sns.amazonaws.com", "sns.amazonaws.com"));
        for name in [
            "paypal.com",
            "evilpaypal.com",
            ".paypal.com",
            "paypal.com.evil.test",
        ] {
            assert!(!is_name("*.paypal.com", name), "{name}");
        }
    }
}
