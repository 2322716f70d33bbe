//! The candidate edges of a window, row by row.

use crate::domain::CostMs;

/// One candidate of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Index of the driver in the snapshot.
    pub driver: u32,
    /// Pickup ETA in seconds.
    pub eta_s: f64,
    /// Cost of the pair.
    pub cost: CostMs,
}

/// Why a request has no candidate: the first of these that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowReason {
    /// The snapshot was full before this request's turn.
    Deferred,
    /// No available driver of a class the rider accepts.
    VehicleClass,
    /// No available driver within the last radius.
    NoDriverInRange,
    /// Every driver in range declined this rider, or is excluded by the client.
    Cooldown,
    /// No route from any driver in range.
    Unroutable,
    /// Every driver in range takes too long.
    OverMaxPickupEta,
}

/// The candidates of every request of a snapshot (rows = requests in the snapshot's order, columns =
/// drivers in the snapshot's order), and for each row without one the reason.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CandidateTable {
    offsets: Vec<u32>,
    candidates: Vec<Candidate>,
    reasons: Vec<Option<RowReason>>,
    unmatched: Vec<CostMs>,
}

impl CandidateTable {
    /// An empty table with room for `rows` rows.
    pub(super) fn with_rows(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            offsets,
            candidates: Vec::new(),
            reasons: Vec::with_capacity(rows),
            unmatched: Vec::with_capacity(rows),
        }
    }

    /// Adds the next row: its candidates by (ETA, driver), or why there are none.
    pub(super) fn push(&mut self, row: Result<&[Candidate], RowReason>, unmatched: CostMs) {
        if let Ok(candidates) = row {
            self.candidates.extend_from_slice(candidates);
        }
        self.reasons.push(row.err());
        self.offsets.push(self.candidates.len() as u32);
        self.unmatched.push(unmatched);
    }

    /// Number of requests.
    pub fn rows(&self) -> usize {
        self.reasons.len()
    }

    /// Number of candidate edges.
    pub fn edges(&self) -> usize {
        self.candidates.len()
    }

    /// The candidates of a request, by (ETA, driver id).
    pub fn row(&self, request: usize) -> &[Candidate] {
        &self.candidates[self.offsets[request] as usize..self.offsets[request + 1] as usize]
    }

    /// Why a request has no candidate.
    pub fn reason(&self, request: usize) -> Option<RowReason> {
        self.reasons[request]
    }

    /// Cost of leaving a request unmatched.
    pub fn unmatched_cost(&self, request: usize) -> CostMs {
        self.unmatched[request]
    }

    /// The candidate that joins a request and a driver.
    pub fn find(&self, request: usize, driver: u32) -> Option<&Candidate> {
        self.row(request)
            .iter()
            .find(|candidate| candidate.driver == driver)
    }
}
