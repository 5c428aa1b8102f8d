//! Signs a body the way a sender does, for tests, demos and the command line.
//!
//! It is the counterpart of [`crate::Check`] and sends nothing itself.

use hmac::Mac;
use http::{HeaderName, HeaderValue};

use crate::scheme::{Encoding, Scheme, TimeUnit};
use crate::secret::Secret;
use crate::signed::feed;

impl Scheme {
    /// Makes the headers that prove a body; times before 1970 count as its start.
    pub fn sign(&self, secret: &Secret, body: &[u8], at_ms: i64) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::with_capacity(2);
        let mut timestamp = String::new();
        if let Some(time) = &self.time {
            let number = match time.unit {
                TimeUnit::UnixSeconds => at_ms.max(0) / 1000,
                TimeUnit::UnixMillis => at_ms.max(0),
            };
            timestamp = number.to_string();
            headers.push((time.header.clone(), HeaderValue::from(number)));
        }
        let mut mac = secret.start(self);
        feed(&self.signed, timestamp.as_bytes(), body, &mut |bytes| {
            mac.update(bytes)
        });
        let encoded = match self.signature.encoding {
            Encoding::Hex => hex::encode(mac.finalize().into_bytes()),
        };
        let place = &self.signature.place;
        let value = HeaderValue::try_from(format!("{}{encoded}", place.label()))
            .expect("labels are visible ASCII, and so are encoded bytes");
        headers.push((place.header().clone(), value));
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_and_values(scheme: &Scheme, at_ms: i64) -> Vec<(String, String)> {
        let secret = Secret::new("a-long-secret").unwrap();
        let signed = scheme.sign(&secret, b"{}", at_ms).into_iter();
        signed
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect()
    }

    #[test]
    fn a_timed_scheme_sends_both_headers() {
        let headers = names_and_values(&Scheme::standard(), 1_767_225_600_999);
        assert_eq!(
            headers[0],
            ("x-webhook-timestamp".to_owned(), "1767225600".to_owned())
        );
        assert_eq!(headers[1].0, "x-webhook-signature");
        assert!(headers[1].1.starts_with("v1=") && headers[1].1.len() == 67);
    }

    #[test]
    fn a_scheme_without_time_sends_one_header() {
        let headers = names_and_values(&Scheme::body_only(), i64::MIN);
        assert_eq!(headers.len(), 1);
        assert_eq!(
            (headers[0].0.as_str(), headers[0].1.len()),
            ("x-signature", 64)
        );
    }

    #[test]
    fn times_before_1970_are_its_start() {
        assert_eq!(names_and_values(&Scheme::standard(), -1)[0].1, "0");
    }
}
