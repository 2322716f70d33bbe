//! The greedy rule under constraints: a valid matching from any other, in one pass.

use super::Constraints;
use crate::Graph;

/// A matching that breaks no cap: of `from`, as given, the cheapest pairs that fit; then for floors
/// that are not met the cheapest pairs that they count; then the cheapest pairs worth taking.
///
/// Ties break by (request, driver). `from` is a valid matching of the graph. O(E log E).
pub(crate) fn fill(
    graph: &Graph,
    constraints: &Constraints,
    from: &[Option<u32>],
) -> Vec<Option<u32>> {
    let mut taking = Taking {
        constraints,
        driver_of: vec![None; graph.requests()],
        taken: vec![false; graph.drivers()],
        counts: vec![0; constraints.len()],
    };
    let (mut kept, mut edges) = (Vec::new(), Vec::with_capacity(graph.edges()));
    for request in 0..graph.requests() {
        let own = from.get(request).copied().flatten();
        for (driver, cost) in graph.row(request) {
            let edge = (cost, request as u32, driver);
            if own == Some(driver) {
                kept.push(edge);
            }
            edges.push(edge);
        }
    }
    kept.sort_unstable();
    edges.sort_unstable();
    for &(_, request, driver) in &kept {
        taking.take(request, driver);
    }
    for &(_, request, driver) in &edges {
        if taking.is_asked_for(request, driver) {
            taking.take(request, driver);
        }
    }
    for &(cost, request, driver) in &edges {
        if cost < graph.unmatched_cost(request as usize) {
            taking.take(request, driver);
        }
    }
    taking.driver_of
}

struct Taking<'c> {
    constraints: &'c Constraints,
    driver_of: Vec<Option<u32>>,
    taken: Vec<bool>,
    counts: Vec<u32>,
}

impl Taking<'_> {
    /// Takes a pair if both ends are free and no cap is broken.
    fn take(&mut self, request: u32, driver: u32) {
        let word = self.constraints.word(request as usize, driver);
        let free = self.driver_of[request as usize].is_none() && !self.taken[driver as usize];
        if free && self.constraints.has_room(word, &self.counts) {
            self.driver_of[request as usize] = Some(driver);
            self.taken[driver as usize] = true;
            for index in super::set::bits(word) {
                self.counts[index] += 1;
            }
        }
    }

    /// Whether a floor that counts the pair is not met yet.
    fn is_asked_for(&self, request: u32, driver: u32) -> bool {
        let word = self.constraints.word(request as usize, driver);
        super::set::bits(word)
            .any(|index| self.constraints.shortfall(index, self.counts[index]) > 0)
    }
}
