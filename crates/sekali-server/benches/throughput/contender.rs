//! Whoever is measured: the product or a peer, on a store, with the load sent to it and its rows counted.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::Result;
use crate::load::Load;
use crate::peer::{Kind, Peer};
use crate::processes::processor_seconds;
use crate::product::{Mode, Product};
use crate::request::Ids;
use crate::servers::{Place, Servers};

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Product(Mode),
    Peer(Kind),
}

/// One that runs.
pub(crate) enum Contender {
    Product(Product),
    Peer(Peer),
}

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) ids: Ids,
    /// How many of a hundred deliveries repeat an earlier event.
    pub(crate) duplicates: usize,
    /// For how long.
    pub(crate) within: Duration,
    /// The number of the first event.
    pub(crate) first: usize,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Deliveries a second until they were answered and, where they are to be, applied.
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Processor time a delivery, in microseconds: the receiver's, and that of the servers behind it.
    pub(crate) receiver: f64,
    pub(crate) stores: f64,
    /// The number behind the last event.
    pub(crate) next: usize,
}

impl Contender {
    pub(crate) async fn start(who: Who, place: &Place, servers: &mut Servers) -> Result<Self> {
        Ok(match who {
            Who::Product(mode) => Self::Product(Product::start(mode, place.clone(), 0)?),
            Who::Peer(kind) => Self::Peer(Peer::start(kind, place.clone(), servers).await?),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Product(product) => product.address,
            Self::Peer(peer) => peer.address,
        }
    }

    /// Checks what came of that many events, and of that many deliveries where they are counted.
    pub(crate) fn count(&self, events: usize, deliveries: Option<usize>) -> Result<()> {
        match self {
            Self::Product(product) => {
                product.wait_until_done()?;
                product.count(events, deliveries)
            }
            Self::Peer(peer) => peer.count(events),
        }
    }

    fn wait_until_done(&self) -> Result<()> {
        match self {
            Self::Product(product) => product.wait_until_done(),
            Self::Peer(_) => Ok(()),
        }
    }

    fn id(&self) -> u32 {
        match self {
            Self::Product(product) => product.id(),
            Self::Peer(peer) => peer.id(),
        }
    }

    /// Warms it up for a tenth of the time, measures it, and counts its rows.
    pub(crate) async fn measure(&self, traffic: Traffic, stores: &[u32]) -> Result<Figures> {
        let load = |within, first| Load {
            within: Some(within),
            ids: traffic.ids,
            duplicates: traffic.duplicates,
            first,
            ..Load::new(self.address(), usize::MAX)
        };
        let warm = load(traffic.within / 10, traffic.first).run().await?;
        self.wait_until_done()?;
        let first = traffic.first + warm.times.len();
        let used = || {
            let stores = stores.iter().map(|store| processor_seconds(*store)).sum();
            [processor_seconds(self.id()), stores]
        };
        let before: [f64; 2] = used();
        let started = Instant::now();
        let mut done = load(traffic.within, first).run().await?;
        self.wait_until_done()?;
        let took = started.elapsed().as_secs_f64();
        let after = used();
        let deliveries = done.times.len();
        self.count(
            warm.events + done.events,
            Some(warm.times.len() + deliveries),
        )?;
        let [p50, p99, _] = done.latencies().map(|time| time.as_secs_f64() * 1e3);
        let cost = |which: usize| (after[which] - before[which]) * 1e6 / deliveries as f64;
        Ok(Figures {
            rate: deliveries as f64 / took,
            p50,
            p99,
            receiver: cost(0),
            stores: cost(1),
            next: first + deliveries,
        })
    }
}
