//! The clean demand that a replay runs on.

use super::report::InputReport;
use crate::domain::{Place, RequestId, UnixMs};

/// One recorded ride request and the trip it led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Trip {
    /// The recorded id, or a number given in the order of time.
    pub request_id: RequestId,
    /// When the rider asked.
    pub requested_at: UnixMs,
    /// Where the rider stood.
    pub pickup: Place,
    /// Where the trip ended.
    pub dropoff: Place,
    /// Recorded seconds from pickup to drop-off, in 0 < s < 43,200; `None`: use the straight line.
    pub trip_s: Option<f64>,
}

/// Everything read from one run's files.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// The trips, sorted by (`requested_at`, id as bytes); never empty.
    pub trips: Vec<Trip>,
    /// What was read and left out.
    pub report: InputReport,
}
