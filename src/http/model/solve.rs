//! Body and answer of `POST /v1/solve`.

use std::time::Duration;

use kheya_solver::Proof;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    constraints::{ConstraintBody, ConstraintReport},
    drivers::{IdText, PlaceBody},
    own::EdgeBody,
};
use crate::decision::{Reason, WindowDecision};

/// A window to solve. With `edges`, places are not needed.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SolveBody {
    /// At most 5,000.
    #[schema(max_items = 5000)]
    pub requests: Vec<SolveRequest>,
    /// At most 50,000.
    #[schema(max_items = 50_000)]
    pub drivers: Vec<SolveDriver>,
    /// Travel times of the caller's own; a pair that is not named is impossible.
    #[schema(nullable = false)]
    pub edges: Option<Vec<EdgeBody>>,
    /// The model of the travel times, where no edges are given.
    #[schema(nullable = false)]
    pub eta: Option<EtaBody>,
    /// Caps and floors to keep.
    #[schema(max_items = 64, nullable = false)]
    pub constraints: Option<Vec<ConstraintBody>>,
    /// How to solve; by default whichever exact method measures best.
    #[schema(nullable = false)]
    pub method: Option<MethodName>,
    /// Time for the solve, by default 5,000.
    #[schema(minimum = 1, maximum = 30_000, nullable = false)]
    pub budget_ms: Option<u64>,
}

/// A request to match.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SolveRequest {
    /// Its id.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub id: String,
    /// The rider, who is kept apart from drivers that declined.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[ -.0-~]+$",
        nullable = false
    )]
    pub rider_id: Option<String>,
    /// Where the rider waits.
    #[schema(nullable = false)]
    pub pickup: Option<PlaceBody>,
    /// Classes that will do; empty: any.
    #[schema(max_items = 32, nullable = false)]
    pub vehicle_classes: Option<Vec<IdText>>,
    /// Since when the rider waits.
    #[schema(minimum = 0, nullable = false)]
    pub requested_at_ms: Option<i64>,
    /// Cost of leaving the request over.
    #[schema(minimum = 0, maximum = 86400, nullable = false)]
    pub unmatched_cost_s: Option<f64>,
    /// Longest way of a driver to the pickup.
    #[schema(minimum = 0, maximum = 86400, nullable = false)]
    pub max_pickup_eta_s: Option<f64>,
    /// Drivers that will not do.
    #[schema(max_items = 32, nullable = false)]
    pub exclude_driver_ids: Option<Vec<IdText>>,
}

/// A driver to choose.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SolveDriver {
    /// Its id.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub id: String,
    /// Latitude in degrees; beside it `lng`.
    #[schema(minimum = -90, maximum = 90, nullable = false)]
    pub lat: Option<f64>,
    /// Longitude in degrees.
    #[schema(minimum = -180, maximum = 180, nullable = false)]
    pub lng: Option<f64>,
}

/// The straight-line model.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EtaBody {
    /// Straight distance × detour ÷ speed.
    #[schema(pattern = "^straight_line$")]
    pub model: String,
    /// Speed in km/h.
    #[schema(minimum = 1, maximum = 200)]
    pub speed_kmh: f64,
    /// Road kilometres for each straight kilometre.
    #[schema(minimum = 1, maximum = 5)]
    pub detour: f64,
}

/// A method of the solver.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MethodName {
    /// Whichever exact method measures best.
    Auto,
    /// Shortest augmenting paths on the sparse graph.
    Sparse,
    /// Dense; small windows only.
    Hungarian,
    /// Linear programming, a cross-check for windows of at most 20,000 pairs. Where constraints bind
    /// every exact method ends in it.
    Lp,
    /// Cheapest edge first; not optimal.
    GreedyEdge,
}

/// A solved window.
#[derive(Debug, Serialize, ToSchema)]
pub struct SolveAnswer {
    /// The chosen pairs.
    pub assignments: Vec<SolvedPair>,
    /// Requests without a driver.
    pub unmatched: Vec<UnmatchedRequest>,
    /// Cost of the pairs and of everyone left over.
    pub total_cost_s: f64,
    /// What was minimised: `cost`.
    pub objective: &'static str,
    /// `optimal` (proven), `feasible` (cut by its budget) or `empty` (no pair worth taking).
    pub status: String,
    /// The method that was used.
    pub method: String,
    /// Relative distance to the bound of the prices; 0 exactly when they prove the optimum.
    pub gap: f64,
    /// `branch_and_bound`, where an optimum is proven by a search and not by prices alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub proof: Option<String>,
    /// What became of each constraint, by name; only where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub constraints: Option<Vec<ConstraintReport>>,
    /// Time to solve, in milliseconds.
    pub solve_ms: f64,
    /// The proof, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub certificate: Option<Certificate>,
}

/// A chosen pair.
#[derive(Debug, Serialize, ToSchema)]
pub struct SolvedPair {
    /// The request.
    pub request_id: String,
    /// Its driver.
    pub driver_id: String,
    /// Travel time.
    pub eta_s: f64,
    /// Cost.
    pub cost_s: f64,
}

/// A request without a driver.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnmatchedRequest {
    /// The request.
    pub request_id: String,
    /// Why: the first that applies.
    #[schema(value_type = String)]
    pub reason: Reason,
}

/// Prices u of requests and v of drivers: u ≤ unmatched cost, v ≥ 0, and u − v ≤ cost for every
/// pair. Then Σu − Σv is a lower bound of any assignment's cost, and equals it when optimal. These
/// are the least v, which are unique: what one more identical driver would save.
///
/// Under constraints the multipliers m of those that count a pair add to its cost, and the bound is
/// Σu − Σv − Σ m·b: b is `max` where m ≥ 0, else `min` less the shortfall.
#[derive(Debug, Serialize, ToSchema)]
pub struct Certificate {
    /// The lower bound.
    pub dual_bound_s: f64,
    /// u, one for each request.
    pub request_prices: Vec<RequestPrice>,
    /// v, where it is not 0.
    pub driver_prices: Vec<DriverPrice>,
    /// m, one for each constraint; only where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub multipliers: Vec<Multiplier>,
}

/// The multiplier of a constraint.
#[derive(Debug, Serialize, ToSchema)]
pub struct Multiplier {
    /// The constraint.
    pub name: String,
    /// Its multiplier.
    pub multiplier_s: f64,
}

/// The price of a request.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequestPrice {
    /// The request.
    pub request_id: String,
    /// Its price.
    pub price_s: f64,
}

/// The price of a driver.
#[derive(Debug, Serialize, ToSchema)]
pub struct DriverPrice {
    /// The driver.
    pub driver_id: String,
    /// Its price.
    pub price_s: f64,
}

impl SolveAnswer {
    /// The answer that a decision gives.
    pub(crate) fn new(decision: WindowDecision, solve_time: Duration) -> Self {
        let facts = decision.solve.as_ref();
        Self {
            total_cost_s: decision.objective.as_seconds(),
            objective: "cost",
            status: facts.map_or("empty", |facts| facts.status.name()).into(),
            method: facts.map_or("auto", |facts| facts.method.name()).into(),
            gap: facts.map_or(0.0, |facts| facts.gap),
            proof: facts
                .filter(|facts| facts.proof == Proof::BranchAndBound)
                .map(|facts| facts.proof.name().into()),
            constraints: ConstraintReport::all(&decision.constraints),
            solve_ms: (solve_time.as_secs_f64() * 1e6).round() / 1e3,
            assignments: decision
                .assignments
                .into_iter()
                .map(|pair| SolvedPair {
                    request_id: pair.request_id.to_string(),
                    driver_id: pair.driver_id.to_string(),
                    eta_s: pair.eta_s,
                    cost_s: pair.cost_s,
                })
                .collect(),
            unmatched: decision
                .unmatched
                .into_iter()
                .map(|left| UnmatchedRequest {
                    request_id: left.request_id.to_string(),
                    reason: left.reason,
                })
                .collect(),
            certificate: None,
        }
    }
}
