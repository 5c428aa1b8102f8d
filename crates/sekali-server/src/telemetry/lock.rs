//! The numbers of the lock in Redis, which keeps them itself.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use sekali::lock::Lock;

/// Shows a lock's numbers.
#[derive(Debug)]
pub(super) struct LockNumbers(pub(super) Lock);

impl Collector for LockNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let stats = self.0.stats();
        let up = ConstGauge::new(i64::from(stats.is_up));
        let help = "Whether Redis answered when it was last asked";
        up.encode(encoder.encode_descriptor("lock_up", help, None, MetricType::Gauge)?)?;
        let help = "Locks that were asked for or lost, by what came of it";
        let mut locks = encoder.encode_descriptor("lock", help, None, MetricType::Counter)?;
        for (outcome, count) in [
            ("held", stats.held),
            ("busy", stats.busy),
            ("unavailable", stats.unavailable),
            ("lost", stats.lost),
        ] {
            let labels = [("outcome", outcome)];
            let mut of_outcome = locks.encode_family(&labels)?;
            of_outcome.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }
}
