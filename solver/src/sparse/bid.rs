//! First prices and pairs, cheaply: near nodes bid for far nodes.
//!
//! A near node without a pair takes the far node that is best for it at present prices, raises that
//! node's price until its second choice (or staying unmatched) is as good, and so makes the node
//! that held it bid again.
//!
//! [`bid`] raises by no more than that: the augmenting row reduction of Jonker & Volgenant (1987).
//! Reduced costs stay ≥ 0, pairs stay tight, and only matched far nodes have prices above 0. It does
//! not get far where many want the same few, because bids rise by little or nothing.
//!
//! [`auction`] raises by ε more (Bertsekas 1979), so prices there rise fast to about what they will
//! be. Pairs are then tight only to within ε; those that are not are given up at the end.

use std::ops::ControlFlow;

use super::choices::{Best, Choices};
use super::side::{FREE, Side};
use super::weight::Weight;
use crate::budget::Meter;

/// Passes of [`bid`] over the nodes left unmatched.
const PASSES: usize = 2;

/// Bids a node may cause in one pass of [`bid`] on average before what is left is left.
const BIDS_PER_NODE: usize = 8;

/// Bids of an [`auction`] for each near node of the side, at most.
const AUCTION_BIDS_PER_NODE: usize = 30;

/// First choices of a node that are compared to see what separates them.
const CHOICES_COMPARED: usize = 4;

/// Units of work for one bid.
const BID_UNITS: usize = 16;

/// Lets the near nodes `open` bid. Returns those still unmatched at a price above 0, or nothing
/// when the search has to end.
pub(crate) fn bid<W: Weight>(
    near: &mut Side<W>,
    far: &mut Side<W>,
    choices: &mut Choices<W>,
    mut open: Vec<u32>,
    meter: &mut Meter<'_>,
) -> Option<Vec<u32>> {
    for _ in 0..PASSES {
        let mut bids_left = BIDS_PER_NODE * open.len();
        let mut left = Vec::new();
        for node in open {
            let mut bidder = node;
            loop {
                if meter.search_is_over_after(BID_UNITS) {
                    return None;
                }
                let (displaced, raised) = place_bid(near, far, choices, bidder, W::ZERO);
                if displaced == FREE {
                    break;
                }
                bids_left = bids_left.saturating_sub(1);
                if raised && bids_left > 0 {
                    bidder = displaced;
                } else {
                    left.push(displaced);
                    break;
                }
            }
        }
        open = left;
    }
    Some(open)
}

/// Lets the near nodes `open` bid for prices near the final ones; nothing when the search has to
/// end. Afterwards all pairs are tight and free far nodes may have prices above 0.
pub(crate) fn auction<W: Weight>(
    near: &mut Side<W>,
    far: &mut Side<W>,
    choices: &mut Choices<W>,
    mut open: Vec<u32>,
    epsilon: W,
    meter: &mut Meter<'_>,
) -> Option<()> {
    let mut bids_left = AUCTION_BIDS_PER_NODE * near.len();
    let mut over = false;
    while let Some(node) = open.pop() {
        over = meter.search_is_over_after(BID_UNITS);
        if over || bids_left == 0 {
            break;
        }
        bids_left -= 1;
        let (displaced, _) = place_bid(near, far, choices, node, epsilon);
        if displaced != FREE {
            open.push(displaced);
        }
    }
    keep_tight_pairs(near, far);
    (!over).then_some(())
}

/// What separates one of a near node's first choices from the next, on average; at least 1.
pub(crate) fn usual_step<W: Weight>(near: &mut Side<W>) -> i64 {
    let (mut total, mut steps) = (0_i128, 0_i128);
    for node in 0..near.len() as u32 {
        let compared = near.row(node).len().min(CHOICES_COMPARED);
        if compared == 0 {
            continue;
        }
        let (first, last) = (
            near.nth_heaviest(node, 0),
            near.nth_heaviest(node, compared - 1),
        );
        if let (Some((first, _)), Some((last, _))) = (first, last) {
            total += i128::from((first - last).widen());
            steps += compared as i128 - 1;
        }
    }
    (total / steps.max(1)).max(1) as i64
}

/// One bid. Returns the near node that lost its pair, or [`FREE`], and whether the price rose.
fn place_bid<W: Weight>(
    near: &mut Side<W>,
    far: &mut Side<W>,
    choices: &mut Choices<W>,
    node: u32,
    epsilon: W,
) -> (u32, bool) {
    let Best {
        first,
        mut first_node,
        second,
        second_node,
    } = choices.best(near, far, node);
    near.price[node as usize] = second;
    if first_node == FREE {
        return (FREE, false);
    }
    // Not above what the pair saves, so that no price exceeds the largest weight.
    let raise = (first - second + epsilon).min(first);
    let raised = raise > W::ZERO;
    if !raised && second_node != FREE && far.mate[first_node as usize] != FREE {
        first_node = second_node;
    }
    far.price[first_node as usize] += raise;
    near.mate[node as usize] = first_node;
    let displaced = std::mem::replace(&mut far.mate[first_node as usize], node);
    if displaced != FREE {
        near.mate[displaced as usize] = FREE;
    }
    (displaced, raised)
}

/// Gives every near node the least price that far prices allow, and gives up pairs that are not
/// tight then.
pub(crate) fn keep_tight_pairs<W: Weight>(near: &mut Side<W>, far: &mut Side<W>) {
    for node in 0..near.len() as u32 {
        let mate = near.mate[node as usize];
        let mut best = W::ZERO;
        let mut tight = false;
        near.look(node, |edge| {
            let (weight, other) = W::of_edge(edge);
            if weight < best {
                return ControlFlow::Break(());
            }
            let worth = weight - far.price[other as usize];
            if worth > best {
                best = worth;
                tight = false;
            }
            tight |= worth == best && other == mate;
            ControlFlow::Continue(())
        });
        near.price[node as usize] = best;
        if mate != FREE && !tight {
            near.mate[node as usize] = FREE;
            far.mate[mate as usize] = FREE;
        }
    }
}
