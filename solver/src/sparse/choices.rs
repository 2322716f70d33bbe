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

impl<W: Weight> Choices<W> {
    pub(crate) fn new(near_nodes: usize) -> Self {
        Self {
            kept: vec![[W::TOP.entry(FREE); KEPT]; near_nodes],
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
        let prices = &*far.price;
        // How far the worth of the best edges falls short of the top, and their far nodes. The
        // order of two edges at present prices is a coin toss: branches would be guessed wrong.
        let mut least = [W::TOP.entry(FREE); KEPT + 1];
        near.look(node, |edge| {
            let (short, other) = W::short_of_top(edge);
            if short >= W::of_entry(least[KEPT]).0 {
                return ControlFlow::Break(());
            }
            let mut entry = (short + prices[other as usize]).entry(other);
            for place in &mut least {
                (*place, entry) = (entry.min(*place), entry.max(*place));
            }
            ControlFlow::Continue(())
        });
        let kept = &mut self.kept[node as usize];
        for (edge, &entry) in kept.iter_mut().zip(&least) {
            let (short, other) = W::of_entry(entry);
            let price = prices.get(other as usize).copied().unwrap_or(W::ZERO);
            *edge = (short - price).entry(other);
        }
        self.rest[node as usize] = W::TOP - W::of_entry(least[KEPT]).0;
    }
}

#[inline]
fn best_of<W: Weight>(edges: &[W::Packed; KEPT], far: &Side<W>) -> Best<W> {
    let [mut first, mut second] = [W::TOP.entry(FREE); 2];
    for &edge in edges {
        let (short, other) = W::short_of_top(edge);
        let price = far.price.get(other as usize).copied().unwrap_or(W::ZERO);
        let entry = (short + price).entry(other);
        (first, second) = (entry.min(first), second.min(entry.max(first)));
    }
    let worth = |entry| {
        let (short, node) = W::of_entry(entry);
        if short < W::TOP {
            (W::TOP - short, node)
        } else {
            (W::ZERO, FREE)
        }
    };
    let ((first, first_node), (second, second_node)) = (worth(first), worth(second));
    Best {
        first,
        first_node,
        second,
        second_node,
    }
}
