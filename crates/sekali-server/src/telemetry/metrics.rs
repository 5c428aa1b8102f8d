//! Numbers, in the text format of OpenMetrics.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use sekali::lock::Lock;
use sekali::observer::{Observer, Received, Settled};
use sekali::store::Depth;
use sekali::{Outcome, Status};

use super::lock::LockNumbers;
use super::logs::{log_attempt, log_delivery};

/// Event types that have numbers of their own, per source; more are counted as `other`.
const MAX_TYPES: usize = 200;

type Labels<const N: usize> = [(&'static str, Arc<str>); N];

/// The labels of a number, as name and value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LabelSet<const N: usize>(Labels<N>);

impl<const N: usize> EncodeLabelSet for LabelSet<N> {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelSetEncoder<'_>,
    ) -> std::fmt::Result {
        use prometheus_client::encoding::EncodeLabel as _;
        for (name, value) in &self.0 {
            (*name, &**value).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

type Counters<const N: usize> = Family<LabelSet<N>, Counter>;
type Histograms = Family<LabelSet<1>, Histogram, fn() -> Histogram>;

/// All numbers of a process.
pub(crate) struct Metrics {
    registry: Registry,
    deliveries: Counters<2>,
    received: Counters<2>,
    settled: Counters<4>,
    retries: Counters<1>,
    conflicts: Counters<1>,
    regressions: Counters<1>,
    store_errors: Counters<1>,
    unknown: Counters<1>,
    occurred_to_processed: Histograms,
    received_to_answered: Histograms,
    drift: Histograms,
    batch_len: Histogram,
    pending: Gauge,
    oldest_age: Gauge<f64, std::sync::atomic::AtomicU64>,
    dead_letters: Gauge,
    types: Types,
    hot: RwLock<HashMap<Box<str>, Arc<Hot>>>,
}

/// The numbers of one source that every delivery touches.
struct Hot {
    outcomes: Mutex<HashMap<Outcome, Counter>>,
    answered: Histogram,
    drift: Histogram,
}

/// Bounds the types that a source can make us count.
#[derive(Default)]
struct Types {
    seen: Mutex<HashSet<(Arc<str>, Arc<str>)>>,
}

impl Types {
    fn name(&self, source: &Arc<str>, event_type: &str) -> Arc<str> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.clone(), Arc::from(event_type));
        if seen.contains(&key) {
            return key.1;
        }
        if seen.iter().filter(|(of, _)| of == source).count() >= MAX_TYPES {
            return "other".into();
        }
        seen.insert(key.clone());
        key.1
    }
}

impl Metrics {
    /// Creates all numbers at zero.
    pub(crate) fn new(lock: Option<&Lock>) -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.0005, 2.0, 16));
        let long: fn() -> Histogram = || {
            Histogram::new([
                0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0,
            ])
        };
        let signed: fn() -> Histogram = || {
            Histogram::new([
                -300.0, -60.0, -10.0, -1.0, 0.0, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
                3600.0,
            ])
        };
        let mut metrics = Self {
            registry: Registry::with_prefix("sekali"),
            deliveries: Family::default(),
            received: Family::default(),
            settled: Family::default(),
            retries: Family::default(),
            conflicts: Family::default(),
            regressions: Family::default(),
            store_errors: Family::default(),
            unknown: Family::default(),
            occurred_to_processed: Family::new_with_constructor(long),
            received_to_answered: Family::new_with_constructor(seconds),
            drift: Family::new_with_constructor(signed),
            batch_len: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
            pending: Gauge::default(),
            oldest_age: Gauge::default(),
            dead_letters: Gauge::default(),
            types: Types::default(),
            hot: RwLock::default(),
        };
        if let Some(lock) = lock {
            let numbers = LockNumbers(lock.clone());
            metrics.registry.register_collector(Box::new(numbers));
        }
        metrics.register_counts();
        metrics.register_measures();
        metrics
    }

    fn register_counts(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "deliveries",
            "Deliveries by outcome",
            self.deliveries.clone(),
        );
        registry.register(
            "events_received",
            "New events by type",
            self.received.clone(),
        );
        registry.register(
            "events",
            "Ended attempts by the event's type, status and reason",
            self.settled.clone(),
        );
        registry.register(
            "worker_retries",
            "Attempts that failed and will be repeated",
            self.retries.clone(),
        );
        registry.register(
            "version_conflicts",
            "Events that claim a taken version with other content",
            self.conflicts.clone(),
        );
        registry.register(
            "version_regressions",
            "Events with a lower version and a later time",
            self.regressions.clone(),
        );
        registry.register(
            "store_errors",
            "Failures of the store by what was being done",
            self.store_errors.clone(),
        );
        registry.register(
            "unknown_requests",
            "Requests to no source or with a wrong method",
            self.unknown.clone(),
        );
    }

    fn register_measures(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "occurred_to_processed_seconds",
            "From when it happened to when it was applied",
            self.occurred_to_processed.clone(),
        );
        registry.register(
            "received_to_answered_seconds",
            "From a delivery's arrival to its answer",
            self.received_to_answered.clone(),
        );
        registry.register(
            "timestamp_drift_seconds",
            "How far signed times are behind the receiver's",
            self.drift.clone(),
        );
        registry.register(
            "admission_batch_len",
            "Deliveries of one admission transaction",
            self.batch_len.clone(),
        );
        registry.register(
            "inbox_pending",
            "Events that wait or are being applied",
            self.pending.clone(),
        );
        registry.register(
            "inbox_oldest_age_seconds",
            "Age of the oldest of them",
            self.oldest_age.clone(),
        );
        registry.register(
            "inbox_dead_letters",
            "Events in the dead letter",
            self.dead_letters.clone(),
        );
    }

    /// Counts a request that no source could take.
    pub(crate) fn count_unknown(&self, what: &'static str) {
        self.unknown
            .get_or_create(&LabelSet([("kind", what.into())]))
            .inc();
    }

    /// Renders all numbers in the text format of OpenMetrics.
    pub(crate) fn render(&self, depth: Depth, now_ms: i64) -> String {
        self.pending.set(depth.pending);
        self.dead_letters.set(depth.dead_letters);
        let age_ms = depth
            .oldest_received_at
            .map_or(0, |at| now_ms.saturating_sub(at).max(0));
        self.oldest_age.set(age_ms as f64 / 1000.0);
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    fn hot(&self, source: &str) -> Arc<Hot> {
        if let Some(hot) = self
            .hot
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(source)
        {
            return hot.clone();
        }
        let label = LabelSet([("source", Arc::from(source))]);
        let hot = Arc::new(Hot {
            outcomes: Mutex::default(),
            answered: self.received_to_answered.get_or_create(&label).clone(),
            drift: self.drift.get_or_create(&label).clone(),
        });
        self.hot
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(source.into(), hot.clone());
        hot
    }
}

impl Observer for Metrics {
    fn received(&self, received: Received<'_>) {
        let hot = self.hot(received.source);
        let outcome = received.outcome;
        let count = || {
            let labels = [
                ("source", Arc::from(received.source)),
                ("outcome", Arc::from(outcome.code())),
            ];
            self.deliveries.get_or_create(&LabelSet(labels)).clone()
        };
        hot.outcomes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(outcome)
            .or_insert_with(count)
            .inc();
        hot.answered.observe(received.seconds);
        if let Some(drift) = received.drift_seconds {
            hot.drift.observe(drift);
        }
        if let (Outcome::Accepted, Some(event_type)) = (outcome, received.event_type) {
            let source: Arc<str> = received.source.into();
            let event_type = self.types.name(&source, event_type);
            self.received
                .get_or_create(&LabelSet([("source", source), ("type", event_type)]))
                .inc();
        }
        log_delivery(&received);
    }

    fn settled(&self, settled: Settled<'_>) {
        let source: Arc<str> = settled.source.into();
        let labels = [
            ("source", source.clone()),
            ("type", self.types.name(&source, settled.event_type)),
            ("status", settled.status.code().into()),
            (
                "reason",
                settled.reason.map_or("", |reason| reason.code()).into(),
            ),
        ];
        self.settled.get_or_create(&LabelSet(labels)).inc();
        let of_source = LabelSet([("source", source)]);
        if settled.status == Status::Failed {
            self.retries.get_or_create(&of_source).inc();
        }
        if settled.has_version_conflict {
            self.conflicts.get_or_create(&of_source).inc();
        }
        if settled.is_version_regressed {
            self.regressions.get_or_create(&of_source).inc();
        }
        if let (Status::Processed, Some(seconds)) = (settled.status, settled.since_occurred_seconds)
        {
            self.occurred_to_processed
                .get_or_create(&of_source)
                .observe(seconds);
        }
        log_attempt(&settled);
    }

    fn admitted_batch(&self, len: usize) {
        self.batch_len.observe(len as f64);
    }

    fn store_failed(&self, step: &'static str) {
        self.store_errors
            .get_or_create(&LabelSet([("step", step.into())]))
            .inc();
    }
}
