//! When a failed attempt is tried again: exponential backoff with full jitter, bounded. Pure.

use std::time::Duration;

/// The smallest delay; jitter never turns a retry into a busy loop.
const FLOOR: Duration = Duration::from_millis(100);

/// How often and how soon a failed attempt is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The upper bound of the first delay; it doubles with each attempt.
    pub base: Duration,
    /// The largest delay.
    pub cap: Duration,
    /// How many attempts are made before the dead letter.
    pub max_attempts: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(3600),
            max_attempts: 12,
        }
    }
}

impl Retry {
    /// Returns the delay after the `attempt`-th failure (from 1), or `None` when attempts are used up.
    ///
    /// `dice` is a random number from 0 to 1; the delay is spread evenly from the floor (100 ms) to
    /// min(cap, base × 2^(attempt − 1)).
    pub fn after(&self, attempt: u32, dice: f64) -> Option<Duration> {
        if attempt >= self.max_attempts {
            return None;
        }
        Some(self.delay(attempt, dice))
    }

    /// Returns the delay after the `attempt`-th failure, without regard to the bound on attempts.
    pub fn delay(&self, attempt: u32, dice: f64) -> Duration {
        let factor = 1u32
            .checked_shl(attempt.saturating_sub(1))
            .filter(|factor| *factor != 0)
            .unwrap_or(u32::MAX);
        let ceiling = self.base.saturating_mul(factor).min(self.cap).max(FLOOR);
        FLOOR + (ceiling - FLOOR).mul_f64(dice.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_stay_between_floor_and_cap_for_a_thousand_attempts() {
        let retry = Retry {
            max_attempts: u32::MAX,
            ..Retry::default()
        };
        for attempt in 0..=1000 {
            for dice in [-1.0, 0.0, 0.3, 0.999, 1.0, 7.0, f64::NAN] {
                let dice = if dice.is_nan() { 0.0 } else { dice };
                let delay = retry.after(attempt, dice).unwrap();
                assert!(
                    delay >= FLOOR && delay <= retry.cap,
                    "attempt {attempt}: {delay:?}"
                );
            }
        }
        assert_eq!(retry.delay(1, 1.0), Duration::from_secs(1));
        assert_eq!(retry.delay(3, 1.0), Duration::from_secs(4));
        assert_eq!(retry.delay(40, 1.0), retry.cap);
    }

    #[test]
    fn attempts_are_bounded() {
        let retry = Retry {
            max_attempts: 3,
            ..Retry::default()
        };
        assert!(retry.after(2, 0.5).is_some());
        assert!(retry.after(3, 0.5).is_none());
    }

    #[test]
    fn five_hundred_failures_are_spread_over_the_window() {
        let retry = Retry::default();
        let mut dice = fastrand::Rng::with_seed(7);
        let mut buckets = [0u32; 10];
        for _ in 0..500 {
            let delay = retry.delay(5, dice.f64());
            buckets[((delay.as_secs_f64() / 16.0) * 9.99) as usize] += 1;
        }
        assert!(buckets.iter().all(|count| *count > 20), "{buckets:?}");
    }
}
