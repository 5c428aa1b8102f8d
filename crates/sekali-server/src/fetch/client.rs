//! The client itself: a connection for every request, over TLS unless the rule allows otherwise.
//!
//! Requests are rare, since documents are cached, so no connection is kept. A name is resolved once, and the connection
//! goes to an address that was checked: an answer of the name server cannot change in between.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::address::is_public;
use super::rule::Target;
use super::{Fetch, FetchError, Fetching, Method, Request};

/// How the receiver calls itself.
const USER_AGENT: &str = concat!("sekali/", env!("CARGO_PKG_VERSION"));
/// How much of an answer's head is read.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// After how long the next address of a host is tried, so that one that swallows everything does not use up the time.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// How much a request may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The time from the call to the last byte of the answer.
    pub(crate) within: Duration,
    /// The size of an answer.
    pub(crate) max_body_bytes: usize,
    /// How many requests run at once; one more waits, in its own time.
    pub(crate) max_in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            within: Duration::from_secs(5),
            max_body_bytes: 256 << 10,
            max_in_flight: 8,
        }
    }
}

/// Asks servers of the internet.
pub(crate) struct Client {
    limits: Limits,
    tls: TlsConnector,
    pub(super) places: Semaphore,
}

impl Client {
    /// Creates a client that trusts the usual authorities, and those of a PEM file where there is one.
    pub(crate) fn new(limits: Limits, further_roots: Option<&[u8]>) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        if let Some(pem) = further_roots {
            let before = roots.len();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                roots.add(certificate?)?;
            }
            anyhow::ensure!(roots.len() > before, "there is no certificate in the file");
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            limits,
            tls: TlsConnector::from(Arc::new(config)),
            places: Semaphore::new(limits.max_in_flight),
        })
    }

    async fn ask(&self, request: &Request) -> Result<Bytes, FetchError> {
        let target = request.rule.target(&request.url)?;
        // The semaphore is never closed.
        let _place = self.places.acquire().await.map_err(connection)?;
        let stream = connect(&target, request.rule.allows_private()).await?;
        let outgoing = outgoing(request, &target)?;
        if target.is_tls {
            let name = ServerName::try_from(target.host).map_err(connection)?;
            let stream = self.tls.connect(name, stream).await.map_err(handshake)?;
            exchange(stream, outgoing, self.limits.max_body_bytes).await
        } else {
            exchange(stream, outgoing, self.limits.max_body_bytes).await
        }
    }
}

impl Fetch for Client {
    fn fetch(&self, request: Request) -> Fetching<'_> {
        Box::pin(async move {
            let answer = timeout(self.limits.within, self.ask(&request)).await;
            answer.unwrap_or(Err(FetchError::Timeout))
        })
    }
}

/// Connects to the first address of a host that answers. One address that may not be asked spoils the host.
async fn connect(target: &Target, allows_private: bool) -> Result<TcpStream, FetchError> {
    let found = lookup_host((target.host.as_str(), target.port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(connection)?.collect();
    if !allows_private && !addresses.iter().all(|address| is_public(address.ip())) {
        return Err(FetchError::AddressNotAllowed);
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        match timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(elapsed) => last = elapsed.into(),
        }
    }
    Err(connection(last))
}

fn outgoing(request: &Request, target: &Target) -> Result<http::Request<Full<Bytes>>, FetchError> {
    let method = match request.method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
    };
    let host = HeaderValue::from_str(&target.authority).map_err(connection)?;
    let body = request.body.clone();
    let is_json = body.is_some();
    let mut outgoing = http::Request::new(Full::new(body.unwrap_or_default()));
    *outgoing.method_mut() = method;
    *outgoing.uri_mut() = target.path.parse::<Uri>().map_err(connection)?;
    let headers = outgoing.headers_mut();
    headers.insert(header::HOST, host);
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if is_json {
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
    }
    Ok(outgoing)
}

/// Sends a request over a connection and reads the answer.
async fn exchange<S>(
    stream: S,
    request: http::Request<Full<Bytes>>,
    max_body_bytes: usize,
) -> Result<Bytes, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (mut sender, driver) = handshake.map_err(connection)?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(connection)?;
        if !answer.status().is_success() {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        read(answer.into_body(), max_body_bytes).await
    };
    // What goes wrong with the connection shows in the answer, which may be read on after the connection has ended.
    let drive = async {
        let _ = driver.await;
        pending().await
    };
    tokio::select! {
        answer = answer => answer,
        never = drive => never,
    }
}

async fn read(mut body: Incoming, max_body_bytes: usize) -> Result<Bytes, FetchError> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(connection)?.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > max_body_bytes {
            return Err(FetchError::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

fn connection(cause: impl std::error::Error + Send + Sync + 'static) -> FetchError {
    FetchError::Connection(Arc::new(cause))
}

/// Tells a host that proves nothing from a connection that breaks during the handshake.
fn handshake(error: io::Error) -> FetchError {
    match error.downcast::<rustls::Error>() {
        Ok(error) => FetchError::Tls(Arc::new(error)),
        Err(error) => connection(error),
    }
}
