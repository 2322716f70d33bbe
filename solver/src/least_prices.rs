//! The least optimal driver prices, which are unique.
//!
//! Among all prices that prove a matching optimal, the driver prices that are least in every
//! component exist and do not depend on which optimal matching is looked at (Shapley & Shubik 1971,
//! "The assignment game I": the optimal prices form a lattice). The least price of a driver is what
//! one more driver identical to it would save.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::{Graph, Solution, Status};

/// The componentwise least optimal driver prices v, in the unit of the costs: `v[j]` is exactly how
/// much the optimum would fall with one more driver identical to driver j.
///
/// From optimal prices each driver's price can fall by the length of the shortest path in the
/// residual graph to a place where it would have to stay: price 0, or an unmatched request that
/// would take the driver. One Dijkstra over drivers from all those places at once,
/// O(E + D log D). When the solution is not optimal its prices are returned as they are.
pub fn least_driver_prices(graph: &Graph, solution: &Solution) -> Vec<i64> {
    let mut prices = solution.driver_prices.clone();
    if solution.status != Status::Optimal {
        return prices;
    }
    let slack = |request: usize, driver: u32, cost: i64| {
        cost + solution.driver_prices[driver as usize] - solution.request_prices[request]
    };
    // fall[j]: how far the price of driver j can fall.
    let mut fall = prices.clone();
    let mut request_of = vec![None; graph.drivers()];
    for request in 0..graph.requests() {
        match solution.driver_of[request] {
            Some(driver) => request_of[driver as usize] = Some(request),
            None => {
                for (driver, cost) in graph.row(request) {
                    let fall = &mut fall[driver as usize];
                    *fall = (*fall).min(slack(request, driver, cost));
                }
            }
        }
    }
    let all = fall
        .iter()
        .enumerate()
        .map(|(driver, &fall)| Reverse((fall, driver as u32)));
    let mut heap: BinaryHeap<_> = all.collect();
    while let Some(Reverse((settled, driver))) = heap.pop() {
        if settled > fall[driver as usize] {
            continue;
        }
        let Some(request) = request_of[driver as usize] else {
            continue;
        };
        for (other, cost) in graph.row(request) {
            let reached = settled + slack(request, other, cost);
            if reached < fall[other as usize] {
                fall[other as usize] = reached;
                heap.push(Reverse((reached, other)));
            }
        }
    }
    for (price, fall) in prices.iter_mut().zip(fall) {
        *price -= fall;
    }
    prices
}

/// The least driver prices of an optimal matching that came without prices.
///
/// Longest paths by label correction from the prices unmatched requests enforce (Bellman–Ford with
/// a queue, O(D · E) at worst): for small graphs.
pub(crate) fn of_optimal_matching(graph: &Graph, driver_of: &[Option<u32>]) -> Vec<i64> {
    let mut prices = vec![0_i64; graph.drivers()];
    let mut request_of = vec![None; graph.drivers()];
    for (request, &driver) in driver_of.iter().enumerate() {
        match driver {
            Some(driver) => request_of[driver as usize] = Some(request),
            None => {
                for (driver, cost) in graph.row(request) {
                    let price = &mut prices[driver as usize];
                    *price = (*price).max(graph.unmatched_cost(request) - cost);
                }
            }
        }
    }
    let mut queued = vec![true; graph.drivers()];
    let mut queue: VecDeque<u32> = (0..graph.drivers() as u32).collect();
    while let Some(driver) = queue.pop_front() {
        queued[driver as usize] = false;
        let Some(request) = request_of[driver as usize] else {
            continue;
        };
        let Some(own_cost) = graph.cost(request, driver) else {
            continue;
        };
        let request_price = own_cost + prices[driver as usize];
        for (other, cost) in graph.row(request) {
            if request_price - cost > prices[other as usize] {
                prices[other as usize] = request_price - cost;
                if !std::mem::replace(&mut queued[other as usize], true) {
                    queue.push_back(other);
                }
            }
        }
    }
    prices
}
