//! What each near node would choose at present prices, without looking at its whole row every time.
//!
//! In a contended place a node bids again and again, and each bid needs its two best edges. Far
//! prices only rise, so an edge is never worth more than it was at the last look. A node therefore
//! keeps its best few edges of the last look, and how much the best of the others was worth then:
//! as long as two of the kept ones are worth that much, they are the two best (the "third best" of
//! Bertsekas & Castañon, "A forward/reverse auction algorithm for asymmetric assignment problems",
//! 1992, with more than two kept).

use std::ops::ControlFlow;

use super::side::{FREE, Side};
use super::weight::Weight;

/// Edges kept for a node.
const KEPT: usize = 3;

/// The choices of the near nodes. Far prices must not fall while it is used.
pub(crate) struct Choices<W: Weight> {
    kept: Vec<[W::Packed; KEPT]>,
    /// For each near node the most that an edge not kept can be worth.
    rest: Vec<W>,
}

/// The two edges that are worth most; staying unmatched is worth 0.
#[derive(Clone, Copy)]
pub(crate) struct Best<W> {
    pub(crate) first: W,
    pub(crate) first_node: u32,
    pub(crate) second: W,
    pub(crate) second_node: u32,
}

impl<W: Weight> Best<W> {
    const UNMATCHED: Self = Self {
        first: W::ZERO,
        first_node: FREE,
        second: W::ZERO,
        second_node: FREE,
    };
}

impl<W: Weight> Choices<W> {
    pub(crate) fn new(near_nodes: usize) -> Self {
        Self {
            kept: vec![[W::ZERO.edge(0); KEPT]; near_nodes],
            rest: vec![W::INFINITE; near_nodes],
        }
    }

    /// The best two edges of a near node at present prices.
    #[inline]
    pub(crate) fn best(&mut self, near: &mut Side<W>, far: &Side<W>, node: u32) -> Best<W> {
        let place = node as usize;
        let best = best_of(&self.kept[place], far);
        if best.second >= self.rest[place] {
            return best;
        }
        self.look(near, far, node);
        best_of(&self.kept[place], far)
    }

    /// Looks at the row and keeps the best edges.
    fn look(&mut self, near: &mut Side<W>, far: &Side<W>, node: u32) {
        let mut worths = [W::ZERO; KEPT + 1];
        let mut edges = [W::ZERO.edge(0); KEPT + 1];
        near.look(node, |weight, other| {
            if weight <= worths[KEPT] {
                return ControlFlow::Break(());
            }
            let worth = weight - far.price[other as usize];
            if worth > worths[KEPT] {
                let mut place = KEPT;
                while place > 0 && worths[place - 1] < worth {
                    worths[place] = worths[place - 1];
                    edges[place] = edges[place - 1];
                    place -= 1;
                }
                worths[place] = worth;
                edges[place] = weight.edge(other);
            }
            ControlFlow::Continue(())
        });
        self.kept[node as usize].copy_from_slice(&edges[..KEPT]);
        self.rest[node as usize] = worths[KEPT];
    }
}

#[inline]
fn best_of<W: Weight>(edges: &[W::Packed; KEPT], far: &Side<W>) -> Best<W> {
    let mut best = Best::UNMATCHED;
    for &edge in edges {
        let (weight, other) = W::of_edge(edge);
        let worth = weight - far.price.get(other as usize).copied().unwrap_or(W::ZERO);
        if worth > best.first {
            (best.second, best.second_node) = (best.first, best.first_node);
            (best.first, best.first_node) = (worth, other);
        } else if worth > best.second {
            (best.second, best.second_node) = (worth, other);
        }
    }
    best
}
