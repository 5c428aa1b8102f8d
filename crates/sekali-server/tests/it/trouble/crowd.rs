//! Others who have taken every connection that a database gives away.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::site::{Site, USER};
use crate::support::Kind;

/// How long it takes at most until a server has answered a connection, or shown that it has none left.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Connections that are held until this is dropped.
pub(super) struct Crowd {
    _held: Vec<TcpStream>,
}

impl Crowd {
    /// Takes what is left, ends the node's connections, and takes those.
    pub(super) fn take_all(site: &Site) -> Self {
        let mut held = Vec::new();
        let mut take = |kind| {
            while let Some(stream) = take_one(site, kind) {
                held.push(stream);
            }
        };
        take(site.database.kind());
        // The node is quicker than the crowd at times: it makes a new one as soon as it needs it.
        site.within("the node has no connection left", || {
            let had = site.proxy.cut();
            take(site.database.kind());
            had == 0
        });
        Self { _held: held }
    }
}

/// Takes a connection; `None` where the server says that there is none.
fn take_one(site: &Site, kind: Kind) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", site.database.port())).unwrap();
    stream.set_read_timeout(Some(ANSWERS_WITHIN)).unwrap();
    let is_taken = match kind {
        Kind::Postgres => {
            let names = format!("user\0{USER}\0database\0{USER}\0\0");
            let len = u32::try_from(8 + names.len()).unwrap().to_be_bytes();
            let version = 196_608_u32.to_be_bytes();
            let start = [&len[..], &version[..], names.as_bytes()].concat();
            stream.write_all(&start).unwrap();
            becomes_ready(&mut stream)
        }
        // The server greets, and then waits for who it is; an error has 255 where the greeting has the protocol's version.
        Kind::MariaDb => {
            let mut greeting = [0; 5];
            stream.read_exact(&mut greeting).is_ok() && greeting[4] != 0xff
        }
    };
    is_taken.then_some(stream)
}

/// Reads what PostgreSQL says until it waits for a query, or has refused.
fn becomes_ready(stream: &mut TcpStream) -> bool {
    let mut head = [0; 5];
    while stream.read_exact(&mut head).is_ok() {
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut rest = vec![0; usize::try_from(len).unwrap() - 4];
        stream.read_exact(&mut rest).unwrap();
        match head[0] {
            b'Z' => return true,
            b'E' => return false,
            _ => {}
        }
    }
    false
}
