//! One shortest augmenting path, by Dijkstra over reduced costs.
//!
//! From an unmatched node of the near side whose price is above 0, the search looks for the
//! cheapest way to make it whole: reach an unmatched node of the far side and flip the path to it;
//! or reach a matched near node that can stay unmatched for less, and flip the path so that it is
//! dropped; or stay unmatched itself. Prices are then moved so that every edge looked at keeps a
//! reduced cost ≥ 0 and matched edges keep 0 (Tomizawa 1971; Edmonds & Karp 1972; Jonker &
//! Volgenant 1987 for the early end at the best terminal).
//!
//! Deviation: "stay unmatched" is a terminal of each near node at the distance of its own price,
//! instead of one dummy column a row.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::side::{FREE, Side};
use super::weight::Weight;
use crate::budget::Meter;

/// Units of work for settling a node, beside its edges.
const NODE_UNITS: usize = 8;

/// Work space of the searches from one side, kept between them.
pub(crate) struct Search<W: Weight> {
    /// For each far node the distance found so far.
    distance: Vec<W>,
    /// For each far node with a distance the near node it was reached from.
    reached_from: Vec<u32>,
    /// Far nodes that have a distance.
    reached: Vec<u32>,
    /// Far nodes settled, each matched, in order of distance.
    settled: Vec<u32>,
    heap: BinaryHeap<Reverse<W::Packed>>,
    best: W,
    terminal: Terminal,
    /// Units of work done so far: about the edges looked at.
    pub(crate) work: usize,
}

#[derive(Clone, Copy)]
enum Terminal {
    /// Match a free far node.
    Take(u32),
    /// Leave a near node unmatched.
    Leave(u32),
}

impl<W: Weight> Search<W> {
    /// Work space for a far side of this many nodes.
    pub(crate) fn new(far_nodes: usize) -> Self {
        Self {
            distance: vec![W::INFINITE; far_nodes],
            reached_from: vec![FREE; far_nodes],
            reached: Vec::new(),
            settled: Vec::new(),
            heap: BinaryHeap::new(),
            best: W::INFINITE,
            terminal: Terminal::Leave(FREE),
            work: 0,
        }
    }

    /// Makes the unmatched near node `root` whole: afterwards it is matched or its price is 0.
    ///
    /// True when the search had to end first; then nothing has changed.
    pub(crate) fn augment(
        &mut self,
        near: &mut Side<W>,
        far: &mut Side<W>,
        root: u32,
        meter: &mut Meter<'_>,
    ) -> bool {
        let over = self.settle(near, far, &[root], meter);
        if !over {
            self.move_prices(near, far, &[root]);
            self.flip_path(near, far, root);
        }
        self.clear();
        over
    }

    /// Settles far nodes up to the nearest terminal of any of the roots. True when the search had to
    /// end first.
    pub(super) fn settle(
        &mut self,
        near: &mut Side<W>,
        far: &Side<W>,
        roots: &[u32],
        meter: &mut Meter<'_>,
    ) -> bool {
        self.best = W::INFINITE;
        for &root in roots {
            let units = self.scan(near, far, root, W::ZERO);
            self.work += units;
            if meter.search_is_over_after(units) {
                return true;
            }
        }
        while let Some(Reverse(entry)) = self.heap.pop() {
            let (distance, node) = W::of_entry(entry);
            if distance >= self.best {
                break;
            }
            if distance > self.distance[node as usize] {
                continue;
            }
            self.settled.push(node);
            let mate = far.mate[node as usize];
            let units = self.scan(near, far, mate, distance) + NODE_UNITS;
            self.work += units;
            if meter.search_is_over_after(units) {
                return true;
            }
        }
        false
    }

    /// Looks at the edges of a near node at a distance from the root, as far as they can be of use.
    /// Returns how many it looked at.
    fn scan(&mut self, near: &mut Side<W>, far: &Side<W>, node: u32, distance: W) -> usize {
        let base = distance + near.price[node as usize];
        if base < self.best {
            self.best = base;
            self.terminal = Terminal::Leave(node);
        }
        let mut looked_at = 0;
        let to_top = base - W::TOP;
        near.look(node, |edge| {
            let (short, other) = W::short_of_top(edge);
            let at_least = to_top + short;
            if at_least >= self.best {
                // Far prices are ≥ 0 and later edges weigh less.
                return ControlFlow::Break(());
            }
            looked_at += 1;
            let found = at_least + far.price[other as usize];
            let known = &mut self.distance[other as usize];
            if found >= *known || found >= self.best {
                return ControlFlow::Continue(());
            }
            if *known == W::INFINITE {
                self.reached.push(other);
            }
            *known = found;
            self.reached_from[other as usize] = node;
            if far.mate[other as usize] == FREE {
                self.best = found;
                self.terminal = Terminal::Take(other);
            } else {
                self.heap.push(Reverse(found.entry(other)));
            }
            ControlFlow::Continue(())
        });
        looked_at
    }

    /// Moves prices by the distance of the terminal, so that the paths to it become tight.
    pub(super) fn move_prices(&self, near: &mut Side<W>, far: &mut Side<W>, roots: &[u32]) {
        for &root in roots {
            near.price[root as usize] -= self.best;
        }
        for &node in &self.settled {
            let move_by = self.best - self.distance[node as usize];
            far.price[node as usize] += move_by;
            near.price[far.mate[node as usize] as usize] -= move_by;
        }
    }

    fn flip_path(&self, near: &mut Side<W>, far: &mut Side<W>, root: u32) {
        let mut next = match self.terminal {
            Terminal::Take(node) => node,
            Terminal::Leave(node) if node == root => return,
            Terminal::Leave(node) => std::mem::replace(&mut near.mate[node as usize], FREE),
        };
        loop {
            let from = self.reached_from[next as usize];
            far.mate[next as usize] = from;
            let left = std::mem::replace(&mut near.mate[from as usize], next);
            if from == root {
                return;
            }
            next = left;
        }
    }

    pub(super) fn clear(&mut self) {
        for node in self.reached.drain(..) {
            self.distance[node as usize] = W::INFINITE;
        }
        self.settled.clear();
        self.heap.clear();
    }
}
