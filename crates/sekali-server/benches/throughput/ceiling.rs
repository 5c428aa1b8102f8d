//! The ceiling: an axum handler that verifies the signature and answers, and stores nothing.

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use sekali_verify::{NoDocuments, Prove as _, Prover, Request, Scheme, Secret, Settings, Window};

use crate::request::SECRET;

/// A running ceiling.
pub(crate) struct Ceiling {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Ceiling {
    pub(crate) fn start() -> crate::Result<Self> {
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
pub(crate) fn run() -> crate::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let window = Window {
                past_ms: 300_000,
                future_ms: 300_000,
            };
            let schemes = [Scheme::standard()];
            let prover = Prover::new(
                &schemes,
                &[Secret::new(SECRET)?],
                Settings::default(),
                window,
            )?;
            let router = axum::Router::new()
                .route("/hooks/research", post(answer))
                .with_state(Arc::new(prover));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            axum::serve(listener, router).await?;
            Ok(())
        })
}

async fn answer(State(prover): State<Arc<Prover>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let now_ms = sekali::Clock::System.now_ms();
    match prover.verify(&Request::post(&headers, &body), now_ms, &NoDocuments) {
        Ok(_) => StatusCode::ACCEPTED,
        Err(_) => StatusCode::UNAUTHORIZED,
    }
}
