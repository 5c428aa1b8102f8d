//! Sources as they would be configured, with keys for every scheme of a preset.
//!
//! Nobody has the private keys that belong to the public ones here, and no input has the other secrets. So a request
//! that fits is one that was forged.

use std::sync::LazyLock;

use sekali_verify::{Preset, Prover, Rejection, Scheme, Secret, Settings, Window};

/// The window of every source.
pub const WINDOW: Window = Window {
    past_ms: 300_000,
    future_ms: 300_000,
};

/// Fake secrets in all forms; the first that a scheme can use is its own.
const SECRETS: [&str; 6] = [
    "fake-7Qm2xW9sKc4vTz1pLd8n",
    // An Ed25519 key in hexadecimal digits, good for HMAC as well.
    "f3ee2eefb9fbca0e389a6cef6ef50cf09e25dbdb836ba4187c44b594c196b51f",
    "whsec_Zv2Jc9fPq7Rk1tXw5mBn8sLd3hYg6aUe",
    "whpk_8+4u77n7yg44mmzvbvUM8J4l29uDa6QYfES1lMGWtR8=",
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAED/VEDjha+yLhxp/OSKdCsHq3qlVRdUjlMi/TYSqkkxiQlCm1q2Qv0S98P+QsOqZLj7U7hRtUYjYWLgNzZKdEIA==",
    "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA7uhJkECgTB1eSkye6/uP
3ZZ6t+5qkG2aUexsAC8+iCC42SWpgbtyk4JlNxttc8ACQvJSZjbRdVQBXjL1A0wB
6LQZhud+W3OlJmVc5YTY/5b2sjHImIxIMQ12yGb0P4uVJaetqx8XwhQcqDwEaNnX
Q39PfncJWPomH7acWvGhR1AM+nBB/VrO3Jx2U/755HDBV4lMJpOzQ6jjXEV2flFw
j64vQYFWXPmWqnJsL2/txmDyHiA15o4EfET0ofC0HiN3E/dNVJQ6hBFH193aiZB3
gSB0wr656F3VTac8BR6arQRYVvXFYLNbVFdW1Ac6yYvJLiFfayGKRqRoXjWgTyii
oQIDAQAB
-----END PUBLIC KEY-----",
];

/// A preset as a source of its own.
pub struct Source {
    /// The preset.
    pub preset: &'static Preset,
    /// Its schemes with the secrets.
    pub prover: Prover,
}

static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| Preset::all().map(Source::new).collect());

impl Source {
    /// Finds a source by a number, whichever it is.
    pub fn of(number: usize) -> &'static Self {
        &SOURCES[number % SOURCES.len()]
    }

    fn new(preset: &'static Preset) -> Self {
        let settings = settings(preset);
        let secrets = secrets(&preset.schemes, &settings);
        let prover = Prover::new(&preset.schemes, &secrets, settings, WINDOW);
        let prover = prover.unwrap_or_else(|problem| panic!("{}: {problem}", preset.name));
        // A scheme without a key would never be tried.
        assert_eq!(prover.schemes(), preset.schemes, "{}", preset.name);
        Self { preset, prover }
    }
}

/// Gives each scheme the first secret that it can use; none where its keys are fetched.
pub fn secrets(schemes: &[Scheme], settings: &Settings) -> Vec<Secret> {
    let mut chosen: Vec<Secret> = Vec::new();
    for scheme in schemes.iter().filter(|scheme| !scheme.has_outside_keys()) {
        let alone = std::slice::from_ref(scheme);
        let is_usable = |secret: &Secret| {
            let secrets = std::slice::from_ref(secret);
            Prover::new(alone, secrets, settings.clone(), WINDOW).is_ok()
        };
        let mut all = SECRETS.iter().flat_map(|text| Secret::new(*text));
        chosen.extend(
            all.find(is_usable)
                .filter(|secret| !chosen.contains(secret)),
        );
    }
    chosen
}

fn settings(preset: &Preset) -> Settings {
    let mut settings = preset.defaults();
    for name in preset.settings.keys() {
        if settings.get(name).is_none() {
            let is_list = matches!(name.as_str(), "topics" | "allowed_origins");
            let value = if is_list { "*" } else { "fake-setting" };
            settings.insert(name, value);
        }
    }
    settings
}

/// Tells whether no signature fitted; what comes after the signature says that one did.
pub fn is_unproven(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::Signature(_) | Rejection::KeyNeeded(_))
}
