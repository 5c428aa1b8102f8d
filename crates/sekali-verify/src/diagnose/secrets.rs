//! Secrets that are the wrong ones, or taken for what they are not.

use super::{Case, Finding, finding};
use crate::scheme::{KeyForm, Scheme};
use crate::secret::Secret;

impl Case<'_> {
    pub(super) fn older_secrets(&self) -> Vec<Finding> {
        let all: Vec<Secret> = self
            .suspect
            .secrets
            .iter()
            .map(|secret| secret.clone().until(None))
            .collect();
        match self.fits(self.suspect.schemes, &all, &self.request) {
            true => vec![finding(
                "older_secret",
                "a secret fits that no longer counts: the provider still signs with it, so extend its `until`",
            )],
            false => Vec::new(),
        }
    }

    pub(super) fn secret_forms(&self) -> Vec<Finding> {
        const FORMS: [(&str, KeyForm, bool, &str); 5] = [
            (
                "secret_as_text",
                KeyForm::Text,
                false,
                "the secret's whole text is the key, with its prefix and without decoding it",
            ),
            (
                "secret_base64",
                KeyForm::Base64,
                false,
                "the secret is base64 and must be decoded",
            ),
            (
                "secret_base64_after_prefix",
                KeyForm::Base64,
                true,
                "the secret is base64 behind its prefix and must be decoded",
            ),
            (
                "secret_text_after_prefix",
                KeyForm::Text,
                true,
                "the secret's text without its prefix is the key",
            ),
            (
                "secret_hex",
                KeyForm::Hex,
                false,
                "the secret is hexadecimal and must be decoded",
            ),
        ];
        let mut found = Vec::new();
        for (code, form, cuts_prefix, sentence) in FORMS {
            for secret in self.suspect.secrets {
                let prefix = String::from_utf8_lossy(secret.reveal()).into_owned();
                let prefix = prefix.rfind('_').map(|end| prefix[..=end].to_owned());
                let schemes: Vec<Scheme> = self
                    .suspect
                    .schemes
                    .iter()
                    .filter(|scheme| {
                        scheme.algorithm.is_symmetric() && scheme.algorithm.signs_text()
                    })
                    .map(|scheme| Scheme {
                        key: form,
                        key_prefix: prefix.clone().filter(|_| cuts_prefix),
                        key_prefix_needed: cuts_prefix,
                        ..scheme.clone()
                    })
                    .collect();
                if self.fits(&schemes, std::slice::from_ref(secret), &self.request) {
                    found.push(finding(code, sentence));
                }
            }
        }
        found.extend(self.secret_line_end());
        found.truncate(1);
        found
    }

    fn secret_line_end(&self) -> Option<Finding> {
        let with = |end: &str| -> Vec<Secret> {
            let secrets = self.suspect.secrets.iter();
            secrets
                .map(|secret| Secret::of_any_length(&[secret.reveal(), end.as_bytes()].concat()))
                .collect()
        };
        let fits = |end: &&str| self.fits(self.suspect.schemes, &with(end), &self.request);
        ["\n", "\r\n", " "].iter().find(|end| fits(end)).map(|_| {
            finding(
                "secret_blank",
                "the provider's secret ends with a blank or line end: set it anew at the provider",
            )
        })
    }
}
