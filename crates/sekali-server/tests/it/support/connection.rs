//! HTTP/1.1 by hand, so that a test decides about every byte and sees every answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use super::PATIENCE;

/// A connection to a server.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The status code.
    pub(crate) status: u16,
    /// The headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Connection {
    /// Opens a connection.
    pub(crate) fn open(address: &str) -> Self {
        Self::try_open(address).unwrap()
    }

    /// Opens a connection, unless nobody listens.
    pub(crate) fn try_open(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends bytes; tells whether the server still took them.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// Says that nothing more comes; answers can still be read.
    pub(crate) fn end_sending(&mut self) {
        let end = std::net::Shutdown::Write;
        self.stream.get_ref().shutdown(end).unwrap();
    }

    /// Waits for an answer at most so long.
    pub(crate) fn set_patience(&mut self, patience: std::time::Duration) {
        self.stream
            .get_ref()
            .set_read_timeout(Some(patience))
            .unwrap();
    }

    /// Gets a path.
    pub(crate) fn get(mut self, path: &str) -> Reply {
        self.write(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes());
        self.read().expect("an answer")
    }

    /// Reads one answer; `None` where the connection ends without one.
    pub(crate) fn read(&mut self) -> Option<Reply> {
        self.read_reply(false)
    }

    /// Reads the answer to a HEAD, which has no body whatever its headers say.
    pub(crate) fn read_head(&mut self) -> Option<Reply> {
        self.read_reply(true)
    }

    fn read_reply(&mut self, is_head: bool) -> Option<Reply> {
        let first = self.line()?;
        let status = first.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = Reply {
            status,
            headers,
            body: Vec::new(),
        };
        if !is_head {
            let length = reply.header("content-length");
            reply.body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            self.stream.read_exact(&mut reply.body).ok()?;
        }
        Some(reply)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let len = self.stream.read_until(b'\n', &mut line).ok()?;
        (len > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

impl Reply {
    /// Returns a header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Returns what the answer says became of the delivery.
    pub(crate) fn outcome(&self) -> String {
        self.json()["outcome"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the status, the outcome and the reason in one line, which is what most tests are about.
    pub(crate) fn says(&self) -> String {
        let json = self.json();
        let field = |name: &str| json[name].as_str().map(|text| format!(" {text}"));
        let (outcome, reason) = (field("outcome"), field("reason"));
        format!(
            "{}{}{}",
            self.status,
            outcome.unwrap_or_default(),
            reason.unwrap_or_default()
        )
    }
}
