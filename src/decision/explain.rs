//! Why a request of a decided window got its driver, in the window's own names and units.
//!
//! The optimum of the window's graph is carried over to a graph of all its requests, drivers and
//! candidates, also those not worth taking: everyone left out of the solve is unmatched at its
//! unmatched cost, or free at price 0, and stays so in the optimum. What a candidate would cost
//! everybody is then told by [`kheya_solver::Explainer`].

use std::collections::BTreeMap;

use kheya_solver::{
    ConstraintAnswer, ExplainError, Explainer, Graph, GraphError, Proof, Solution, Status, Swap,
};
use serde::Serialize;

use super::{
    Batch, Excluded, Reason, WindowSnapshot, batch::WindowGraph, outcome::leftover_reason,
};
use crate::{
    candidates::{Candidate, CandidateTable},
    domain::{CostMs, DriverId, RequestId},
};

/// Why a request cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainRequestError {
    /// The window has no such request.
    #[error("the window has no request {id:?}{}", nearest_words(.nearest))]
    UnknownRequest {
        /// The id asked for.
        id: String,
        /// The ids most like it, the likest first.
        nearest: Vec<RequestId>,
    },
    /// Prices of a window whose side constraints bind say nothing of single pairs.
    #[error("the window's side constraints bind: what a swap would cost under them cannot be told")]
    Constrained,
    /// The window's solve was cut short or not exact.
    #[error(transparent)]
    Solution(#[from] ExplainError),
    /// The graph of all candidates was refused.
    #[error("the candidate graph was refused: {0}")]
    Graph(#[from] GraphError),
}

/// What a request got and why, and what its nearer candidates would have cost everybody.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestExplanation {
    /// The request.
    pub request_id: RequestId,
    /// The driver it got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_id: Option<DriverId>,
    /// That driver's pickup ETA in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<f64>,
    /// Cost of the pair in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_s: Option<f64>,
    /// Why it got no driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Cost of leaving it unmatched, in seconds.
    pub unmatched_cost_s: f64,
    /// Number of its candidates.
    pub candidates_total: usize,
    /// The candidates with a smaller ETA (all, if it got none) by (ETA, driver id).
    pub candidates: Vec<ExplainedCandidate>,
    /// Drivers of the window that could not be chosen by anyone, by reason.
    pub excluded: BTreeMap<Excluded, usize>,
}

/// A candidate that the request did not get.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedCandidate {
    /// The driver.
    pub driver_id: DriverId,
    /// Its pickup ETA in seconds.
    pub eta_s: f64,
    /// Cost of the pair in seconds.
    pub cost_s: f64,
    /// The request that got it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<RequestId>,
    /// How much more the whole window would cost with this pair, in seconds: exactly what deciding
    /// the window again with the pair forced would show.
    pub swap_cost_s: f64,
    /// The pair's reduced cost in seconds: a lower bound of the swap cost.
    pub swap_cost_at_least_s: f64,
    /// Who would move, the request itself first.
    pub path: Vec<ExplainedMove>,
    /// The driver that would be left without a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_idle: Option<DriverId>,
}

/// A request that would change its driver. Without a driver the cost is the unmatched cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedMove {
    /// The request.
    pub request_id: RequestId,
    /// The driver it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_driver_id: Option<DriverId>,
    /// That driver's ETA in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_eta_s: Option<f64>,
    /// What it costs now, in seconds.
    pub from_cost_s: f64,
    /// The driver it would get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_driver_id: Option<DriverId>,
    /// That driver's ETA in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_eta_s: Option<f64>,
    /// What it would cost, in seconds.
    pub to_cost_s: f64,
}

/// Explains one request of a window that was decided to the end, as [`super::decide_alone`] decides
/// it: of a window that looked ahead, what it would have done by itself.
///
/// # Errors
/// [`ExplainRequestError`]: no such request, the solve was cut short or not exact, side constraints
/// bind, or the costs of all candidates together overflow.
pub fn explain_request(
    snapshot: &WindowSnapshot,
    batch: &Batch,
    request: &str,
) -> Result<RequestExplanation, ExplainRequestError> {
    let mut ids = snapshot.requests().iter().map(|p| p.request.id.as_str());
    let Some(row) = ids.position(|id| id == request) else {
        return Err(ExplainRequestError::UnknownRequest {
            id: request.into(),
            nearest: nearest_ids(snapshot, request),
        });
    };
    let free = |told: &ConstraintAnswer| told.multiplier == 0 && told.shortfall == 0;
    if !batch.solution.constraints.iter().all(free) || batch.solution.proof != Proof::Prices {
        return Err(ExplainRequestError::Constrained);
    }
    let table = &batch.table;
    let graph = whole_graph(snapshot, table)?;
    let solution = carried_over(&graph, &batch.graph, &batch.solution);
    let told = Explainer::new(&graph, &solution)?.explain(row)?;

    let teller = Teller { snapshot, table };
    let got = told.driver.and_then(|driver| table.find(row, driver));
    let nearer = |candidate: &&Candidate| got.is_none_or(|got| candidate.eta_s < got.eta_s);
    let candidates = table
        .row(row)
        .iter()
        .filter(nearer)
        .filter_map(|candidate| {
            let mut swaps = told.swaps.iter();
            let swap = swaps.find(|swap| swap.driver == candidate.driver)?;
            Some(teller.candidate(candidate, swap))
        });
    let mut excluded = BTreeMap::new();
    for &(_, reason) in &batch.excluded {
        *excluded.entry(reason).or_default() += 1;
    }
    Ok(RequestExplanation {
        request_id: teller.request(row as u32),
        driver_id: got.map(|got| teller.driver(got.driver)),
        eta_s: got.map(|got| got.eta_s),
        cost_s: got.map(|got| got.cost.as_seconds()),
        reason: got
            .is_none()
            .then(|| leftover_reason(table, row, Reason::Outbid)),
        unmatched_cost_s: table.unmatched_cost(row).as_seconds(),
        candidates_total: table.row(row).len(),
        candidates: candidates.collect(),
        excluded,
    })
}

/// All requests, drivers and candidates in the snapshot's order.
fn whole_graph(snapshot: &WindowSnapshot, table: &CandidateTable) -> Result<Graph, GraphError> {
    let rows = 0..table.rows();
    let unmatched = rows.clone().map(|row| table.unmatched_cost(row).get());
    let edges = rows.flat_map(|row| {
        let candidates = table.row(row).iter();
        candidates.map(move |c| (row as u32, c.driver, c.cost.get()))
    });
    let drivers = snapshot.drivers().len();
    Graph::from_edges(table.rows(), drivers, unmatched.collect(), edges)
}

/// The solution of the window's graph as one of the whole graph.
fn carried_over(whole: &Graph, window: &WindowGraph, solution: &Solution) -> Solution {
    let mut driver_of = vec![None; whole.requests()];
    let mut request_prices = whole.unmatched_costs().to_vec();
    let mut driver_prices = vec![0; whole.drivers()];
    let mut outside: i64 = request_prices.iter().sum();
    for (&request, &price) in window.requests.iter().zip(&solution.request_prices) {
        outside -= std::mem::replace(&mut request_prices[request as usize], price);
    }
    for (&driver, &price) in window.drivers.iter().zip(&solution.driver_prices) {
        driver_prices[driver as usize] = price;
    }
    for (request, driver) in window.pairs(solution) {
        driver_of[request] = Some(driver);
    }
    Solution {
        driver_of,
        request_prices,
        driver_prices,
        objective: solution.objective + outside,
        dual_bound: solution.dual_bound + outside,
        status: match solution.status {
            Status::Empty if whole.edges() > 0 => Status::Optimal,
            status => status,
        },
        // of none that binds: they are no part of the whole graph
        constraints: Vec::new(),
        ..solution.clone()
    }
}

/// From indices to names and seconds.
struct Teller<'a> {
    snapshot: &'a WindowSnapshot,
    table: &'a CandidateTable,
}

impl Teller<'_> {
    fn request(&self, row: u32) -> RequestId {
        self.snapshot.requests()[row as usize].request.id.clone()
    }

    fn driver(&self, index: u32) -> DriverId {
        self.snapshot.drivers()[index as usize].id.clone()
    }

    fn candidate(&self, candidate: &Candidate, swap: &Swap) -> ExplainedCandidate {
        let seconds = |ms: i64| CostMs::new(ms).as_seconds();
        let path = swap.moves.iter().map(|step| {
            let (from_eta_s, from_cost_s) = self.pays(step.request, step.from);
            let (to_eta_s, to_cost_s) = self.pays(step.request, step.to);
            ExplainedMove {
                request_id: self.request(step.request),
                from_driver_id: step.from.map(|driver| self.driver(driver)),
                from_eta_s,
                from_cost_s,
                to_driver_id: step.to.map(|driver| self.driver(driver)),
                to_eta_s,
                to_cost_s,
            }
        });
        ExplainedCandidate {
            driver_id: self.driver(candidate.driver),
            eta_s: candidate.eta_s,
            cost_s: candidate.cost.as_seconds(),
            held_by: swap.held_by.map(|holder| self.request(holder)),
            swap_cost_s: seconds(swap.swap_cost),
            swap_cost_at_least_s: seconds(swap.at_least),
            path: path.collect(),
            left_idle: swap.left_idle.map(|driver| self.driver(driver)),
        }
    }

    /// ETA and cost in seconds of a request with a driver, or without.
    fn pays(&self, row: u32, driver: Option<u32>) -> (Option<f64>, f64) {
        match driver.and_then(|driver| self.table.find(row as usize, driver)) {
            Some(pair) => (Some(pair.eta_s), pair.cost.as_seconds()),
            None => (None, self.table.unmatched_cost(row as usize).as_seconds()),
        }
    }
}

/// How many ids are offered in place of an unknown one.
const NEAREST_IDS: usize = 3;
/// No id is longer.
const LONGEST_COMPARED: usize = 128;

/// The ids most like one that is not there.
fn nearest_ids(snapshot: &WindowSnapshot, asked: &str) -> Vec<RequestId> {
    let asked: String = asked.chars().take(LONGEST_COMPARED).collect();
    let ids = snapshot
        .requests()
        .iter()
        .map(|pending| &pending.request.id);
    let mut ranked: Vec<(usize, &RequestId)> = ids
        .map(|id| (strsim::levenshtein(&asked, id.as_str()), id))
        .collect();
    ranked.sort_unstable();
    let nearest = ranked.into_iter().take(NEAREST_IDS);
    nearest.map(|(_, id)| id.clone()).collect()
}

fn nearest_words(nearest: &[RequestId]) -> String {
    let quoted: Vec<String> = nearest
        .iter()
        .map(|id| format!("{:?}", id.as_str()))
        .collect();
    match quoted.as_slice() {
        [] => ": it has none at all".into(),
        ids => format!("; the nearest are {}", ids.join(", ")),
    }
}
