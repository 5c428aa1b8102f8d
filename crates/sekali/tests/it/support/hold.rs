//! The inbox, held, so that deliveries gather behind it.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use sekali::Result;
use sekali::store::{Conn, Transaction};
use tokio::sync::mpsc as signals;
use tokio::task::JoinHandle;

use super::Rig;

/// The inbox, held until it is released.
pub(crate) struct Held {
    release: mpsc::Sender<()>,
    holding: JoinHandle<Result<()>>,
}

struct Hold {
    began: signals::UnboundedSender<()>,
    released: Mutex<mpsc::Receiver<()>>,
}

impl Transaction for Hold {
    type Output = ();
    const STEP: &'static str = "hold the inbox";

    async fn run(&self, conn: &mut Conn<'_>) -> Result<()> {
        match conn {
            // SQLite has one writer, on a thread of its own.
            Conn::Sqlite { .. } => {
                self.began.send(()).unwrap();
                let _ = self.released.lock().unwrap().recv();
                return Ok(());
            }
            Conn::Postgres { .. } => conn.script("lock table webhook_inbox").await.unwrap(),
            Conn::MySql { .. } => conn
                .script("lock tables webhook_inbox write")
                .await
                .unwrap(),
        }
        self.began.send(()).unwrap();
        while self.released.lock().unwrap().try_recv() == Err(mpsc::TryRecvError::Empty) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if let Conn::MySql { .. } = conn {
            conn.script("unlock tables").await.unwrap();
        }
        Ok(())
    }
}

impl Rig {
    /// Holds the inbox; returns once nothing else can be written.
    pub(crate) async fn hold_writer(&self) -> Held {
        let (began, mut begins) = signals::unbounded_channel();
        let (release, released) = mpsc::channel();
        let hold = Hold {
            began,
            released: Mutex::new(released),
        };
        let store = self.engine.store().clone();
        let holding = tokio::spawn(async move { store.write(hold).await });
        begins.recv().await.unwrap();
        Held { release, holding }
    }
}

impl Held {
    /// Lets go, after everybody who was started has come to wait for it.
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
