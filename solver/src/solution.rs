//! What a solve answers: a matching, its prices, and what they prove.

use crate::{ConstraintAnswer, Graph, Method, Proof};

/// How good a [`Solution`] is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// No matching costs less: the prices prove it, or a search did (see [`Proof`]).
    Optimal,
    /// A valid matching; the prices prove only the gap.
    Feasible,
    /// The graph has no edges: everyone stays unmatched.
    Empty,
}

impl Status {
    /// The name used in reports: `optimal`, `feasible`, `empty`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Feasible => "feasible",
            Self::Empty => "empty",
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A matching with its certificate. Check it with [`Solution::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Solution {
    /// For each request the driver it got.
    pub driver_of: Vec<Option<u32>>,
    /// Dual prices u, one a request, in the unit of the costs.
    pub request_prices: Vec<i64>,
    /// Dual prices v ≥ 0, one a driver, in the unit of the costs.
    pub driver_prices: Vec<i64>,
    /// Sum of the costs of matched pairs and the unmatched costs of the other requests.
    pub objective: i64,
    /// Σu − Σv of the prices, less what multipliers take off: no matching that keeps the constraints
    /// (floors as far as this one met them) costs less.
    pub dual_bound: i64,
    /// How good the matching is known to be.
    pub status: Status,
    /// The method that was used, never [`Method::Auto`].
    pub method: Method,
    /// Number of connected components of the graph, requests and drivers without edges left out.
    pub components: usize,
    /// Number of requests in the component that has most of them.
    pub largest_component: usize,
    /// What became of each side constraint; empty without any.
    pub constraints: Vec<ConstraintAnswer>,
    /// What proves an optimal answer.
    pub proof: Proof,
}

impl Solution {
    /// Number of matched requests.
    pub fn matched(&self) -> usize {
        self.driver_of.iter().flatten().count()
    }

    /// How much cheaper another matching could be at most by the prices, in the unit of the costs; 0
    /// exactly when they prove the matching optimal.
    pub fn gap_abs(&self) -> i64 {
        // The bound of a cut solve may lie so far below that the difference leaves an i64.
        self.objective.saturating_sub(self.dual_bound)
    }

    /// `(objective − dual_bound) / max(1, |objective|)`; 0 exactly when the prices prove the matching
    /// optimal. An answer proven by branch and bound keeps its gap over the relaxation.
    pub fn gap(&self) -> f64 {
        let gap = i128::from(self.objective) - i128::from(self.dual_bound);
        gap as f64 / self.objective.unsigned_abs().max(1) as f64
    }
}

/// The cost of a matching: matched pairs plus the unmatched costs of the other requests.
///
/// A pair that is no edge of the graph counts as unmatched; [`Solution::verify`] is what refuses
/// it. O(R + the edges of matched requests).
pub fn objective_of(graph: &Graph, driver_of: &[Option<u32>]) -> i64 {
    let cost = |request: usize| {
        let pair = driver_of.get(request).copied().flatten();
        pair.and_then(|driver| graph.cost(request, driver))
            .unwrap_or_else(|| graph.unmatched_cost(request))
    };
    (0..graph.requests()).map(cost).sum()
}
