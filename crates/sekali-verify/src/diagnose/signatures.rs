//! Signatures and times that are written otherwise than the scheme says.

use http::{HeaderMap, HeaderValue};

use super::{Case, Finding, finding};
use crate::request::Request;
use crate::scheme::{Algorithm, Encoding, Scheme, Spot, TimeUnit};

impl Case<'_> {
    pub(super) fn signature_forms(&self) -> Vec<Finding> {
        let all = |change: &dyn Fn(&Scheme) -> Scheme| -> Vec<Scheme> {
            self.suspect.schemes.iter().map(change).collect()
        };
        let fits = |schemes: &[Scheme]| self.fits(schemes, self.suspect.secrets, &self.request);
        for (encoding, name) in [
            (Encoding::Hex, "hexadecimal"),
            (Encoding::Base64, "base64"),
            (Encoding::Base64url, "base64url"),
        ] {
            let schemes = all(&|scheme: &Scheme| {
                let mut scheme = scheme.clone();
                scheme.signature.encoding = encoding;
                scheme
            });
            if fits(&schemes) {
                return vec![finding(
                    "signature_encoding",
                    format!("the signature is written in {name}"),
                )];
            }
        }
        for (algorithm, name) in [
            (Algorithm::HmacSha1, "HMAC-SHA1"),
            (Algorithm::HmacSha256, "HMAC-SHA256"),
            (Algorithm::HmacSha512, "HMAC-SHA512"),
        ] {
            let schemes = all(&|scheme: &Scheme| Scheme {
                algorithm,
                ..scheme.clone()
            });
            let is_hmac = self
                .suspect
                .schemes
                .iter()
                .all(|scheme| scheme.algorithm.is_symmetric());
            if is_hmac && fits(&schemes) {
                return vec![finding("algorithm", format!("it was signed with {name}"))];
            }
        }
        let schemes = all(&|scheme: &Scheme| {
            let mut scheme = scheme.clone();
            scheme.signature.entries.label_optional = true;
            scheme
        });
        match fits(&schemes) {
            true => vec![finding(
                "label_missing",
                "the signature lacks the label in front of it, such as sha256=",
            )],
            false => Vec::new(),
        }
    }

    pub(super) fn timestamps(&self) -> Vec<Finding> {
        let changed = |digits: &dyn Fn(&str) -> Option<String>| -> Option<HeaderMap> {
            let mut headers = self.request.headers.clone();
            for scheme in self.suspect.schemes {
                let Some(Spot::Header(name)) = scheme.time.as_ref().map(|time| &time.spot) else {
                    continue;
                };
                let text = headers.get(name)?.to_str().ok()?;
                let value = HeaderValue::from_str(&digits(text)?).ok()?;
                headers.insert(name, value);
            }
            Some(headers)
        };
        let to_seconds = |text: &str| {
            text.strip_suffix("000")
                .map(str::to_owned)
                .or_else(|| text.get(..10).map(str::to_owned))
        };
        let to_millis = |text: &str| Some(format!("{text}000"));
        let fits = |headers: Option<HeaderMap>| {
            headers.is_some_and(|headers| {
                let request = Request {
                    headers: &headers,
                    ..self.request
                };
                self.fits(self.suspect.schemes, self.suspect.secrets, &request)
            })
        };
        let is_numeric = self
            .suspect
            .schemes
            .iter()
            .filter_map(|scheme| scheme.time.as_ref())
            .all(|time| time.unit != TimeUnit::Rfc3339);
        if is_numeric && (fits(changed(&to_seconds)) || fits(changed(&to_millis))) {
            return vec![finding(
                "timestamp_unit",
                "the time that was signed is in another unit than the time that was sent (seconds, milliseconds)",
            )];
        }
        Vec::new()
    }
}
