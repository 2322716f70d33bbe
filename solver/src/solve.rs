//! One way in for every method.

use crate::budget::{Budget, Deadline, Meter};
use crate::closing::{self, Closed};
use crate::components::Components;
use crate::{Graph, Method, Solution, Status, greedy, hungarian, sparse};

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
/// Exact unless the budget ends first or the method is `greedy-edge`. With E edges and the shorter
/// side n, `sparse` takes O(E log E + n (E + n log n)) at worst and far less on dispatch windows;
/// memory is 12 bytes an edge for the graph and up to 30 more while solving.
///
/// # Errors
/// [`SolveError::TooLargeForDense`] when `hungarian` is asked for and the graph is over
/// [`MAX_DENSE_CELLS`](crate::MAX_DENSE_CELLS).
pub fn solve(graph: &Graph, options: &Options<'_>) -> Result<Solution, SolveError> {
    let deadline = Deadline::start(options.budget.as_ref(), graph.requests(), graph.edges());
    let method = match options.method {
        Method::Auto => Method::Sparse,
        chosen => chosen,
    };
    if method == Method::Hungarian {
        hungarian::check_size(graph)?;
    }
    if graph.edges() == 0 {
        return Ok(empty(graph, method));
    }
    let (components, outcome) = match method {
        Method::Sparse | Method::Auto => sparse::solve(graph, options.warm_start, &deadline),
        Method::Hungarian if deadline.search_is_over() => {
            (Components::of(graph), Outcome::nothing(graph))
        }
        Method::Hungarian => (Components::of(graph), hungarian::solve(graph)),
        Method::GreedyEdge => (Components::of(graph), greedy_edge(graph, &deadline)),
    };
    Ok(settle(graph, method, &components, outcome, &deadline))
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
    }
}
