//! The batch decision: one exact solve for the whole window.

use kheya_solver::{Budget, Constraints, Graph, GraphError, Method, Options, Solution, Status};

use super::{
    Excluded, Reason, SolveFacts, WarmStart, WindowDecision, WindowSnapshot,
    ahead::look_ahead,
    constraint::{Room, tell_caps},
    greedy::oldest_first_in_table,
    outcome::{Choice, account, leftover_reason},
};
use crate::{
    candidates::{CandidateSearch, CandidateTable, availability, given_table},
    domain::CostMs,
    eta::EtaModel,
};

/// Why a window could not be decided. None of these is the input's fault.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The candidate graph was refused.
    #[error("the candidate graph was refused: {0}")]
    Graph(#[from] GraphError),
    /// The method cannot solve this graph.
    #[error("the window could not be solved: {0}")]
    Solve(#[from] kheya_solver::SolveError),
    /// The proof of the solution did not hold; the solution must not be used.
    #[error("the solution's certificate does not hold: {0}")]
    Certificate(#[from] kheya_solver::CertificateError),
}

/// The phases of a decision, told as each ends, so that a caller with a clock can time them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Drivers sorted out and candidates found.
    Search,
    /// ETAs known.
    Eta,
    /// Candidates ranked and the graph built.
    Build,
    /// Solved.
    Solve,
    /// Verified.
    Verify,
}

/// A decided window with what it was decided on, for repair and explanation.
pub struct Batch {
    /// The decision.
    pub decision: WindowDecision,
    /// The candidates it chose from.
    pub table: CandidateTable,
    pub(super) excluded: Vec<(u32, Excluded)>,
    pub(super) graph: WindowGraph,
    pub(super) solution: Solution,
    /// The driver prices with what comes next in view, where that was decided.
    pub(super) wider_prices: Option<WarmStart>,
}

impl Batch {
    /// The driver prices of the window's solve, the wider one where it looked ahead, for a later
    /// window to start from. `snapshot` is the one that was decided.
    pub fn driver_prices(&self, snapshot: &WindowSnapshot) -> WarmStart {
        let alone = || WarmStart::of(snapshot, &self.graph.drivers, &self.solution);
        self.wider_prices.clone().unwrap_or_else(alone)
    }
}

/// Decides a window as a whole: the assignment of least cost, proven. Where the region looks ahead,
/// so does the window: the least cost is then that with the next riders and the next free cars in
/// view. A budget is that of the whole decision; when it ends first, the window decided alone stands.
///
/// # Errors
/// [`DecisionError`]: the graph's costs overflow, the method is not fit for the graph's size, or the
/// certificate does not hold.
pub fn decide_batch(
    snapshot: &WindowSnapshot,
    eta: &dyn EtaModel,
    options: &Options<'_>,
    mut ended: impl FnMut(Phase),
) -> Result<Batch, DecisionError> {
    if !snapshot.looks_ahead() || !snapshot.constraints().is_empty() {
        return decide_alone(snapshot, eta, options, ended);
    }
    let options = Options {
        budget: options.budget.as_ref().map(Budget::running),
        ..options.clone()
    };
    let alone = decide_alone(snapshot, eta, &options, &mut ended)?;
    let settled = |facts: &SolveFacts| facts.status != Status::Feasible;
    if alone.decision.solve.as_ref().is_some_and(settled) {
        look_ahead(snapshot, eta, &options, alone, &mut ended)
    } else {
        Ok(alone)
    }
}

/// Decides a window as a whole and alone, whatever comes next: the assignment of least cost, proven.
///
/// # Errors
/// As [`decide_batch`].
pub fn decide_alone(
    snapshot: &WindowSnapshot,
    eta: &dyn EtaModel,
    options: &Options<'_>,
    mut ended: impl FnMut(Phase),
) -> Result<Batch, DecisionError> {
    let (table, excluded) = candidates_of(snapshot, eta, &mut ended);
    let constraints = snapshot.constraints_in_indices();
    let graph = WindowGraph::new(snapshot, &table, constraints, |_| true, |_| true)?;
    ended(Phase::Build);
    // a window that looks ahead starts its wider solve from them: alone they would mislead it
    let prices = if snapshot.looks_ahead() {
        None
    } else {
        snapshot.warm_prices(&graph.drivers)
    };
    let options = Options {
        warm_start: prices.as_deref(),
        ..options.clone()
    };
    let solution = graph.solve(&options)?;
    ended(Phase::Solve);
    graph.verify(&solution)?;
    ended(Phase::Verify);

    let mut choices = graph.choices(&table, &solution);
    let room = Room::beside(constraints, &choices);
    tell_caps(snapshot, &mut choices, &table, |_| false);
    let mut decision = account(
        snapshot,
        &choices,
        |row| table.unmatched_cost(row),
        &excluded,
    );
    decision.edges = table.edges();
    decision.constraints = room.facts(snapshot, &multipliers(&solution));
    decision.solve = Some(graph.facts(snapshot, &table, &solution)?);
    Ok(Batch {
        decision,
        table,
        excluded,
        graph,
        solution,
        wider_prices: None,
    })
}

/// What each constraint adds to the cost of its pairs.
fn multipliers(solution: &Solution) -> Vec<i64> {
    solution.constraints.iter().map(|c| c.multiplier).collect()
}

/// The candidates of a snapshot, searched or given, and the drivers that cannot be chosen.
pub(super) fn candidates_of(
    snapshot: &WindowSnapshot,
    eta: &dyn EtaModel,
    ended: &mut impl FnMut(Phase),
) -> (CandidateTable, Vec<(u32, Excluded)>) {
    if let Some(edges) = snapshot.edges() {
        let excluded = (0u32..)
            .zip(snapshot.drivers())
            .filter_map(|(i, d)| {
                availability(d, snapshot.config(), snapshot.now())
                    .err()
                    .map(|e| (i, e))
            })
            .collect();
        return (given_table(snapshot, edges), excluded);
    }
    let search = CandidateSearch::new(snapshot);
    let ended = std::cell::RefCell::new(ended);
    let table = search.table(
        eta,
        || (*ended.borrow_mut())(Phase::Search),
        || (*ended.borrow_mut())(Phase::Eta),
    );
    (table, search.excluded().to_vec())
}

/// The solver's graph of a window. Rows and columns stand in id order, since the solver breaks ties
/// by index; rows without a pair worth taking (or that a floor may ask for) and drivers without an
/// edge are left out.
pub(super) struct WindowGraph {
    graph: Graph,
    constraints: Constraints,
    /// Snapshot index of each row's request.
    pub(super) requests: Vec<u32>,
    /// Snapshot index of each column's driver.
    pub(super) drivers: Vec<u32>,
    /// Cost of the requests that are not rows.
    outside: i64,
}

impl WindowGraph {
    /// The graph of the requests and drivers (snapshot indices) that may take part.
    pub(super) fn new(
        snapshot: &WindowSnapshot,
        table: &CandidateTable,
        constraints: &Constraints,
        takes_request: impl Fn(usize) -> bool,
        takes_driver: impl Fn(u32) -> bool,
    ) -> Result<Self, GraphError> {
        let asked_for = |row: usize, driver: u32| {
            let mut counting = constraints.counting(row, driver);
            counting.any(|index| constraints.min(index).is_some())
        };
        let worth = |row: usize| {
            let limit = table.unmatched_cost(row);
            let candidates = table.row(row).iter();
            candidates.filter(move |c| c.cost < limit || asked_for(row, c.driver))
        };
        let mut column_of = vec![u32::MAX; snapshot.drivers().len()];
        let mut requests: Vec<u32> = Vec::new();
        let mut outside = 0;
        for row in 0..table.rows() {
            let mut any = false;
            if takes_request(row) {
                for candidate in worth(row).filter(|c| takes_driver(c.driver)) {
                    column_of[candidate.driver as usize] = 0;
                    any = true;
                }
            }
            if any {
                requests.push(row as u32);
            } else {
                outside += table.unmatched_cost(row).get();
            }
        }
        requests.sort_by(|&a, &b| {
            let id = |row: u32| &snapshot.requests()[row as usize].request.id;
            id(a).cmp(id(b))
        });
        let mut drivers = Vec::new();
        for (driver, column) in column_of.iter_mut().enumerate() {
            if *column == 0 {
                *column = drivers.len() as u32;
                drivers.push(driver as u32);
            }
        }
        let unmatched = requests
            .iter()
            .map(|&row| table.unmatched_cost(row as usize).get())
            .collect();
        let mut offsets = vec![0u32];
        let (mut edge_drivers, mut edge_costs) = (Vec::new(), Vec::new());
        for &row in &requests {
            for candidate in worth(row as usize).filter(|c| takes_driver(c.driver)) {
                edge_drivers.push(column_of[candidate.driver as usize]);
                edge_costs.push(candidate.cost.get());
            }
            offsets.push(edge_drivers.len() as u32);
        }
        let graph = Graph::from_rows(drivers.len(), unmatched, offsets, edge_drivers, edge_costs)?;
        Ok(Self {
            graph,
            constraints: if constraints.is_empty() {
                Constraints::default()
            } else {
                constraints.part(&requests, &drivers)
            },
            requests,
            drivers,
            outside,
        })
    }

    /// Solves the graph under the constraints.
    pub(super) fn solve(
        &self,
        options: &Options<'_>,
    ) -> Result<Solution, kheya_solver::SolveError> {
        let options = Options {
            constraints: Some(&self.constraints),
            ..options.clone()
        };
        kheya_solver::solve(&self.graph, &options)
    }

    /// Checks a solution of [`WindowGraph::solve`].
    pub(super) fn verify(&self, solution: &Solution) -> Result<(), kheya_solver::CertificateError> {
        solution.verify_with(&self.graph, &self.constraints)
    }

    /// The snapshot index of the driver of each request row that got one.
    pub(super) fn pairs(&self, solution: &Solution) -> impl Iterator<Item = (usize, u32)> {
        self.requests
            .iter()
            .zip(&solution.driver_of)
            .filter_map(|(&request, driver)| {
                driver.map(|column| (request as usize, self.drivers[column as usize]))
            })
    }

    fn choices(&self, table: &CandidateTable, solution: &Solution) -> Vec<Choice> {
        let left = if solution.status == Status::Feasible {
            Reason::Budget
        } else {
            Reason::Outbid
        };
        let mut choices: Vec<Choice> = (0..table.rows())
            .map(|row| Err(leftover_reason(table, row, left)))
            .collect();
        for (request, driver) in self.pairs(solution) {
            if let Some(candidate) = table.find(request, driver) {
                choices[request] = Ok(*candidate);
            }
        }
        choices
    }

    fn facts(
        &self,
        snapshot: &WindowSnapshot,
        table: &CandidateTable,
        solution: &Solution,
    ) -> Result<SolveFacts, DecisionError> {
        let edge_first = self.edge_first()?;
        let oldest_first = oldest_first_in_table(snapshot, table);
        let oldest_first: i64 = oldest_first
            .iter()
            .enumerate()
            .map(|(row, choice)| {
                choice
                    .as_ref()
                    .map_or(table.unmatched_cost(row), |c| c.cost)
                    .get()
            })
            .sum();
        Ok(SolveFacts {
            status: solution.status,
            proof: solution.proof,
            method: solution.method,
            dual_bound: CostMs::new(solution.dual_bound + self.outside),
            gap: solution.gap(),
            gap_abs: CostMs::new(solution.gap_abs()),
            components: solution.components,
            largest_component: solution.largest_component,
            gain_vs_greedy_edge: CostMs::new(edge_first - solution.objective),
            gain_vs_greedy: CostMs::new(oldest_first - solution.objective - self.outside),
        })
    }

    /// What greedy-edge costs: like the other baseline it keeps caps.
    fn edge_first(&self) -> Result<i64, kheya_solver::SolveError> {
        if self.constraints.is_empty() {
            let pairs = kheya_solver::greedy_edge(&self.graph);
            return Ok(kheya_solver::objective_of(&self.graph, &pairs));
        }
        let options = Options {
            method: Method::GreedyEdge,
            ..Options::default()
        };
        self.solve(&options).map(|solution| solution.objective)
    }
}
