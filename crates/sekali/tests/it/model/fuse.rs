//! A fuse between a node and its database, for the two moments that matter most: just before a commit and just after it.
//!
//! Once it is spoiled, either no commit of that node reaches the database, or commits happen and nobody hears of them. For
//! a server that is a proxy which looks for the word; for a file it is SQLite's own hook.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sekali::store::{Conn, Transaction};
use sekali::{Database, Store};
use sekali_testkit::proxy::{Fault, Proxy};

const COMMIT: &[u8] = b"COMMIT";

/// On which side of its commit a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    After,
}

#[derive(Default)]
pub(super) struct Fuse {
    proxy: Option<Proxy>,
    file: Arc<File>,
}

#[derive(Default)]
struct File {
    is_spoiled: AtomicBool,
    refuses: AtomicBool,
    met: AtomicUsize,
}

impl Fuse {
    /// Makes one, and the database as a node behind it sees it.
    pub(super) fn before(database: &Database) -> (Self, Database) {
        let (Database::Postgres(url) | Database::MySql(url)) = database else {
            return (Self::default(), database.clone());
        };
        let address = url.rsplit('@').next().unwrap().split('/').next().unwrap();
        let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
        let proxy = Proxy::start(port);
        let own = url.replace(address, &format!("127.0.0.1:{}", proxy.port()));
        let fuse = Self {
            proxy: Some(proxy),
            ..Self::default()
        };
        (fuse, Database::parse(&own).unwrap())
    }

    /// Puts it into a store that writes a file.
    pub(super) async fn put_into(&self, store: &Store) {
        let file = self.file.clone();
        store.write(Hook(file)).await.unwrap();
    }

    /// Spoils every commit from now on.
    pub(super) fn spoil(&self, moment: Moment) {
        self.file.is_spoiled.store(true, Ordering::SeqCst);
        let is_before = moment == Moment::Before;
        self.file.refuses.store(is_before, Ordering::SeqCst);
        if let Some(proxy) = &self.proxy {
            proxy.spoil(match moment {
                Moment::Before => Fault::LoseRequest(COMMIT),
                Moment::After => Fault::LoseAnswer(COMMIT),
            });
        }
    }

    /// Lets commits through again.
    pub(super) fn mend(&self) {
        self.file.is_spoiled.store(false, Ordering::SeqCst);
        self.file.refuses.store(false, Ordering::SeqCst);
        if let Some(proxy) = &self.proxy {
            proxy.resume();
        }
    }

    /// Tells how many commits met it so far.
    pub(super) fn met(&self) -> usize {
        match &self.proxy {
            Some(proxy) => proxy.lost(),
            None => self.file.met.load(Ordering::SeqCst),
        }
    }
}

/// Has SQLite ask the fuse at each commit.
struct Hook(Arc<File>);

impl Transaction for Hook {
    type Output = ();
    const STEP: &'static str = "put a fuse in";

    async fn run(&self, conn: &mut Conn<'_>) -> sekali::Result<()> {
        if let Conn::Sqlite { db, .. } = conn {
            let file = self.0.clone();
            let is_refused = move || {
                if file.is_spoiled.load(Ordering::SeqCst) {
                    file.met.fetch_add(1, Ordering::SeqCst);
                }
                file.refuses.load(Ordering::SeqCst)
            };
            db.commit_hook(Some(is_refused)).unwrap();
        }
        Ok(())
    }
}
