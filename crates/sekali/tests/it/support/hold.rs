//! The one writer, held, so that deliveries gather behind it.

use std::sync::mpsc;

use sekali::Result;
use sekali::store::{Conn, Transaction};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Rig;

/// The writer, held until it is released.
pub(crate) struct Held {
    release: mpsc::Sender<()>,
    holding: JoinHandle<Result<()>>,
}

struct Hold {
    began: oneshot::Sender<()>,
    released: mpsc::Receiver<()>,
}

impl Transaction for Hold {
    type Output = ();
    const STEP: &'static str = "hold the writer";

    async fn run(self, _: &mut Conn<'_>) -> Result<()> {
        self.began.send(()).unwrap();
        let _ = self.released.recv();
        Ok(())
    }
}

impl Rig {
    /// Holds the writer; returns once nothing else can be written.
    pub(crate) async fn hold_writer(&self) -> Held {
        let ((began, begins), (release, released)) = (oneshot::channel(), mpsc::channel());
        let store = self.engine.store().clone();
        let holding = tokio::spawn(async move { store.write(Hold { began, released }).await });
        begins.await.unwrap();
        Held { release, holding }
    }
}

impl Held {
    /// Lets the writer go, after everybody who was started has come to wait for it.
    pub(crate) async fn release(self) {
        settle().await;
        drop(self.release);
        self.holding.await.unwrap().unwrap();
    }
}

/// Gives every task of a runtime with one thread its turn.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
