//! Documents with keys, kept for a while, so that a delivery hardly ever waits for another server.
//!
//! Requests for one document share one fetch. A failure is remembered for a moment, and a document is fetched anew no
//! more often than once a minute, so that a flood of bad deliveries cannot be turned against the server that is asked.
//! Nothing that has expired is ever handed out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;

use super::{Fetch, FetchError, Request};

mod shelf;

use shelf::Shelf;

/// How many documents are kept, and how many failures.
const MAX_DOCUMENTS: usize = 64;
/// How many documents are fetched at once; one that is slow to come must not keep those of other sources waiting.
const MAX_FLIGHTS: usize = 4;

/// How long things are remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// How long a document can be used.
    pub(crate) keep: Duration,
    /// For how long a failure is the answer.
    pub(crate) keep_failure: Duration,
    /// How long a document is not fetched anew, whatever is missing in it.
    pub(crate) between_refreshes: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(3600),
            keep_failure: Duration::from_secs(10),
            between_refreshes: Duration::from_secs(60),
        }
    }
}

/// The documents of one source, by what was asked for.
pub(crate) struct KeyCache {
    fetch: Arc<dyn Fetch>,
    times: Times,
    places: Semaphore,
    known: Mutex<Known>,
}

struct Known {
    documents: Shelf<Document>,
    failures: Shelf<Failure>,
    /// What is being fetched, and how many want it. Whoever has the turn fetches, the others wait for it.
    flights: HashMap<Request, (usize, Turn)>,
}

type Turn = Arc<tokio::sync::Mutex<()>>;

struct Document {
    bytes: Bytes,
    fetched_at_ms: i64,
    /// The last try to fetch it anew, and how that failed.
    tried_at_ms: i64,
    failure: Option<FetchError>,
}

struct Failure {
    error: FetchError,
    at_ms: i64,
}

/// What somebody wants to know.
#[derive(Clone, Copy)]
enum Want {
    /// The document, as long as it has not expired.
    Kept,
    /// A document that was not fetched too long ago to be fetched anew.
    Fresh,
}

impl KeyCache {
    /// Creates an empty cache.
    pub(crate) fn new(fetch: Arc<dyn Fetch>, times: Times) -> Self {
        Self {
            fetch,
            times,
            places: Semaphore::new(MAX_FLIGHTS),
            known: Mutex::new(Known {
                documents: Shelf::new(MAX_DOCUMENTS),
                failures: Shelf::new(MAX_DOCUMENTS),
                flights: HashMap::new(),
            }),
        }
    }

    /// Returns a document if it is there and has not expired.
    pub(crate) fn cached(&self, request: &Request, now_ms: i64) -> Option<Bytes> {
        self.known(request, now_ms, Want::Kept)?.ok()
    }

    /// Returns a document, fetched if need be and if that may be: `may_ask` is called in front of each fetch.
    pub(crate) async fn get(
        &self,
        request: &Request,
        now_ms: i64,
        may_ask: impl FnOnce() -> bool,
    ) -> Result<Bytes, FetchError> {
        self.find(request, now_ms, Want::Kept, may_ask).await
    }

    /// Returns a document fetched anew, for one in which a key is missing.
    ///
    /// Within a minute after the last try it is the document that is there, or how that try failed.
    pub(crate) async fn refresh(
        &self,
        request: &Request,
        now_ms: i64,
        may_ask: impl FnOnce() -> bool,
    ) -> Result<Bytes, FetchError> {
        self.find(request, now_ms, Want::Fresh, may_ask).await
    }

    async fn find(
        &self,
        request: &Request,
        now_ms: i64,
        want: Want,
        may_ask: impl FnOnce() -> bool,
    ) -> Result<Bytes, FetchError> {
        if let Some(known) = self.known(request, now_ms, want) {
            return known;
        }
        let flight = self.board(request);
        let _turn = flight.turn.lock().await;
        // Whoever had the turn before may have brought it.
        if let Some(known) = self.known(request, now_ms, want) {
            return known;
        }
        let Ok(_place) = self.places.try_acquire() else {
            return Err(FetchError::Throttled);
        };
        if !may_ask() {
            return Err(FetchError::Throttled);
        }
        let answer = self.fetch.fetch(request.clone()).await;
        self.note(request, now_ms, &answer);
        answer
    }

    fn known(
        &self,
        request: &Request,
        now_ms: i64,
        want: Want,
    ) -> Option<Result<Bytes, FetchError>> {
        let mut known = self.lock();
        if let Some(document) = known.documents.get(request) {
            let is_kept = is_within(self.times.keep, document.fetched_at_ms, now_ms);
            let is_new = is_within(self.times.between_refreshes, document.tried_at_ms, now_ms);
            match (want, &document.failure) {
                (Want::Fresh, Some(error)) if is_new => return Some(Err(error.clone())),
                (Want::Fresh, None) if is_new && is_kept => {
                    return Some(Ok(document.bytes.clone()));
                }
                (Want::Kept, _) if is_kept => return Some(Ok(document.bytes.clone())),
                _ => {}
            }
        }
        let failure = known.failures.get(request)?;
        let is_fresh = is_within(self.times.keep_failure, failure.at_ms, now_ms);
        is_fresh.then(|| Err(failure.error.clone()))
    }

    fn note(&self, request: &Request, now_ms: i64, answer: &Result<Bytes, FetchError>) {
        let mut known = self.lock();
        match answer {
            Ok(bytes) => {
                let document = Document {
                    bytes: bytes.clone(),
                    fetched_at_ms: now_ms,
                    tried_at_ms: now_ms,
                    failure: None,
                };
                known.documents.put(request.clone(), document);
            }
            // Nothing was asked, so nobody needs protection, and senders must not push real failures out.
            Err(FetchError::HostNotAllowed) => {}
            Err(error) => {
                if let Some(document) = known.documents.get(request) {
                    document.tried_at_ms = now_ms;
                    document.failure = Some(error.clone());
                }
                let error = error.clone();
                let at_ms = now_ms;
                known
                    .failures
                    .put(request.clone(), Failure { error, at_ms });
            }
        }
    }

    fn board<'a>(&'a self, request: &'a Request) -> Flight<'a> {
        let mut known = self.lock();
        let (passengers, turn) = known.flights.entry(request.clone()).or_default();
        *passengers += 1;
        Flight {
            cache: self,
            request,
            turn: turn.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits for a document. The last one to leave clears up, also where the delivery was given up.
struct Flight<'a> {
    cache: &'a KeyCache,
    request: &'a Request,
    turn: Turn,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut known = self.cache.lock();
        if let Some((passengers, _)) = known.flights.get_mut(self.request) {
            *passengers -= 1;
            if *passengers == 0 {
                known.flights.remove(self.request);
            }
        }
    }
}

/// Tells whether two times are close; a clock that was set back must not make something last longer.
fn is_within(span: Duration, at_ms: i64, now_ms: i64) -> bool {
    u128::from(now_ms.abs_diff(at_ms)) < span.as_millis()
}

#[cfg(test)]
mod tests;
