//! The client against a server on this machine, with and without TLS.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;

const CA: &[u8] = include_bytes!("testdata/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("testdata/server.pem");
const KEY: &[u8] = include_bytes!("testdata/server.key.pem");

/// A server on a port of its own.
struct Server {
    port: u16,
    /// How many requests it saw.
    requests: Arc<AtomicUsize>,
}

impl Server {
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = requests.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, count) = (tls.clone(), count.clone());
                tokio::spawn(async move {
                    let answer = service_fn(move |request| {
                        count.fetch_add(1, Ordering::SeqCst);
                        answer(request)
                    });
                    let http = hyper::server::conn::http1::Builder::new();
                    // What a client does not like, it breaks off.
                    let _ = match tls {
                        None => http.serve_connection(TokioIo::new(stream), answer).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => http.serve_connection(TokioIo::new(stream), answer).await,
                            Err(_) => return,
                        },
                    };
                });
            }
        });
        Self { port, requests }
    }

    async fn tls() -> Self {
        let chain = CertificateDer::pem_slice_iter(CERTIFICATE).collect::<Result<_, _>>();
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.unwrap(), key)
            .unwrap();
        Self::start(Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    /// Asks for a path of this server, without TLS.
    fn get(&self, path: &str) -> Request {
        let host = format!("127.0.0.1:{}", self.port);
        let rule = rule(&host).allow_http().allow_private();
        Request::get(format!("http://{host}{path}"), Arc::new(rule))
    }

    fn get_tls(&self, host: &str) -> Request {
        let host = format!("{host}:{}", self.port);
        let url = format!("https://{host}/");
        Request::get(url, Arc::new(rule(&host).allow_private()))
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn rule(host: &str) -> Rule {
    Rule::hosts([host]).unwrap()
}

async fn answer(request: http::Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let header = |name| {
        head.headers
            .get(name)
            .map_or("-", |value| value.to_str().unwrap())
    };
    let mut answer = Response::new(Full::default());
    match head.uri.path() {
        "/echo" => {
            let said = [
                head.method.as_str(),
                &head.uri.to_string(),
                header(header::CONTENT_TYPE),
            ]
            .join(" ");
            let body = body.collect().await.unwrap().to_bytes();
            *answer.body_mut() = [said.as_bytes(), b" ", &body].concat().into();
        }
        "/bytes" => {
            let len = head.uri.query().unwrap().parse().unwrap();
            *answer.body_mut() = vec![b'x'; len].into();
        }
        "/moved" => {
            *answer.status_mut() = http::StatusCode::FOUND;
            let place = header::HeaderValue::from_static("/echo");
            answer.headers_mut().insert(header::LOCATION, place);
        }
        "/broken" => *answer.status_mut() = http::StatusCode::BAD_GATEWAY,
        "/never" => std::future::pending().await,
        _ => *answer.body_mut() = Bytes::from_static(b"hello").into(),
    }
    Ok(answer)
}

fn client() -> Client {
    Client::new(Limits::default(), Some(CA)).unwrap()
}

async fn code(client: &Client, request: Request) -> &'static str {
    client.fetch(request).await.unwrap_err().code()
}

#[tokio::test]
async fn requests_arrive_as_they_were_meant() {
    let server = Server::start(None).await;
    let get = server.get("/echo?a=%2f&b");
    let answer = client().fetch(get.clone()).await.unwrap();
    assert_eq!(answer, "GET /echo?a=%2f&b - ");
    let body = Bytes::from_static(b"{\"secret\":1}");
    let post = Request::post(get.url, body, get.rule);
    assert!(!format!("{post:?}").contains("secret"), "{post:?}");
    let answer = client().fetch(post).await.unwrap();
    assert_eq!(answer, "POST /echo?a=%2f&b application/json {\"secret\":1}");
}

#[tokio::test]
async fn an_answer_has_a_largest_size() {
    let server = Server::start(None).await;
    let largest = Limits::default().max_body_bytes;
    let fits = server.get(&format!("/bytes?{largest}"));
    assert_eq!(client().fetch(fits).await.unwrap().len(), largest);
    let more = server.get(&format!("/bytes?{}", largest + 1));
    assert_eq!(code(&client(), more).await, "too_large");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = Server::start(None).await;
    let moved = client().fetch(server.get("/moved")).await.unwrap_err();
    assert!(matches!(moved, FetchError::Status(302)), "{moved:?}");
    assert_eq!(server.requests(), 1);
    let broken = client().fetch(server.get("/broken")).await.unwrap_err();
    assert!(matches!(broken, FetchError::Status(502)), "{broken:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let server = Server::start(None).await;
    let limits = Limits {
        within: Duration::from_millis(100),
        max_in_flight: 1,
        ..Limits::default()
    };
    let client = Client::new(limits, None).unwrap();
    let (first, second) = (server.get("/never"), server.get("/never"));
    // The second does not even get its place in time.
    let both = tokio::join!(code(&client, first), code(&client, second));
    assert_eq!(both, ("timeout", "timeout"));
    assert_eq!(client.places.available_permits(), 1);
}

#[tokio::test]
async fn eight_requests_run_at_once() {
    let server = Server::start(None).await;
    let client = Arc::new(client());
    let asked: Vec<_> = (0..8)
        .map(|_| {
            let (client, request) = (client.clone(), server.get("/never"));
            tokio::spawn(async move { client.fetch(request).await })
        })
        .collect();
    while server.requests() < 8 {
        tokio::task::yield_now().await;
    }
    // The ninth has to wait for one of them.
    assert_eq!(client.places.available_permits(), 0);
    for one in asked {
        one.abort();
        let _ = one.await;
    }
    assert_eq!(client.places.available_permits(), 8);
}

#[tokio::test]
async fn what_is_not_allowed_is_not_sent() {
    let server = Server::start(None).await;
    let host = format!("127.0.0.1:{}", server.port);
    let request = |url: String, rule: Rule| Request::get(url, Arc::new(rule));
    let http = format!("http://{host}/");
    let no_http = request(http.clone(), rule(&host).allow_private());
    assert_eq!(code(&client(), no_http).await, "host_not_allowed");
    let other_host = request(
        http.clone(),
        rule("example.com").allow_http().allow_private(),
    );
    assert_eq!(code(&client(), other_host).await, "host_not_allowed");
    let private = request(http, rule(&host).allow_http());
    assert_eq!(code(&client(), private).await, "address_not_allowed");
    // Also where a name or another spelling leads there.
    for host in ["localhost", "[::ffff:127.0.0.1]", "2130706433", "0"] {
        let host = format!("{host}:{}", server.port);
        let hidden = request(format!("http://{host}/"), rule(&host).allow_http());
        assert_eq!(
            code(&client(), hidden).await,
            "address_not_allowed",
            "{host}"
        );
    }
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_host_proves_who_it_is() {
    let server = Server::tls().await;
    let answer = client().fetch(server.get_tls("localhost")).await;
    assert_eq!(answer.unwrap(), "hello");
    let other_name = code(&client(), server.get_tls("127.0.0.1")).await;
    let usual = Client::new(Limits::default(), None).unwrap();
    let other_authority = code(&usual, server.get_tls("localhost")).await;
    assert_eq!((other_name, other_authority), ("tls", "tls"));
    assert_eq!(server.requests(), 1);
    let plain = Server::start(None).await;
    assert_eq!(code(&client(), plain.get_tls("localhost")).await, "tls");
}

#[tokio::test]
async fn a_host_that_is_not_there_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let nobody = Server {
        port,
        requests: Arc::default(),
    };
    let error = client().fetch(nobody.get("/")).await.unwrap_err();
    assert_eq!(error.code(), "connection");
    let chain = sekali::chain(&error);
    assert!(chain.starts_with("could not talk to the host: "), "{chain}");
}

#[test]
fn a_file_of_roots_must_have_some() {
    assert!(Client::new(Limits::default(), Some(b"")).is_err());
    assert!(Client::new(Limits::default(), Some(KEY)).is_err());
}
