//! Keys that come from outside, from a key server on this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use tokio_rustls::rustls::crypto::ring as provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use sekali_verify::{Prover, Scheme, Secret, Settings, Window};

use super::{request, send_as_is, stored};
use crate::support::{Reply, Server, Start, eventually, now};

const CA: &str = include_str!("../../../src/fetch/testdata/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../src/fetch/testdata/server.pem");
const KEY: &[u8] = include_bytes!("../../../src/fetch/testdata/server.key.pem");

/// Answers every request with the present document.
struct KeyServer {
    port: u16,
    document: Arc<Mutex<String>>,
    requests: Arc<AtomicUsize>,
}

impl KeyServer {
    fn start(listener: TcpListener, document: &str) -> Self {
        let chain = CertificateDer::pem_slice_iter(CERTIFICATE)
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            document: Arc::new(Mutex::new(document.to_owned())),
            requests: Arc::default(),
        };
        let (config, document, requests) = (
            Arc::new(config),
            server.document.clone(),
            server.requests.clone(),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream =
                    StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
                // The request is small enough to come at once; who breaks off is no concern of the test.
                if stream.read(&mut [0; 4096]).is_ok() {
                    requests.fetch_add(1, Ordering::SeqCst);
                    let body = document.lock().unwrap().clone();
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(format!("{head}{body}").as_bytes());
                    let _ = stream.flush();
                }
            }
        });
        server
    }
}

/// A sender of tokens with a key of its own.
struct Issuer {
    pair: EcdsaKeyPair,
    kid: &'static str,
}

impl Issuer {
    fn new(kid: &'static str) -> Self {
        let random = SystemRandom::new();
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Self {
            pair: pair.unwrap(),
            kid,
        }
    }

    fn key(&self) -> String {
        let point = self.pair.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        format!(
            r#"{{"kty":"EC","crv":"P-256","kid":"{}","x":"{x}","y":"{y}"}}"#,
            self.kid
        )
    }

    fn token(&self) -> String {
        let part = |text: String| BASE64_URL_SAFE_NO_PAD.encode(text);
        let header = part(format!(r#"{{"alg":"ES256","kid":"{}"}}"#, self.kid));
        let claims = part(format!(r#"{{"exp":{},"aud":"us"}}"#, now() + 600));
        let signed = format!("{header}.{claims}");
        let signature = self
            .pair
            .sign(&SystemRandom::new(), signed.as_bytes())
            .unwrap();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }
}

fn set(issuers: &[&Issuer]) -> String {
    let keys: Vec<String> = issuers.iter().map(|issuer| issuer.key()).collect();
    format!(r#"{{"keys":[{}]}}"#, keys.join(","))
}

fn config(port: u16) -> String {
    format!(
        r#"
[keys]
ca_file = "ca.pem"
allow_private = true
refresh = "1s"

[[source]]
id = "tokens"
[[source.scheme]]
algorithm = "jwt"
key = "jwks"
signature = {{ header = "Authorization", label = "Bearer ", encoding = "text" }}
jwt = {{ algorithms = ["ES256"], audience = "us" }}
keys = {{ url = "https://localhost:{port}/keys", hosts = ["localhost:{port}"] }}
[source.map]
event_id = "/id"
"#
    )
}

fn send(server: &Server, issuer: &Issuer, id: &str) -> Reply {
    let mut sent = request(server, "tokens", &format!("{{\"id\":\"{id}\"}}"));
    let token = format!("Bearer {}", issuer.token());
    sent.headers.insert("authorization", token.parse().unwrap());
    send_as_is(server, &sent)
}

#[test]
fn a_key_is_fetched_once_and_a_new_one_is_looked_for() {
    let (old, new, stranger) = (Issuer::new("k-1"), Issuer::new("k-2"), Issuer::new("k-1"));
    let keys = KeyServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), &set(&[&old]));
    let server = Start::new(&config(keys.port)).file("ca.pem", CA).serve();
    for id in ["e-1", "e-2", "e-3"] {
        assert_eq!(send(&server, &old, id).says(), "202 accepted");
    }
    assert_eq!(keys.requests.load(Ordering::SeqCst), 1);
    assert_eq!(
        send(&server, &stranger, "e-4").says(),
        "401 rejected_signature signature_wrong"
    );
    // The key is newer than the copy, which may not be fetched anew at once.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    *keys.document.lock().unwrap() = set(&[&old, &new]);
    assert_eq!(send(&server, &new, "e-5").says(), "202 accepted");
    assert_eq!(keys.requests.load(Ordering::SeqCst), 2);
    // A flood of unknown ids asks nobody.
    let unknown = Issuer::new("k-9");
    for _ in 0..5 {
        assert_eq!(send(&server, &unknown, "e-6").status, 401);
    }
    assert_eq!(keys.requests.load(Ordering::SeqCst), 2);
    assert_eq!(stored(&server), ["e-1", "e-2", "e-3", "e-5"]);
}

#[test]
fn a_key_server_that_is_away_is_a_reason_to_come_again_and_never_valid() {
    let issuer = Issuer::new("k-1");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = Start::new(&config(address.port()))
        .file("ca.pem", CA)
        .serve();
    let reply = send(&server, &issuer, "e-1");
    assert_eq!(reply.says(), "503 unavailable key_unavailable");
    assert!(reply.header("retry-after").is_some());
    assert!(stored(&server).is_empty());
}

#[test]
fn strangers_cause_a_bounded_number_of_fetches() {
    let known = Issuer::new("k-1");
    let keys = KeyServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), &set(&[&known]));
    // Each key is asked for by its id, as Plaid has it.
    let config = config(keys.port).replace("hosts =", "post = { id = \"{kid}\" }, hosts =");
    let server = Start::new(&config).file("ca.pem", CA).serve();
    let started = std::time::Instant::now();
    for number in 0..60 {
        let kid: &'static str = format!("stranger-{number}").leak();
        let reply = send(&server, &Issuer::new(kid), "e-1");
        assert!(matches!(reply.status, 401 | 503), "{}", reply.says());
    }
    let allowed = 10 + started.elapsed().as_secs() as usize + 1;
    let asked = keys.requests.load(Ordering::SeqCst);
    assert!(asked <= 2 * allowed && asked < 60, "{asked} of {allowed}");
    assert!(stored(&server).is_empty());
    let long: &'static str = "k".repeat(300).leak();
    let reply = send(&server, &Issuer::new(long), "e-1");
    assert_eq!(
        reply.says(),
        "401 rejected_signature signature_untrusted_key"
    );
}

/// A source with a handshake that names an address to confirm.
fn subscription(id: &str, port: u16, more: &str) -> String {
    format!(
        r#"
[[source]]
id = "{id}"
scheme = "body-hmac"
secrets = ["env:ORDERS_SECRET"]
{more}
[[source.handshake]]
name = "subscription"
when = [{{ json = "/type", is = "subscribe" }}]
confirm = {{ url = {{ json = "/url" }}, hosts = ["localhost:{port}"] }}
[source.map]
event_id = "/id"
"#
    )
}

/// Asks to confirm an address, first as a forger.
fn subscribe(server: &Server, id: &str, url: &str) {
    let asked = request(
        server,
        id,
        &format!(r#"{{"type":"subscribe","url":"{url}"}}"#),
    );
    let secret = Secret::new(crate::support::ORDERS_SECRET).unwrap();
    let window = Window {
        past_ms: 1,
        future_ms: 1,
    };
    let sender = Prover::new(
        &[Scheme::body_only()],
        &[secret],
        Settings::default(),
        window,
    )
    .unwrap();
    let signed = sender.sign_request(asked.clone(), 0).unwrap();
    assert_eq!(
        send_as_is(server, &asked).status,
        401,
        "nothing is called for a forger"
    );
    assert_eq!(send_as_is(server, &signed).status, 200);
}

#[test]
fn an_address_is_confirmed_only_where_that_is_switched_on() {
    let keys = KeyServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), "");
    let tables = format!(
        "[keys]\nca_file = \"ca.pem\"\nallow_private = true\n{}{}",
        subscription("off", keys.port, ""),
        subscription("on", keys.port, "confirm_handshakes = true")
    );
    let server = Start::new(&tables).file("ca.pem", CA).serve();
    let recorded = |source: &str, outcome: &str| {
        let sql = "select count(*) from webhook_handshakes where source = ? and outcome = ?";
        server.count(sql, &[&source, &outcome])
    };
    let good = format!("https://localhost:{}/confirm", keys.port);
    subscribe(&server, "off", &good);
    eventually("it is recorded", || recorded("off", "answered") == 1);
    subscribe(&server, "on", &good);
    eventually("it is confirmed", || recorded("on", "confirmed") == 1);
    assert_eq!(keys.requests.load(Ordering::SeqCst), 1);
    subscribe(&server, "on", "https://evil.example/confirm");
    eventually("another host is not called", || {
        recorded("on", "failed") == 1
    });
    assert_eq!(
        (
            recorded("off", "confirmed"),
            keys.requests.load(Ordering::SeqCst)
        ),
        (0, 1)
    );
}
