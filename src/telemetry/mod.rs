//! Watching a node: metrics with a fixed catalogue, and structured logs.

mod catalog;
mod logs;
mod record;

pub use catalog::{CATALOG, Kind, Metric};
pub use logs::{LogError, init_logs};
pub use record::{
    Fullness, Level, Phases, claims_lost, double_claims, epoch, fallback, fence_refused, fullness,
    gains, generation_changed, http_connections, http_request, intake, leading, level, overview,
    pings, reject, request_age, shed, store_call, store_link, unmatched, window, window_late,
};

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Bounds of the histograms of times, in seconds: 0.1 ms to 30 s.
const TIME_BUCKETS: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 30.0,
];
/// Bounds of the histogram of ages at the assignment, in seconds.
const AGE_BUCKETS: &[f64] = &[
    0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
];
/// Bounds of the histograms of gains, in seconds of cost a window; a window may also lose.
const GAIN_BUCKETS: &[f64] = &[
    -100.0, -1.0, 0.0, 1.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 100_000.0,
];

/// The metrics of this process.
#[derive(Clone)]
pub struct Telemetry(PrometheusHandle);

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Telemetry")
    }
}

/// The process cannot have metrics: somebody else installed a recorder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("metrics cannot be set up: {0}")]
pub struct TelemetryError(String);

impl Telemetry {
    /// The metrics of this process, set up by the first call.
    ///
    /// # Errors
    /// [`TelemetryError`]: another recorder is in place.
    pub fn install() -> Result<Self, TelemetryError> {
        static INSTALLED: OnceLock<Result<Telemetry, TelemetryError>> = OnceLock::new();
        INSTALLED.get_or_init(Self::set_up).clone()
    }

    fn set_up() -> Result<Self, TelemetryError> {
        let failed = |error: &dyn std::fmt::Display| TelemetryError(error.to_string());
        let mut builder = PrometheusBuilder::new();
        for metric in CATALOG {
            let bounds = match metric.kind {
                Kind::Time => TIME_BUCKETS,
                Kind::Age => AGE_BUCKETS,
                Kind::Gain => GAIN_BUCKETS,
                Kind::Counter | Kind::Gauge => continue,
            };
            let name = Matcher::Full(metric.name.into());
            builder = builder
                .set_buckets_for_metric(name, bounds)
                .map_err(|error| failed(&error))?;
        }
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|error| failed(&error))?;
        for metric in CATALOG {
            match metric.kind {
                Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
                Kind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
                Kind::Time | Kind::Age | Kind::Gain => {
                    metrics::describe_histogram!(metric.name, metric.help);
                }
            }
        }
        Ok(Self(handle))
    }

    /// Every metric as Prometheus reads it.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Folds what was observed since the last call into the histograms; call every few seconds, so
    /// that memory stays bounded while nobody scrapes.
    pub fn upkeep(&self) {
        self.0.run_upkeep();
    }
}
