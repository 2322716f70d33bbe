//! The two greedy rules: what dispatch does without an optimizer.
//!
//! Both are valid matchings for any graph, so they serve as counterfactuals ("what would greedy
//! have cost?") and, cheapest edge first, as an incumbent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Graph;
use crate::budget::{Deadline, Meter};

/// Units of work for sorting one edge of a row, and for one step of the heap.
const SORT_UNITS: usize = 6;
const HEAP_UNITS: usize = 16;

/// Cheapest edge first: takes edges by (cost, request, driver) while both ends are free.
///
/// Only edges that cost less than leaving the request unmatched. Returns the driver of each
/// request. O(E log E).
pub fn greedy_edge(graph: &Graph) -> Vec<Option<u32>> {
    let never = Deadline::start(None, graph.requests(), graph.edges());
    greedy_edge_until(graph, &mut Meter::new(&never))
}

/// As [`greedy_edge`], but leaves off with the pairs taken so far when the search has to end.
///
/// Each row is sorted apart and a heap holds the next edge of every unmatched request, so edges of
/// matched requests are never looked at and there is no long sort that could not be left.
pub(crate) fn greedy_edge_until(graph: &Graph, meter: &mut Meter<'_>) -> Vec<Option<u32>> {
    let mut driver_of = vec![None; graph.requests()];
    let mut edges: Vec<(i64, u32)> = Vec::with_capacity(graph.edges());
    let mut rows = Vec::with_capacity(graph.requests());
    for request in 0..graph.requests() {
        if meter.search_is_over_after(graph.row_slices(request).0.len() * SORT_UNITS + 1) {
            return driver_of;
        }
        let start = edges.len();
        let useful = graph
            .row(request)
            .filter(|&(_, cost)| cost < graph.unmatched_cost(request));
        edges.extend(useful.map(|(driver, cost)| (cost, driver)));
        edges[start..].sort_unstable();
        rows.push(start..edges.len());
    }

    let mut taken = vec![false; graph.drivers()];
    let mut next_edge = |request: u32| {
        let edge = rows[request as usize].next()?;
        Some(Reverse((edges[edge].0, request, edges[edge].1)))
    };
    let mut heap: BinaryHeap<_> = (0..graph.requests() as u32)
        .filter_map(&mut next_edge)
        .collect();
    while let Some(Reverse((_, request, driver))) = heap.pop() {
        if meter.search_is_over_after(HEAP_UNITS) {
            break;
        }
        if taken[driver as usize] {
            heap.extend(next_edge(request));
        } else {
            taken[driver as usize] = true;
            driver_of[request as usize] = Some(driver);
        }
    }
    driver_of
}

/// Oldest request first: requests in index order, each takes its cheapest free driver.
///
/// Only edges that cost less than leaving the request unmatched; among equally cheap drivers the
/// lowest index. Returns the driver of each request. O(R + D + E).
pub fn greedy_oldest(graph: &Graph) -> Vec<Option<u32>> {
    let mut taken = vec![false; graph.drivers()];
    let choose = |request: usize| {
        let free = graph.row(request).filter(|&(driver, cost)| {
            !taken[driver as usize] && cost < graph.unmatched_cost(request)
        });
        let chosen = free
            .min_by_key(|&(driver, cost)| (cost, driver))
            .map(|(driver, _)| driver);
        if let Some(driver) = chosen {
            taken[driver as usize] = true;
        }
        chosen
    };
    (0..graph.requests()).map(choose).collect()
}
