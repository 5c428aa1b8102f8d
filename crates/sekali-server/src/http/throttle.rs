//! Rate limits: token buckets for the verified deliveries of a source and the unverified ones of an address.
//!
//! An address is only held against its unverified deliveries: behind a proxy the honest share it with the forger, so a
//! delivery with a right signature always passes, and a wrong one is answered 429 instead of 401 once the bucket is empty.
//! Keys that have to be fetched for somebody who is not proven yet are counted too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use sekali::Sources;
use sekali::source::RateLimit;

use crate::config::ServerConfig;

/// Addresses that are remembered; the fullest buckets are forgotten first, since they hold nothing against anybody.
const MAX_ADDRESSES: usize = 10_000;

/// How often an address may cause a key to be fetched: a sender has a handful of keys.
const FETCHES_OF_ADDRESS: RateLimit = RateLimit {
    per_second: 1,
    burst: Some(10),
};
/// How often all senders of a source may.
const FETCHES_OF_SOURCE: RateLimit = RateLimit {
    per_second: 5,
    burst: Some(20),
};

/// All buckets of a process.
pub(crate) struct Throttle {
    unverified: Addresses,
    fetching: Addresses,
    fetches: HashMap<Arc<str>, Mutex<Bucket>>,
    sources: HashMap<Arc<str>, (RateLimit, Mutex<Bucket>)>,
}

/// A bucket for each address.
struct Addresses {
    limit: RateLimit,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

/// Tokens that come back with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at_ms: i64,
}

impl Bucket {
    fn full(limit: RateLimit, now_ms: i64) -> Self {
        Self {
            tokens: capacity(limit),
            at_ms: now_ms,
        }
    }

    /// Takes a token, or tells in how many seconds there will be one.
    fn take(&mut self, limit: RateLimit, now_ms: i64) -> Result<(), u64> {
        let elapsed = now_ms.saturating_sub(self.at_ms).max(0) as f64 / 1000.0;
        self.tokens = (self.tokens + elapsed * f64::from(limit.per_second)).min(capacity(limit));
        self.at_ms = now_ms;
        if self.tokens < 1.0 {
            return Err(((1.0 - self.tokens) / f64::from(limit.per_second))
                .ceil()
                .max(1.0) as u64);
        }
        self.tokens -= 1.0;
        Ok(())
    }
}

fn capacity(limit: RateLimit) -> f64 {
    f64::from(limit.burst.unwrap_or(limit.per_second).max(1))
}

impl Throttle {
    pub(crate) fn new(config: &ServerConfig, sources: &Sources) -> Self {
        let limited = sources
            .iter()
            .filter_map(|source| Some((source.id.clone(), source.rate_limit?)));
        Self {
            unverified: Addresses::new(config.unverified_rate),
            fetching: Addresses::new(FETCHES_OF_ADDRESS),
            fetches: sources
                .iter()
                .map(|source| {
                    (
                        source.id.clone(),
                        Mutex::new(Bucket::full(FETCHES_OF_SOURCE, 0)),
                    )
                })
                .collect(),
            sources: limited
                .map(|(id, limit)| (id, (limit, Mutex::new(Bucket::full(limit, 0)))))
                .collect(),
        }
    }

    /// Counts a verified delivery of a source; the error is after how many seconds to come again.
    pub(crate) fn verified(&self, source: &str, now_ms: i64) -> Result<(), u64> {
        let Some((limit, bucket)) = self.sources.get(source) else {
            return Ok(());
        };
        bucket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(*limit, now_ms)
    }

    /// Counts an unverified delivery of an address; the error is after how many seconds to come again.
    pub(crate) fn unverified(&self, address: IpAddr, now_ms: i64) -> Result<(), u64> {
        self.unverified.take(address, now_ms)
    }

    /// Counts a key that is fetched for somebody who is not proven, and tells whether it may be.
    pub(crate) fn fetch(&self, source: &str, address: Option<IpAddr>, now_ms: i64) -> bool {
        if address.is_some_and(|address| self.fetching.take(address, now_ms).is_err()) {
            return false;
        }
        self.fetches.get(source).is_some_and(|bucket| {
            let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.take(FETCHES_OF_SOURCE, now_ms).is_ok()
        })
    }
}

impl Addresses {
    fn new(limit: RateLimit) -> Self {
        Self {
            limit,
            buckets: Mutex::default(),
        }
    }

    fn take(&self, address: IpAddr, now_ms: i64) -> Result<(), u64> {
        let limit = self.limit;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_ADDRESSES && !buckets.contains_key(&address) {
            buckets.retain(|_, bucket| {
                let elapsed = now_ms.saturating_sub(bucket.at_ms) as f64 / 1000.0;
                bucket.tokens + elapsed * f64::from(limit.per_second) < capacity(limit)
            });
            if buckets.len() >= MAX_ADDRESSES {
                buckets.clear();
            }
        }
        let bucket = buckets
            .entry(address)
            .or_insert_with(|| Bucket::full(limit, now_ms));
        bucket.take(limit, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_with_time() {
        let limit = RateLimit {
            per_second: 2,
            burst: Some(3),
        };
        let mut bucket = Bucket::full(limit, 0);
        assert!((0..3).all(|_| bucket.take(limit, 0).is_ok()));
        assert_eq!(bucket.take(limit, 0), Err(1));
        assert!(bucket.take(limit, 500).is_ok());
        assert!(bucket.take(limit, 500).is_err());
        // A clock that is set back gives nothing and takes nothing.
        assert!(bucket.take(limit, 0).is_err());
        assert!((0..3).all(|_| bucket.take(limit, 60_000).is_ok()));
        assert!(bucket.take(limit, 60_000).is_err());
    }

    #[test]
    fn keys_are_fetched_a_few_times_for_each_address_and_source() {
        let sources = Sources::default();
        let mut throttle = Throttle::new(&ServerConfig::default(), &sources);
        let bucket = Mutex::new(Bucket::full(FETCHES_OF_SOURCE, 0));
        throttle.fetches.insert("a".into(), bucket);
        let address = |last: u8| Some(IpAddr::from([127, 0, 0, last]));
        let fetched = |last, times| {
            let allowed = (0..times).filter(|_| throttle.fetch("a", address(last), 0));
            allowed.count()
        };
        assert_eq!((fetched(1, 15), fetched(2, 8), fetched(3, 8)), (10, 8, 2));
        assert!(throttle.fetch("a", address(4), 1000));
        assert!(!throttle.fetch("other", address(5), 0));
    }

    #[test]
    fn addresses_are_bounded() {
        let throttle = Throttle::new(&ServerConfig::default(), &Sources::default());
        for number in 0..30_000u32 {
            assert!(
                throttle
                    .unverified(IpAddr::from(number.to_be_bytes()), 0)
                    .is_ok()
            );
        }
        assert!(throttle.unverified.buckets.lock().unwrap().len() <= MAX_ADDRESSES);
    }
}
