//! The dense exact method: `kuhn_munkres` of the `pathfinding` crate, as an oracle and for small
//! dense graphs.
//!
//! It maximises a total weight and matches every row of a matrix that is at least as wide as high.
//! With `w_ij = U_i − c_ij` where an edge is worth using and 0 elsewhere, a pair of weight 0 means
//! "unmatched": no absent edge needs a big number and no request a column of its own. A matrix that
//! is higher than wide gets columns of zeros.
//!
//! It answers without prices; they are the least driver prices that fit the matching.

use std::iter::Sum;

use pathfinding::num_traits::{Bounded, Signed, Zero};
use pathfinding::prelude::{Matrix, kuhn_munkres};

use crate::Graph;
use crate::least_prices;
use crate::solve::{Outcome, SolveError};

/// Largest number of matrix cells, requests × max(requests, drivers), the dense method accepts:
/// 1,500 × 1,500, a matter of seconds.
pub const MAX_DENSE_CELLS: usize = 1_500 * 1_500;

/// Refuses graphs over [`MAX_DENSE_CELLS`].
pub(crate) fn check_size(graph: &Graph) -> Result<(), SolveError> {
    let (requests, drivers) = (graph.requests(), graph.drivers());
    let cells = requests as u128 * requests.max(drivers) as u128;
    if cells <= MAX_DENSE_CELLS as u128 {
        return Ok(());
    }
    Err(SolveError::TooLargeForDense {
        requests,
        drivers,
        cells,
        limit: MAX_DENSE_CELLS,
    })
}

/// Solves a graph that passed [`check_size`]. O(R² · max(R, D)), not interrupted.
pub(crate) fn solve(graph: &Graph) -> Outcome {
    let driver_of = if labels_fit_i64(graph) {
        matching(graph, |weight| weight)
    } else {
        matching(graph, i128::from)
    };
    let driver_prices = least_prices::of_optimal_matching(graph, &driver_of);
    let request_prices = best_request_prices(graph, &driver_prices);
    Outcome {
        driver_of,
        driver_prices,
        request_prices: Some(request_prices),
    }
}

/// Labels of the method move by at most one largest weight a row or column.
fn labels_fit_i64(graph: &Graph) -> bool {
    let nodes = graph.requests() + graph.drivers().max(graph.requests()) + 1;
    (0..graph.requests()).all(|request| {
        let unmatched_cost = i128::from(graph.unmatched_cost(request));
        graph.row(request).all(|(_, cost)| {
            let weight = unmatched_cost - i128::from(cost);
            weight * 2 * (nodes as i128) < i128::from(i64::MAX)
        })
    })
}

fn matching<W>(graph: &Graph, weight: impl Fn(i64) -> W) -> Vec<Option<u32>>
where
    W: Bounded + Sum + Signed + Zero + Ord + Copy,
{
    let columns = graph.drivers().max(graph.requests());
    let mut weights = Matrix::new(graph.requests(), columns, W::zero());
    for request in 0..graph.requests() {
        let unmatched_cost = graph.unmatched_cost(request);
        for (driver, cost) in graph.row(request) {
            if cost < unmatched_cost {
                weights[(request, driver as usize)] = weight(unmatched_cost - cost);
            }
        }
    }
    let (_, columns) = kuhn_munkres(&weights);
    let pair = |(request, column): (usize, usize)| {
        (!weights[(request, column)].is_zero()).then_some(column as u32)
    };
    columns.into_iter().enumerate().map(pair).collect()
}

fn best_request_prices(graph: &Graph, driver_prices: &[i64]) -> Vec<i64> {
    let best = |request: usize| {
        let offers = graph
            .row(request)
            .map(|(driver, cost)| cost + driver_prices[driver as usize]);
        offers.fold(graph.unmatched_cost(request), i64::min)
    };
    (0..graph.requests()).map(best).collect()
}
