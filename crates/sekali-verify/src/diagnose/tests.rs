//! Each hypothesis, with a request that it explains.

use http::HeaderMap;

use super::*;
use crate::outside::NoDocuments;
use crate::scheme::{Algorithm, Encoding, KeyForm};

const NOW: i64 = 1_767_225_600_000;
const BODY: &str =
    "{\"id\":\"evt_1\",\"name\":\"sm\u{e5} <bl\u{e5}>\",\"url\":\"a/b\",\"amount\":10.00}";
const WINDOW: Window = Window {
    past_ms: 300_000,
    future_ms: 300_000,
};

fn secret(text: &str) -> Secret {
    Secret::of_any_length(text.as_bytes())
}

fn prover(schemes: &[Scheme], secret: &Secret) -> Prover {
    let secrets = std::slice::from_ref(secret);
    Prover::new(schemes, secrets, Settings::default(), WINDOW).unwrap()
}

struct Setting {
    schemes: Vec<Scheme>,
    secrets: Vec<Secret>,
    others: Vec<(String, Secret)>,
}

impl Setting {
    fn of(preset: &str, secret_text: &str) -> Self {
        Self {
            schemes: Preset::find(preset).unwrap().schemes.clone(),
            secrets: vec![secret(secret_text)],
            others: Vec::new(),
        }
    }

    fn diagnose(&self, headers: &HeaderMap, url: &str, body: &str) -> Diagnosis {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let request = Request {
            url,
            ..Request::post(headers, &body)
        };
        let suspect = Suspect {
            schemes: &self.schemes,
            secrets: &self.secrets,
            others: &self.others,
            settings: &Settings::default(),
            window: WINDOW,
        };
        diagnose(&suspect, &request, NOW, &NoDocuments)
    }

    fn codes(&self, headers: &HeaderMap, body: &str) -> Vec<&'static str> {
        let found = self.diagnose(headers, "", body).findings;
        found.iter().map(|finding| finding.code).collect()
    }
}

fn signed(preset: &str, secret_text: &str, body: &str) -> HeaderMap {
    let schemes = &Preset::find(preset).unwrap().schemes;
    let body = Bytes::copy_from_slice(body.as_bytes());
    prover(schemes, &secret(secret_text))
        .sign(&body, NOW)
        .unwrap()
}

#[test]
fn what_fits_is_said_to_fit() {
    let headers = signed("github", "fake-secret", BODY);
    let diagnosis = Setting::of("github", "fake-secret").diagnose(&headers, "", BODY);
    assert_eq!((diagnosis.code, diagnosis.findings.len()), ("verified", 0));
}

#[test]
fn changed_bodies_are_recognized() {
    let setting = Setting::of("github", "fake-secret");
    let pretty =
        serde_json::to_string_pretty(&serde_json::json!({"a": 1, "b": ["x", {}]})).unwrap();
    let spaced = "{\"a\": 1, \"b\": [\"x\", {}]}";
    let compact = "{\"a\":1,\"b\":[\"x\",{}]}";
    for (sent, received, code) in [
        (format!("{BODY}\n"), BODY.to_owned(), "body_line_end"),
        (BODY.to_owned(), format!("{BODY}\r\n"), "body_line_end"),
        (format!("\u{feff}{BODY}"), BODY.to_owned(), "body_mark"),
        (compact.to_owned(), pretty.clone(), "body_printed_again"),
        (spaced.to_owned(), compact.to_owned(), "body_printed_again"),
        (pretty, compact.to_owned(), "body_printed_again"),
        (
            BODY.replace('\u{e5}', "\\u00e5"),
            BODY.to_owned(),
            "body_escapes",
        ),
        (
            BODY.replace('\u{e5}', "\\u00e5").replace("a/b", "a\\/b"),
            BODY.to_owned(),
            "body_escapes",
        ),
        (
            BODY.replace('<', "\\u003c").replace('>', "\\u003e"),
            BODY.to_owned(),
            "body_escapes",
        ),
        ("a\r\nb".to_owned(), "a\nb".to_owned(), "body_line_ends"),
    ] {
        let headers = signed("github", "fake-secret", &sent);
        assert_eq!(
            setting.codes(&headers, &received),
            [code],
            "{sent} {received}"
        );
    }
}

#[test]
fn wrong_forms_of_the_secret_are_recognized() {
    let base64 = "ZmFrZS1zZWNyZXQtZm9yLXRlc3RzLW9ubHk=";
    let decoded = "fake-secret-for-tests-only";
    let hex = hex::encode(decoded);
    let whsec = format!("whsec_{base64}");
    for (preset, key, configured, code) in [
        ("github", decoded, base64, "secret_base64"),
        (
            "github",
            decoded,
            whsec.as_str(),
            "secret_base64_after_prefix",
        ),
        ("github", decoded, hex.as_str(), "secret_hex"),
        ("github", base64, whsec.as_str(), "secret_text_after_prefix"),
        ("github", "fake-secret\n", "fake-secret", "secret_blank"),
    ] {
        let headers = signed(preset, key, BODY);
        let codes = Setting::of(preset, configured).codes(&headers, BODY);
        assert_eq!(codes.first(), Some(&code), "{code}");
    }
    // Stripe takes the whole text, Standard Webhooks what it stands for.
    let mut schemes = Preset::find("standard-webhooks").unwrap().schemes.clone();
    schemes.truncate(1);
    schemes[0].key = KeyForm::Text;
    schemes[0].key_prefix = None;
    let body = Bytes::copy_from_slice(BODY.as_bytes());
    let headers = prover(&schemes, &secret(&whsec)).sign(&body, NOW).unwrap();
    let codes = Setting::of("standard-webhooks", &whsec).codes(&headers, BODY);
    assert_eq!(codes.first(), Some(&"secret_as_text"));
}

#[test]
fn secrets_that_are_old_or_of_another_source_are_recognized() {
    let headers = signed("github", "fake-secret", BODY);
    let mut setting = Setting::of("github", "another-fake-secret");
    setting
        .others
        .push(("orders".to_owned(), secret("fake-secret")));
    assert_eq!(setting.codes(&headers, BODY), ["other_source"]);
    setting.others.clear();
    setting
        .secrets
        .push(secret("fake-secret").until(Some(NOW - 1)));
    assert_eq!(setting.codes(&headers, BODY), ["older_secret"]);
}

#[test]
fn wrong_forms_of_the_signature_are_recognized() {
    let setting = Setting::of("sentry", "fake-secret");
    let change = |change: &dyn Fn(&mut Scheme)| {
        let mut schemes = setting.schemes.clone();
        schemes.iter_mut().for_each(change);
        let body = Bytes::copy_from_slice(BODY.as_bytes());
        prover(&schemes, &secret("fake-secret"))
            .sign(&body, NOW)
            .unwrap()
    };
    let base64 = change(&|scheme| scheme.signature.encoding = Encoding::Base64);
    assert_eq!(setting.codes(&base64, BODY), ["signature_encoding"]);
    let sha1 = change(&|scheme| scheme.algorithm = Algorithm::HmacSha1);
    assert_eq!(setting.codes(&sha1, BODY), ["algorithm"]);
    let github = Setting::of("github", "fake-secret");
    let mut headers = signed("github", "fake-secret", BODY);
    let bare = headers["x-hub-signature-256"].to_str().unwrap()[7..].to_owned();
    headers.insert("x-hub-signature-256", bare.parse().unwrap());
    assert_eq!(github.codes(&headers, BODY), ["label_missing"]);
}

#[test]
fn times_are_explained() {
    let setting = Setting::of("slack", "fake-secret");
    let schemes = &setting.schemes;
    let body = Bytes::copy_from_slice(BODY.as_bytes());
    let late = prover(schemes, &secret("fake-secret"))
        .sign(&body, NOW - 3_600_000)
        .unwrap();
    let diagnosis = setting.diagnose(&late, "", BODY);
    assert_eq!(
        (diagnosis.code, diagnosis.findings[0].code),
        ("timestamp_expired", "clock")
    );
    assert!(diagnosis.findings[0].sentence.contains("3600 s"));
    let mut headers = signed("slack", "fake-secret", BODY);
    headers.insert(
        "x-slack-request-timestamp",
        "1767225600000".parse().unwrap(),
    );
    assert_eq!(setting.codes(&headers, BODY), ["timestamp_unit"]);
}

#[test]
fn proxies_are_recognized() {
    let setting = Setting::of("square", "fake-secret");
    let body = Bytes::copy_from_slice(BODY.as_bytes());
    for (called, seen, code) in [
        (
            "https://hooks.example.test/a",
            "http://hooks.example.test/a",
            "url_scheme",
        ),
        (
            "https://hooks.example.test/a",
            "http://10.0.0.1:8686/a",
            "url_host",
        ),
        (
            "https://hooks.example.test:443/a",
            "https://hooks.example.test/a",
            "url_port",
        ),
        (
            "https://hooks.example.test/a/",
            "https://hooks.example.test/a",
            "url_path",
        ),
    ] {
        let request = crate::sign::Outgoing::post(called, HeaderMap::new(), body.clone());
        let sender = prover(&setting.schemes, &secret("fake-secret"));
        let mut headers = sender.sign_request(request, NOW).unwrap().headers;
        headers.insert("host", "hooks.example.test".parse().unwrap());
        let found = setting.diagnose(&headers, seen, BODY).findings;
        assert_eq!(found[0].code, code, "{called} {seen}");
    }
}

#[test]
fn other_presets_and_missing_headers_are_named() {
    let setting = Setting::of("shopify", "fake-secret");
    let headers = signed("github", "fake-secret", BODY);
    let found = setting.diagnose(&headers, "", BODY).findings;
    let codes: Vec<&str> = found.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["header_missing", "other_preset"]);
    assert!(
        found[0].sentence.contains("x-hub-signature-256") && found[1].sentence.contains("github")
    );
    let none = setting.diagnose(&HeaderMap::new(), "", BODY).findings;
    assert!(none[0].sentence.contains("there is none"));
}

#[test]
fn the_right_signature_is_never_shown() {
    let good = signed("github", "fake-secret", BODY)["x-hub-signature-256"]
        .to_str()
        .unwrap()[7..]
        .to_owned();
    let mut headers = HeaderMap::new();
    headers.insert("x-hub-signature-256", "sha256=00".parse().unwrap());
    for body in [BODY, "{}", ""] {
        let diagnosis = Setting::of("github", "fake-secret").diagnose(&headers, "", body);
        let shown = format!("{diagnosis:?}");
        assert!(
            !shown.contains(&good) && !shown.contains("fake-secret"),
            "{shown}"
        );
    }
}
