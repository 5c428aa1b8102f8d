//! The load: signed events over keep-alive connections, as fast as they are answered or at a rate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sekali::Clock;

use crate::Result;
use crate::request::{Connection, Event, Ids, Signer};

const CONNECTIONS: usize = 64;
/// How many requests lie between a repeat and what it repeats, so that the first one is answered by then.
const REPEAT_AFTER: usize = 512;

/// One run of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    /// How many at most.
    pub(crate) requests: usize,
    /// After how long no more are sent.
    pub(crate) within: Option<Duration>,
    pub(crate) ids: Ids,
    /// How many of a hundred requests repeat an earlier event.
    pub(crate) duplicates: usize,
    /// As fast as possible without.
    pub(crate) per_second: Option<f64>,
    /// The number of the first event.
    pub(crate) first: usize,
}

/// What a run came to.
pub(crate) struct Done {
    pub(crate) took: Duration,
    /// How many requests repeated none.
    pub(crate) events: usize,
    pub(crate) times: Vec<Duration>,
}

impl Done {
    /// Returns the median, the 99th percentile and the longest.
    pub(crate) fn latencies(&mut self) -> [Duration; 3] {
        self.times.sort_unstable();
        let last = self.times.len() - 1;
        [last / 2, last * 99 / 100, last].map(|place| self.times[place])
    }
}

impl Load {
    /// New events with rising ids, as fast as possible.
    pub(crate) fn new(address: SocketAddr, requests: usize) -> Self {
        Self {
            address,
            requests,
            within: None,
            ids: Ids::Rising,
            duplicates: 0,
            per_second: None,
            first: 0,
        }
    }

    /// Sends all requests; any answer but 2xx is an error.
    pub(crate) async fn run(self) -> Result<Done> {
        let (next, started) = (Arc::new(AtomicUsize::new(0)), Instant::now());
        let mut lanes = tokio::task::JoinSet::new();
        for _ in 0..CONNECTIONS {
            let next = next.clone();
            lanes.spawn(async move {
                let lane = self.lane(&next, started).await;
                lane.map_err(|error| error.to_string())
            });
        }
        let mut times = Vec::with_capacity(self.requests.min(1 << 20));
        while let Some(lane) = lanes.join_next().await {
            times.extend(lane??);
        }
        Ok(Done {
            took: started.elapsed(),
            events: (0..times.len()).filter(|at| !self.repeats(*at)).count(),
            times,
        })
    }

    async fn lane(self, next: &AtomicUsize, started: Instant) -> Result<Vec<Duration>> {
        let mut connection = Connection::open(self.address).await?;
        let signer = Signer::new()?;
        let (mut times, mut request) = (Vec::new(), Vec::with_capacity(2048));
        loop {
            let is_late = self
                .within
                .is_some_and(|within| started.elapsed() >= within);
            // A number that was taken is sent, so that those which were sent have no gap.
            let index = match is_late {
                true => self.requests,
                false => next.fetch_add(1, Ordering::Relaxed),
            };
            if index >= self.requests {
                return Ok(times);
            }
            let mut from = Instant::now();
            if let Some(per_second) = self.per_second {
                from = started + Duration::from_secs_f64(index as f64 / per_second);
                tokio::time::sleep_until(from.into()).await;
            }
            let event = Event::new(self.number(index), self.ids);
            signer.write(&mut request, &event, Clock::System.now_ms());
            let status = connection.exchange(&request).await?;
            if status / 100 != 2 {
                return Err(format!("answered {status}").into());
            }
            times.push(from.elapsed());
        }
    }

    /// Tells whether a request repeats an earlier event.
    fn repeats(&self, index: usize) -> bool {
        index >= REPEAT_AFTER && (index * self.duplicates) % 100 < self.duplicates
    }

    /// Returns the number of the event that a request carries.
    fn number(&self, index: usize) -> usize {
        let mut event = index;
        if self.repeats(index) {
            event -= REPEAT_AFTER;
            while self.repeats(event) {
                event -= 1;
            }
        }
        self.first + event
    }
}
