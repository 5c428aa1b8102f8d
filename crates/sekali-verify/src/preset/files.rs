//! The texts of the presets, read when they are first asked for.

use std::sync::OnceLock;

use super::Preset;

/// One file.
pub(super) struct File {
    pub(super) name: &'static str,
    text: &'static str,
    read: OnceLock<Preset>,
}

impl File {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            read: OnceLock::new(),
        }
    }

    pub(super) fn read(&'static self) -> &'static Preset {
        self.read.get_or_init(|| {
            let mut preset: Preset = toml::from_str(self.text).unwrap_or_else(|problem| {
                panic!("the preset {} cannot be read: {problem}", self.name)
            });
            preset.name = self.name;
            preset
        })
    }
}

/// Declares the files by the names of their presets.
macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        /// All presets, in alphabetical order.
        pub(super) static FILES: [File; [$($name),+].len()] = [
            $(File::new($name, include_str!(concat!("../presets/", $name, ".toml")))),+
        ];
    };
}

files! {
    "adyen",
    "aws-sns",
    "azure-event-grid",
    "bitbucket",
    "braintree",
    "calendly",
    "circleci",
    "clerk",
    "cloudevents",
    "coinbase-commerce",
    "discord",
    "docker-hub",
    "docusign",
    "doku",
    "dropbox",
    "github",
    "gitlab",
    "google-pubsub",
    "hubspot",
    "huggingface",
    "intercom",
    "jira",
    "line",
    "linear",
    "mailgun",
    "meta",
    "midtrans",
    "mollie",
    "notion",
    "okta",
    "openai",
    "orcid",
    "paddle",
    "pagerduty",
    "paypal",
    "plaid",
    "postmark",
    "razorpay",
    "resend",
    "sendgrid",
    "sentry",
    "shopify",
    "slack",
    "square",
    "standard-webhooks",
    "stripe",
    "svix",
    "telegram",
    "twilio",
    "twitch",
    "typeform",
    "vercel",
    "wise",
    "xendit",
    "xero",
    "zendesk",
    "zoom",
}
