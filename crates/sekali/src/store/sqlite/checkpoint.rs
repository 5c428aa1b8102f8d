//! Checkpoints: moving the write-ahead log into the database beside the writer, so that nobody waits for it.
//!
//! A pass on a connection of its own copies what is committed while the writer goes on appending. The log only starts
//! anew once everything in it was copied, which under steady load never happens by itself; past a limit the writer
//! copies the little that the last pass left, between two of its transactions.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::open_writer;

/// How long the log gathers before a pass that finds the writer idle. A long log is a long queue at the disk: at half load,
/// passes every 10, 100 and 300 ms left 99 % of the answers at 9.5, 12 and 21 ms.
const GATHER: Duration = Duration::from_millis(15);
/// How long it gathers while the writer is busy: pages that change often are copied in each pass, and passes every 20 ms
/// cost a tenth of the rate.
const MAX_GATHER: Duration = Duration::from_millis(100);
/// Pages in the log (256 MiB) after which the writer finishes a pass itself.
const MAX_PAGES: i64 = 65_536;

/// What the writer and the passes tell each other.
#[derive(Default)]
pub(super) struct Progress {
    commits: AtomicU64,
    is_full: AtomicBool,
    is_idle: AtomicBool,
    ends: Mutex<bool>,
    ended: Condvar,
}

impl Progress {
    /// Notes a commit of the writer, and finishes the pass where the log has grown too long.
    pub(super) fn committed(&self, db: &Connection) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if self.is_full.swap(false, Ordering::Relaxed) {
            // A failed pass leaves the log as it is; the next one comes soon.
            let _ = pass(db);
        }
    }

    /// Notes whether the writer has something to do.
    pub(super) fn set_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Has the thread end.
    pub(super) fn end(&self) {
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.notify_all();
    }

    /// Waits; tells whether the thread goes on.
    fn waits(&self) -> bool {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(ends, GATHER, |ends| !*ends);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Starts the thread that makes the passes.
pub(super) fn start(path: &Path, progress: &Arc<Progress>) -> std::io::Result<JoinHandle<()>> {
    let (path, progress) = (path.to_owned(), progress.clone());
    std::thread::Builder::new()
        .name("sekali-checkpoint".into())
        .spawn(move || {
            let Ok(db) = open_writer(&path) else {
                tracing::warn!(
                    "no connection for checkpoints; the log grows until the writer makes one"
                );
                return;
            };
            let (mut seen, mut last) = (0, Instant::now());
            while progress.waits() {
                let is_due =
                    progress.is_idle.load(Ordering::Relaxed) || last.elapsed() >= MAX_GATHER;
                let commits = progress.commits.load(Ordering::Relaxed);
                if !is_due || commits == seen {
                    continue;
                }
                (seen, last) = (commits, Instant::now());
                if let Ok(pages) = pass(&db)
                    && pages > MAX_PAGES
                {
                    progress.is_full.store(true, Ordering::Relaxed);
                }
            }
        })
}

/// Copies what can be copied without waiting for anybody, and returns how many pages the log has.
fn pass(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("pragma wal_checkpoint(passive)", [], |row| row.get(1))
}
