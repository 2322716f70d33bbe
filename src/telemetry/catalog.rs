//! Every metric of a node. Dashboards and documentation may name these and no others.

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Histogram of times.
    Time,
    /// Histogram of ages.
    Age,
    /// Histogram of gains.
    Gain,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What it tells.
    pub help: &'static str,
}

macro_rules! catalog {
    ($($constant:ident = $kind:ident $name:literal $help:literal;)*) => {
        $(pub(super) const $constant: &str = $name;)*

        /// Every metric.
        pub const CATALOG: &[Metric] = &[
            $(Metric { name: $name, kind: Kind::$kind, help: $help },)*
        ];
    };
}

catalog! {
    BUILD = Time "kheya_window_build_seconds" "Time to find candidates and build a window's graph";
    ETA = Time "kheya_window_eta_seconds" "Time to get a window's travel times";
    SOLVE = Time "kheya_window_solve_seconds" "Time to solve a window";
    VERIFY = Time "kheya_window_verify_seconds" "Time to verify a window's certificate";
    CLAIM = Time "kheya_window_claim_seconds" "Time to claim a window's drivers";
    CLOSE_TO_SEAL = Time "kheya_window_close_to_seal_seconds" "Time from a window's close to its seal";
    REQUEST_AGE = Age "kheya_request_age_at_assignment_seconds" "How long a rider had waited when a driver was claimed";
    GAIN_GREEDY = Gain "kheya_gain_vs_greedy_seconds" "What oldest-first greedy would have cost more in a window";
    GAIN_GREEDY_EDGE = Gain "kheya_gain_vs_greedy_edge_seconds" "What greedy by edges would have cost more in a window";
    WINDOWS = Counter "kheya_windows_total" "Sealed windows by source";
    WINDOWS_LATE = Counter "kheya_windows_late_total" "Windows sealed after close + budget + grace";
    FALLBACKS = Counter "kheya_fallbacks_total" "Windows not decided by a batch, by cause";
    ASSIGNED = Counter "kheya_assigned_total" "Claims made for windows";
    UNMATCHED = Counter "kheya_unmatched_total" "Requests left over by a window, by reason";
    CLAIMS_LOST = Counter "kheya_claims_lost_total" "Chosen pairs that were lost at the claim";
    PINGS = Counter "kheya_pings_total" "Pings by outcome";
    MOVES = Counter "kheya_moves_total" "Pings that moved a driver into another cell of the index";
    INTAKE = Counter "kheya_requests_total" "Requests taken in, by outcome";
    REJECTS = Counter "kheya_rejects_total" "Refused calls and entries by code";
    FENCES_REFUSED = Counter "kheya_fences_refused_total" "Claim calls refused for their fence or lease, by code";
    GENERATION_CHANGES = Counter "kheya_generation_changes_total" "New lives of a region's data";
    DOUBLE_CLAIMS = Counter "kheya_double_claims_total" "Claims refused to keep INV-1; stays 0";
    FENCES_NOT_RISEN = Counter "kheya_fences_not_risen_total" "Claims refused to keep INV-2; stays 0";
    QUARANTINED = Gauge "kheya_quarantined" "Whether a region is in quarantine after data loss, 0 or 1";
    PENDING = Gauge "kheya_pending_requests" "Requests that wait";
    SUPPLY = Gauge "kheya_supply_drivers" "Drivers by state";
    LEVEL = Gauge "kheya_level" "How well a region is served: 0 batch, 1 batch_straight_line, 2 greedy, 3 unavailable";
    EPOCH = Gauge "kheya_epoch" "Leadership of a region that this node knows";
    FULLNESS = Gauge "kheya_queue_fullness_ratio" "How full a bounded queue is, 0 to 1";
    LEADING = Gauge "kheya_leading" "Whether this node leads a region, 0 or 1";
    STORE_CALL = Time "kheya_store_call_seconds" "Time of a call to Redis, by kind";
    STORE_FAILED = Counter "kheya_store_failed_total" "Calls to Redis without an answer, by outcome";
    STORE_LINK = Counter "kheya_store_link_total" "What happened to the connections to Redis, by event";
    STORE_IN_FLIGHT = Gauge "kheya_store_calls_in_flight" "Calls to Redis that wait for their answer";
    HTTP_REQUESTS = Counter "kheya_http_requests_total" "HTTP answers by route, method and status";
    HTTP_TIME = Time "kheya_http_request_seconds" "Time to an HTTP answer, by route";
    HTTP_SHED = Counter "kheya_http_shed_total" "Calls turned away by admission, by kind of work";
    HTTP_CONNECTIONS = Gauge "kheya_http_connections" "Open connections";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_tell_their_unit() {
        let mut names: Vec<&str> = CATALOG.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CATALOG.len());
        for Metric { name, kind, .. } in CATALOG {
            let unit = match kind {
                Kind::Counter => name.ends_with("_total"),
                Kind::Gauge => true,
                Kind::Time | Kind::Age | Kind::Gain => name.ends_with("_seconds"),
            };
            assert!(unit && name.starts_with("kheya_"), "{name}");
        }
    }
}
