//! The closing pass: from where a method stopped to a valid answer with a true bound.
//!
//! A method that went to its end hands over both sides of the prices and only the sums are left.
//! One that was cut hands over a valid matching and driver prices v ≥ 0. For any v ≥ 0 the best
//! request prices are `u_i = min(U_i, min_j c_ij + v_j)`, found row by row, so the bound is dual
//! feasible by construction, wherever the method stopped. The same look at the row gives an
//! unmatched request the cheapest driver still free.
//!
//! Prices of a search that was cut early can be poor, so the same pass also finds the bounds of two
//! extremes, and the best of the three is kept: drivers are plenty (every driver price 0), and
//! drivers are scarce (every request at its unmatched cost, every driver at the most it can save).
//!
//! When even this pass has to be cut short, the rows not looked at get `u_i = min(U_i, least cost
//! of the graph)`, which is feasible for any v ≥ 0, and stay as they are.

use crate::Graph;
use crate::budget::Meter;
use crate::solve::Outcome;

/// A complete answer.
pub(crate) struct Closed {
    pub(crate) driver_of: Vec<Option<u32>>,
    pub(crate) request_prices: Vec<i64>,
    pub(crate) driver_prices: Vec<i64>,
    pub(crate) objective: i64,
    pub(crate) dual_bound: i64,
}

/// Completes what a method handed back. O(R + D) when it went to its end, else O(R + D + E).
pub(crate) fn close(graph: &Graph, outcome: Outcome, meter: &mut Meter<'_>) -> Closed {
    let Outcome {
        mut driver_of,
        mut driver_prices,
        request_prices,
    } = outcome;
    let request_prices = match request_prices {
        Some(prices) => prices,
        None => complete_rows(graph, &mut driver_of, &mut driver_prices, meter),
    };
    let dual_bound = (sum(&request_prices) - sum(&driver_prices)) as i64;
    let objective = crate::objective_of(graph, &driver_of);
    Closed {
        driver_of,
        request_prices,
        driver_prices,
        objective,
        dual_bound,
    }
}

/// Settles both sides of the prices; matches unmatched requests to free drivers.
///
/// `driver_prices` come in as the search left them. The request prices are returned.
fn complete_rows(
    graph: &Graph,
    driver_of: &mut [Option<u32>],
    driver_prices: &mut Vec<i64>,
    meter: &mut Meter<'_>,
) -> Vec<i64> {
    let mut taken = vec![false; graph.drivers()];
    for &driver in driver_of.iter().flatten() {
        taken[driver as usize] = true;
    }
    let least_cost = graph.least_cost();
    let unseen = |&unmatched_cost: &i64| unmatched_cost.min(least_cost);
    let mut searched: Vec<i64> = graph.unmatched_costs().iter().map(unseen).collect();
    let mut plenty = searched.clone();
    let mut scarce = searched.clone();
    let mut most_saved = vec![0; graph.drivers()];
    for request in 0..graph.requests() {
        let row = graph.row(request);
        if meter.is_over_after(row.len() + 1) {
            break;
        }
        let unmatched_cost = graph.unmatched_cost(request);
        let (mut priced, mut cheapest) = (unmatched_cost, unmatched_cost);
        let mut cheapest_free = (unmatched_cost, None);
        for (driver, cost) in row {
            let place = driver as usize;
            priced = priced.min(cost + driver_prices[place]);
            cheapest = cheapest.min(cost);
            most_saved[place] = most_saved[place].max(unmatched_cost - cost);
            if cost < cheapest_free.0 && !taken[place] {
                cheapest_free = (cost, Some(driver));
            }
        }
        searched[request] = priced;
        plenty[request] = cheapest;
        scarce[request] = unmatched_cost;
        if driver_of[request].is_none()
            && let (_, Some(driver)) = cheapest_free
        {
            driver_of[request] = Some(driver);
            taken[driver as usize] = true;
        }
    }
    let free = vec![0; graph.drivers()];
    for (request_prices, prices) in [(plenty, free), (scarce, most_saved)] {
        if sum(&request_prices) - sum(&prices) > sum(&searched) - sum(driver_prices) {
            (searched, *driver_prices) = (request_prices, prices);
        }
    }
    searched
}

fn sum(prices: &[i64]) -> i128 {
    prices.iter().map(|&price| i128::from(price)).sum()
}
