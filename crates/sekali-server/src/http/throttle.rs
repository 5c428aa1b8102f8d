//! Rate limits: token buckets for the verified deliveries of a source and the unverified ones of an address.
//!
//! An address is only held against its unverified deliveries: behind a proxy the honest share it with the forger, so a
//! delivery with a right signature always passes, and a wrong one is answered 429 instead of 401 once the bucket is empty.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use sekali::Sources;
use sekali::source::RateLimit;

use crate::config::ServerConfig;

/// Addresses that are remembered; the fullest buckets are forgotten first, since they hold nothing against anybody.
const MAX_ADDRESSES: usize = 10_000;

/// All buckets of a process.
pub(crate) struct Throttle {
    unverified: RateLimit,
    addresses: Mutex<HashMap<IpAddr, Bucket>>,
    sources: HashMap<Arc<str>, (RateLimit, Mutex<Bucket>)>,
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
            unverified: config.unverified_rate,
            addresses: Mutex::default(),
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
        let mut addresses = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= MAX_ADDRESSES && !addresses.contains_key(&address) {
            let limit = self.unverified;
            addresses.retain(|_, bucket| {
                let elapsed = now_ms.saturating_sub(bucket.at_ms) as f64 / 1000.0;
                bucket.tokens + elapsed * f64::from(limit.per_second) < capacity(limit)
            });
            if addresses.len() >= MAX_ADDRESSES {
                addresses.clear();
            }
        }
        let bucket = addresses
            .entry(address)
            .or_insert_with(|| Bucket::full(self.unverified, now_ms));
        bucket.take(self.unverified, now_ms)
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
    fn addresses_are_bounded() {
        let throttle = Throttle::new(&ServerConfig::default(), &Sources::default());
        for number in 0..30_000u32 {
            assert!(
                throttle
                    .unverified(IpAddr::from(number.to_be_bytes()), 0)
                    .is_ok()
            );
        }
        assert!(throttle.addresses.lock().unwrap().len() <= MAX_ADDRESSES);
    }
}
