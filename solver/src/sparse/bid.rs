//! First prices and pairs, cheaply: near nodes bid for far nodes.
//!
//! A near node without a pair takes the far node that is best for it at present prices, raises that
//! node's price until its second choice (or staying unmatched) is as good, and so makes the node
//! that held it bid again. This is the augmenting row reduction of Jonker & Volgenant (1987), an
//! auction with ε = 0 (Bertsekas 1979): reduced costs stay ≥ 0, pairs stay tight, and only matched
//! far nodes have prices above 0, so the searches can go on from there. What it leaves unmatched
//! because bids no longer rise, the searches settle.

use super::side::{FREE, Side};
use super::weight::Weight;
use crate::budget::Meter;

/// Number of passes over the nodes left unmatched.
const PASSES: usize = 2;

/// Bids a node may cause in one pass on average, before what is left goes to the searches.
const BIDS_PER_NODE: usize = 8;

/// Lets near nodes bid. Returns those that are still to be made whole, or nothing when the search
/// has to end.
pub(crate) fn bid<W: Weight>(
    near: &mut Side<W>,
    far: &mut Side<W>,
    mut open: Vec<u32>,
    meter: &mut Meter<'_>,
) -> Option<Vec<u32>> {
    for _ in 0..PASSES {
        let mut bids_left = BIDS_PER_NODE * open.len();
        let mut left = Vec::new();
        for node in open {
            let mut bidder = node;
            loop {
                if meter.search_is_over_after(16) {
                    return None;
                }
                let (displaced, raised) = place_bid(near, far, bidder);
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

/// One bid. Returns the near node that lost its pair, or [`FREE`], and whether the price rose.
fn place_bid<W: Weight>(near: &mut Side<W>, far: &mut Side<W>, node: u32) -> (u32, bool) {
    // Staying unmatched is worth 0.
    let (mut first, mut second) = (W::ZERO, W::ZERO);
    let (mut first_node, mut second_node) = (FREE, FREE);
    for &edge in near.row(node) {
        let (weight, other) = W::of_edge(edge);
        if weight <= second {
            break;
        }
        let worth = weight - far.price[other as usize];
        if worth > first {
            (second, second_node) = (first, first_node);
            (first, first_node) = (worth, other);
        } else if worth > second {
            (second, second_node) = (worth, other);
        }
    }
    near.price[node as usize] = second;
    if first_node == FREE {
        return (FREE, false);
    }
    let raised = first > second;
    if !raised && second_node != FREE && far.mate[first_node as usize] != FREE {
        first_node = second_node;
    }
    far.price[first_node as usize] += first - second;
    near.mate[node as usize] = first_node;
    let displaced = std::mem::replace(&mut far.mate[first_node as usize], node);
    if displaced != FREE {
        near.mate[displaced as usize] = FREE;
    }
    (displaced, raised)
}
