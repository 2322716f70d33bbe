//! Many augmenting paths at once: one search from all open nodes, then disjoint paths.
//!
//! Where many edges cost the same, the nearest terminals of many nodes lie at the same distance, and
//! searches one by one go over the same plateau again and again. A phase finds the distance of the
//! nearest terminal from all open nodes together, moves prices by it, and then flips as many paths
//! of tight edges as it can find by depth-first search, no two of which share a node (Hopcroft &
//! Karp 1973 for equal costs; Gabow & Tarjan 1989 with prices).

use super::search::Search;
use super::side::{FREE, Side};
use super::weight::Weight;
use crate::budget::Meter;

impl<W: Weight> Search<W> {
    /// Makes at least one of the unmatched near nodes `open`, whose prices are above 0, whole, and
    /// all others that can be by disjoint paths of the same length. Returns those that are left.
    ///
    /// Nothing when the search had to end first; then pairs are tight all the same.
    pub(crate) fn augment_many(
        &mut self,
        near: &mut Side<W>,
        far: &mut Side<W>,
        open: Vec<u32>,
        meter: &mut Meter<'_>,
    ) -> Option<Vec<u32>> {
        let over = self.settle(near, far, &open, meter);
        if !over {
            self.move_prices(near, far, &open);
        }
        self.clear();
        if over {
            return None;
        }
        let mut paths = Paths {
            passed: vec![false; far.len()],
            path: Vec::new(),
        };
        let mut left = Vec::new();
        for root in open {
            let looked_at = paths.flip_from(near, far, root);
            self.work += looked_at;
            if near.mate[root as usize] == FREE && near.price[root as usize] > W::ZERO {
                left.push(root);
            }
            if meter.search_is_over_after(looked_at) {
                return None;
            }
        }
        Some(left)
    }
}

/// Depth-first search over tight edges that passes each far node once.
struct Paths {
    passed: Vec<bool>,
    /// The near nodes from the root on, and how many edges of each were looked at.
    path: Vec<(u32, usize)>,
}

impl Paths {
    /// Looks for a path from a near node to a free far node or to a near node at price 0, and flips
    /// it. Returns how many edges it looked at.
    fn flip_from<W: Weight>(&mut self, near: &mut Side<W>, far: &mut Side<W>, root: u32) -> usize {
        let mut looked_at = 0;
        self.path.clear();
        self.path.push((root, 0));
        while let Some((node, place)) = self.path.last_mut() {
            let node = *node;
            let price = near.price[node as usize];
            if price == W::ZERO {
                self.flip(near, far, FREE);
                break;
            }
            // Far prices are ≥ 0 and later edges weigh less, so none of those is tight.
            let edge = near.nth_heaviest(node, *place);
            let Some((weight, other)) = edge.filter(|&(weight, _)| weight >= price) else {
                self.path.pop();
                continue;
            };
            *place += 1;
            looked_at += 1;
            let tight = weight - price == far.price[other as usize];
            if !tight || std::mem::replace(&mut self.passed[other as usize], true) {
                continue;
            }
            match far.mate[other as usize] {
                FREE => {
                    self.flip(near, far, other);
                    break;
                }
                mate => self.path.push((mate, 0)),
            }
        }
        looked_at
    }

    /// The last near node of the path takes a far node, or none, and each before it what the next
    /// one had.
    fn flip<W: Weight>(&self, near: &mut Side<W>, far: &mut Side<W>, mut take: u32) {
        for &(node, _) in self.path.iter().rev() {
            if let Some(mate) = far.mate.get_mut(take as usize) {
                *mate = node;
            }
            take = std::mem::replace(&mut near.mate[node as usize], take);
        }
    }
}
