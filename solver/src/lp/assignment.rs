//! The whole assignment as one linear program: a cross-check of the combinatorial methods.
//!
//! The program has a variable an edge worth using; its dual has a price a request and a driver. Both
//! are integral at their corners (the matrix is totally unimodular; Hoffman & Kruskal 1956), so
//! rounding their floating-point values gives a matching and its prices. Where costs are so far apart
//! that floats cannot tell them, rounding gives a matching or prices that are not the best: the
//! closing pass finds the true bound of whatever comes out, and the status says what is proven.

use good_lp::{Expression, Variable, constraint, variable, variables};

use super::LpBackend;
use crate::Graph;
use crate::solve::{Outcome, SolveError};

/// Most edges the program may have, a matter of seconds.
pub const MAX_LP_EDGES: usize = 20_000;

/// Refuses graphs over [`MAX_LP_EDGES`].
pub(crate) fn check_size(graph: &Graph) -> Result<(), SolveError> {
    if graph.edges() <= MAX_LP_EDGES {
        return Ok(());
    }
    Err(SolveError::TooLargeForLp {
        edges: graph.edges(),
        limit: MAX_LP_EDGES,
    })
}

/// Solves a graph that passed [`check_size`]; not interrupted.
pub(crate) fn solve(graph: &Graph, backend: LpBackend) -> Outcome {
    let nothing = Outcome::nothing(graph);
    let edges = edges_worth_using(graph);
    let (Some(driver_of), Some(driver_prices)) = (
        matching(graph, &edges, backend),
        driver_prices(graph, &edges, backend),
    ) else {
        return nothing;
    };
    Outcome {
        driver_of,
        driver_prices,
        request_prices: None,
    }
}

/// Edges (request, driver, what they save), in order.
fn edges_worth_using(graph: &Graph) -> Vec<(u32, u32, f64)> {
    let row = |request: usize| {
        let unmatched_cost = graph.unmatched_cost(request);
        let saved = graph
            .row(request)
            .map(move |(j, cost)| (j, unmatched_cost - cost));
        let useful = saved.filter(|&(_, saved)| saved > 0);
        useful.map(move |(driver, saved)| (request as u32, driver, saved as f64))
    };
    let mut edges: Vec<_> = (0..graph.requests()).flat_map(row).collect();
    edges.sort_unstable_by_key(|&(request, driver, _)| (request, driver));
    edges
}

/// What the largest saving is, so that programs are in numbers about 1.
fn unit(edges: &[(u32, u32, f64)]) -> f64 {
    edges.iter().map(|&(_, _, saved)| saved).fold(1.0, f64::max)
}

fn matching(
    graph: &Graph,
    edges: &[(u32, u32, f64)],
    backend: LpBackend,
) -> Option<Vec<Option<u32>>> {
    let unit = unit(edges);
    let mut names = variables!();
    let chosen: Vec<Variable> = edges
        .iter()
        .map(|_| names.add(variable().min(0.0).max(1.0)))
        .collect();
    let mut saved = Expression::with_capacity(edges.len());
    let mut of_request = vec![Expression::default(); graph.requests()];
    let mut of_driver = vec![Expression::default(); graph.drivers()];
    for (&(request, driver, saves), &chosen) in edges.iter().zip(&chosen) {
        saved.add_mul(saves / unit, chosen);
        of_request[request as usize].add_mul(1.0, chosen);
        of_driver[driver as usize].add_mul(1.0, chosen);
    }
    let rows = of_request.into_iter().chain(of_driver);
    let rows = rows.map(|pairs| constraint!(pairs <= 1.0)).collect();
    let values = backend.values(names.maximise(saved), rows, &chosen)?;

    let mut driver_of = vec![None; graph.requests()];
    let mut taken = vec![false; graph.drivers()];
    for (&(request, driver, _), value) in edges.iter().zip(values) {
        let own = &mut driver_of[request as usize];
        if value > 0.5 && own.is_none() && !taken[driver as usize] {
            *own = Some(driver);
            taken[driver as usize] = true;
        }
    }
    Some(driver_of)
}

fn driver_prices(graph: &Graph, edges: &[(u32, u32, f64)], backend: LpBackend) -> Option<Vec<i64>> {
    let unit = unit(edges);
    let mut names = variables!();
    let mut price = |count: usize| -> Vec<Variable> {
        (0..count).map(|_| names.add(variable().min(0.0))).collect()
    };
    let (requests, drivers) = (price(graph.requests()), price(graph.drivers()));
    let paid: Expression = requests.iter().chain(&drivers).sum();
    let row = |&(request, driver, saves): &(u32, u32, f64)| {
        constraint!(requests[request as usize] + drivers[driver as usize] >= saves / unit)
    };
    let rows = edges.iter().map(row).collect();
    let values = backend.values(names.minimise(paid), rows, &drivers)?;
    Some(
        values
            .into_iter()
            .map(|v| (v * unit).round().max(0.0) as i64)
            .collect(),
    )
}
