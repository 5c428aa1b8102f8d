//! The ceiling: an axum handler that verifies the signature and answers, and stores nothing.

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use sekali_verify::{Check, Scheme, Secret, Window};

use crate::load::SECRET;

/// A running ceiling.
pub(crate) struct Ceiling {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Ceiling {
    pub(crate) fn start() -> Result<Self, Box<dyn std::error::Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("ceiling")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        Ok(Self {
            child,
            address: line.trim().parse()?,
        })
    }
}

impl Drop for Ceiling {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until the process is ended.
pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let secrets: Arc<[Secret]> =
                [Secret::new(SECRET).map_err(|problem| problem.to_string())?].into();
            let router = axum::Router::new()
                .route("/hooks/research", post(answer))
                .with_state(secrets);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            axum::serve(listener, router).await?;
            Ok(())
        })
}

async fn answer(
    State(secrets): State<Arc<[Secret]>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let scheme = Scheme::preset("timestamped").expect("the scheme is one of our own");
    let window = Window {
        past_ms: 300_000,
        future_ms: 300_000,
    };
    let check = Check {
        scheme,
        secrets: &secrets,
        window,
        now_ms: sekali::Clock::System.now_ms(),
    };
    match check.verify(&headers, body) {
        Ok(_) => StatusCode::ACCEPTED,
        Err(_) => StatusCode::UNAUTHORIZED,
    }
}
