//! One way in for every method.

use crate::budget::{Budget, Deadline, Meter};
use crate::closing::{self, Closed};
use crate::components::Components;
use crate::{
    Constraints, Graph, LpBackend, Method, Proof, Solution, Status, greedy, hungarian, lp, sparse,
};

/// How to solve: [`Options::default`] is `auto` without a budget.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// The method.
    pub method: Method,
    /// When to stop and answer with what there is; never, if absent. Counted from the entry to
    /// [`solve`].
    pub budget: Option<Budget>,
    /// Driver prices v to start from, say those of the previous window, one a driver. They change
    /// the work, never the objective: any values will do. Missing entries count as 0, entries past
    /// the last driver are ignored, values are clamped to what a driver can be worth. Only
    /// `sparse` uses them.
    pub warm_start: Option<&'a [i64]>,
    /// Caps and floors to keep. Where the answer without them does not keep them, every exact method
    /// goes on with linear programming and says [`Method::Lp`]; `greedy-edge` keeps the caps, and
    /// meets floors as far as cheapest pairs first does.
    pub constraints: Option<&'a Constraints>,
    /// What solves linear programs.
    pub lp_backend: LpBackend,
}

/// Why a graph cannot be solved with a method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// The dense method needs a matrix that is too large.
    #[error(
        "{requests} requests and {drivers} drivers are too many for the hungarian method: it needs {cells} matrix cells, the limit is {limit}; use sparse"
    )]
    TooLargeForDense {
        /// Number of requests.
        requests: usize,
        /// Number of drivers.
        drivers: usize,
        /// Cells the matrix would have.
        cells: u128,
        /// Cells it may have.
        limit: usize,
    },
    /// The linear program over all edges would be too large.
    #[error(
        "{edges} edges are too many for the lp method without constraints that bind: the limit is {limit}; use sparse"
    )]
    TooLargeForLp {
        /// Number of edges.
        edges: usize,
        /// Number it may have.
        limit: usize,
    },
    /// The constraints were checked for a graph of another size.
    #[error(
        "the constraints are those of a graph of {} requests and {} drivers, not of {} and {}",
        constraints.0, constraints.1, graph.0, graph.1
    )]
    OtherSize {
        /// Requests and drivers that the constraints speak of.
        constraints: (usize, usize),
        /// Requests and drivers of the graph.
        graph: (usize, usize),
    },
    /// Multipliers of constraints could overflow sums of costs.
    #[error("the costs are too large, or too far apart, for side constraints")]
    CostsTooLargeForConstraints,
}

/// What a method hands back, before prices and bound of a cut solve are settled.
pub(crate) struct Outcome {
    /// The driver of each request: a valid matching.
    pub(crate) driver_of: Vec<Option<u32>>,
    /// Driver prices, each ≥ 0.
    pub(crate) driver_prices: Vec<i64>,
    /// Request prices, dual feasible with the driver prices, when the solve went to its end.
    pub(crate) request_prices: Option<Vec<i64>>,
}

/// Solves a graph.
///
/// Exact unless the budget ends first or the method is `greedy-edge`. Under side constraints the
/// answer has the least total shortfall of the floors and, among those, the least cost. With E edges and the shorter
/// side n, `sparse` takes O(E log E + n (E + n log n)) at worst and far less on dispatch windows;
/// memory is 12 bytes an edge for the graph and up to 30 more while solving.
///
/// # Errors
/// [`SolveError::TooLargeForDense`] when `hungarian` is asked for and the graph is over
/// [`MAX_DENSE_CELLS`](crate::MAX_DENSE_CELLS), [`SolveError::TooLargeForLp`] when `lp` is and there
/// are no constraints, the other two when constraints do not fit the graph.
pub fn solve(graph: &Graph, options: &Options<'_>) -> Result<Solution, SolveError> {
    let deadline = Deadline::start(options.budget.as_ref(), graph.requests(), graph.edges());
    let constraints = options.constraints.filter(|given| !given.is_empty());
    if let Some(constraints) = constraints {
        check_size(graph, constraints)?;
    }
    let method = match options.method {
        Method::Auto => Method::Sparse,
        // where constraints do not bind there is nothing to program
        Method::Lp if constraints.is_some() => Method::Sparse,
        chosen => chosen,
    };
    match method {
        Method::Hungarian => hungarian::check_size(graph)?,
        Method::Lp => lp::check_size(graph)?,
        Method::Auto | Method::Sparse | Method::GreedyEdge => {}
    }
    let solution = without_constraints(graph, method, options, &deadline);
    match constraints {
        None => Ok(solution),
        Some(constraints) => {
            lp::under_constraints(graph, constraints, options.lp_backend, solution, &deadline)
        }
    }
}

fn check_size(graph: &Graph, constraints: &Constraints) -> Result<(), SolveError> {
    let size = (graph.requests(), graph.drivers());
    if constraints.size() == size {
        return Ok(());
    }
    Err(SolveError::OtherSize {
        constraints: constraints.size(),
        graph: size,
    })
}

fn without_constraints(
    graph: &Graph,
    method: Method,
    options: &Options<'_>,
    deadline: &Deadline,
) -> Solution {
    if graph.edges() == 0 {
        return empty(graph, method);
    }
    let components = Components::of(graph);
    let outcome = match method {
        // what cannot be interrupted is not begun late
        Method::Hungarian | Method::Lp if deadline.search_is_over() => Outcome::nothing(graph),
        Method::Hungarian => hungarian::solve(graph),
        Method::Lp => lp::solve(graph, options.lp_backend),
        Method::GreedyEdge => greedy_edge(graph, deadline),
        Method::Sparse | Method::Auto => {
            sparse::solve(graph, &components, options.warm_start, deadline)
        }
    };
    settle(graph, method, &components, outcome, deadline)
}

impl Outcome {
    /// Everyone unmatched at price 0: what there is when the budget ends before the start.
    pub(crate) fn nothing(graph: &Graph) -> Self {
        Self {
            driver_of: vec![None; graph.requests()],
            driver_prices: vec![0; graph.drivers()],
            request_prices: None,
        }
    }
}

fn greedy_edge(graph: &Graph, deadline: &Deadline) -> Outcome {
    let driver_of = greedy::greedy_edge_until(graph, &mut Meter::new(deadline));
    Outcome {
        driver_of,
        ..Outcome::nothing(graph)
    }
}

fn empty(graph: &Graph, method: Method) -> Solution {
    let objective = graph.unmatched_costs().iter().sum();
    Solution {
        driver_of: vec![None; graph.requests()],
        request_prices: graph.unmatched_costs().to_vec(),
        driver_prices: vec![0; graph.drivers()],
        objective,
        dual_bound: objective,
        status: Status::Empty,
        method,
        components: 0,
        largest_component: 0,
        constraints: Vec::new(),
        proof: Proof::Prices,
    }
}

fn settle(
    graph: &Graph,
    method: Method,
    components: &Components,
    outcome: Outcome,
    deadline: &Deadline,
) -> Solution {
    let Closed {
        driver_of,
        request_prices,
        driver_prices,
        objective,
        dual_bound,
    } = closing::close(graph, outcome, &mut Meter::new(deadline));
    Solution {
        status: if objective == dual_bound {
            Status::Optimal
        } else {
            Status::Feasible
        },
        driver_of,
        request_prices,
        driver_prices,
        objective,
        dual_bound,
        method,
        components: components.count(),
        largest_component: components.largest(),
        constraints: Vec::new(),
        proof: Proof::Prices,
    }
}
