//! Signed deliveries, and every way to get them wrong.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{Connection, ORDERS_SECRET, RESEARCH_SECRET, Reply, Server, now};

/// A delivery on its way to a server. As it is made, it is valid.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    path: String,
    body: Vec<u8>,
    signed_body: Option<Vec<u8>>,
    secret: String,
    timestamp: String,
    signature: Option<Vec<u8>>,
    headers: Vec<(String, Vec<u8>)>,
    without: Vec<String>,
    is_chunked: bool,
}

/// Makes a valid delivery to the source of orders.
pub(crate) fn hook(id: &str, body: impl AsRef<[u8]>) -> Hook {
    let hook = Hook {
        path: "/hooks/orders".into(),
        body: body.as_ref().to_vec(),
        signed_body: None,
        secret: ORDERS_SECRET.into(),
        timestamp: now().to_string(),
        signature: None,
        headers: Vec::new(),
        without: Vec::new(),
        is_chunked: false,
    };
    hook.header("X-Webhook-Id", id)
        .header("Content-Type", "application/json")
}

/// Makes a valid delivery to the source of research documents.
pub(crate) fn research_hook(id: &str, body: impl AsRef<[u8]>) -> Hook {
    hook(id, body).to("research").secret(RESEARCH_SECRET)
}

/// Computes the signature of a body, in hexadecimal digits.
pub(crate) fn sign(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

impl Hook {
    /// Sends it to another source.
    pub(crate) fn to(mut self, source: &str) -> Self {
        self.path = format!("/hooks/{source}");
        self
    }

    /// Signs with another secret.
    pub(crate) fn secret(mut self, secret: &str) -> Self {
        self.secret = secret.into();
        self
    }

    /// Sends and signs another timestamp, taken literally.
    pub(crate) fn timestamp(mut self, timestamp: impl ToString) -> Self {
        self.timestamp = timestamp.to_string();
        self
    }

    /// Sends another signature header.
    pub(crate) fn signature(mut self, signature: impl AsRef<[u8]>) -> Self {
        self.signature = Some(signature.as_ref().to_vec());
        self
    }

    /// Signs another body than the one that is sent.
    pub(crate) fn signed_over(mut self, body: impl AsRef<[u8]>) -> Self {
        self.signed_body = Some(body.as_ref().to_vec());
        self
    }

    /// Sets a header in place of one of the same name.
    pub(crate) fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let mut hook = self;
        hook.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        hook.headers.push((name.into(), value.as_ref().to_vec()));
        hook
    }

    /// Leaves a header out, also one of those that prove the body.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.without.push(name.to_ascii_lowercase());
        self
    }

    /// Sends the body in chunks, without its length.
    pub(crate) fn chunked(mut self) -> Self {
        self.is_chunked = true;
        self
    }

    /// Returns the good value of the signature header.
    pub(crate) fn good_signature(&self) -> String {
        let body = self.signed_body.as_ref().unwrap_or(&self.body);
        format!("v1={}", sign(&self.secret, &self.timestamp, body))
    }

    /// Renders everything in front of the body.
    pub(crate) fn head(&self) -> Vec<u8> {
        let signature = self.signature.clone();
        let signature = signature.unwrap_or_else(|| self.good_signature().into_bytes());
        let mut headers = self.headers.clone();
        headers.push(("X-Webhook-Timestamp".into(), self.timestamp.clone().into()));
        headers.push(("X-Webhook-Signature".into(), signature));
        headers.push(match self.is_chunked {
            true => ("Transfer-Encoding".into(), b"chunked".to_vec()),
            false => ("Content-Length".into(), self.body.len().to_string().into()),
        });
        let mut head = format!("POST {} HTTP/1.1\r\nHost: test\r\n", self.path).into_bytes();
        for (name, value) in headers {
            if !self.without.contains(&name.to_ascii_lowercase()) {
                head.extend([name.as_bytes(), b": ", &value, b"\r\n"].concat());
            }
        }
        head.extend(b"\r\n");
        head
    }

    /// Renders the body as it goes over the wire.
    pub(crate) fn content(&self) -> Vec<u8> {
        if !self.is_chunked {
            return self.body.clone();
        }
        let mut content = Vec::new();
        for chunk in self.body.chunks(64 * 1024) {
            content.extend(format!("{:x}\r\n", chunk.len()).bytes());
            content.extend_from_slice(chunk);
            content.extend(b"\r\n");
        }
        content.extend(b"0\r\n\r\n");
        content
    }

    /// Sends it over an open connection.
    pub(crate) fn send_on(&self, connection: &mut Connection) -> Option<Reply> {
        let request = [self.head(), self.content()].concat();
        // A server that has heard enough may close before everything is written; its answer is still there.
        connection.write(&request);
        connection.read()
    }

    /// Sends it to an address.
    pub(crate) fn send_to(&self, address: &str) -> Option<Reply> {
        self.send_on(&mut Connection::open(address))
    }

    /// Sends it over a connection of its own.
    pub(crate) fn send(&self, server: &Server) -> Reply {
        self.send_to(server.address()).expect("an answer")
    }
}
