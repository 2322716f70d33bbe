//! A good matching out of a search that was cut.
//!
//! The nodes a cut search has not come to are paired heaviest edge first. That can be worse than
//! doing so for all nodes from nothing, as bids in progress hold nodes that others need more, so
//! both are made and the one that saves more is kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::side::{FREE, Side};
use super::weight::Weight;
use crate::budget::Meter;

/// Units of work for one step of the heap.
const HEAP_UNITS: usize = 16;

/// Pairs free nodes: the better of completing the matching of two sides and starting afresh. `near`
/// has its edges. Left as far as it is when the whole budget is over.
pub(crate) fn improve<W: Weight>(near: &mut Side<W>, far: &mut Side<W>, meter: &mut Meter<'_>) {
    let (completed, added) = heaviest_first(near, near.mate.clone(), far.len(), meter);
    let (afresh, saved) = heaviest_first(near, vec![FREE; near.len()], far.len(), meter);
    let better = if saved > savings(near, &near.mate) + added {
        afresh
    } else {
        completed
    };
    far.mate.fill(FREE);
    for (node, &mate) in (0..).zip(&better) {
        if let Some(other) = far.mate.get_mut(mate as usize) {
            *other = node;
        }
    }
    near.mate = better;
}

/// Adds edges to a matching, heaviest first (then by index), while both ends are free. Returns it,
/// and what the added pairs save.
fn heaviest_first<W: Weight>(
    near: &mut Side<W>,
    mut mate: Vec<u32>,
    far_nodes: usize,
    meter: &mut Meter<'_>,
) -> (Vec<u32>, i128) {
    let mut added = 0;
    let mut taken = vec![false; far_nodes];
    for &other in mate.iter().filter(|&&other| other != FREE) {
        taken[other as usize] = true;
    }
    // For each node how many of its edges were looked at; the heap holds the heaviest other one.
    let mut looked_at = vec![0_u32; near.len()];
    let mut heap = BinaryHeap::new();
    let mut heaviest_edge = |node: u32, looked_at: &mut [u32], taken: &[bool]| {
        let looked_at = &mut looked_at[node as usize];
        loop {
            let (weight, other) = near.nth_heaviest(node, *looked_at as usize)?;
            if !taken[other as usize] {
                return Some((Reverse(weight.edge(node)), other));
            }
            *looked_at += 1;
        }
    };
    for node in (0..mate.len() as u32).filter(|&node| mate[node as usize] == FREE) {
        if meter.is_over_after(HEAP_UNITS) {
            return (mate, added);
        }
        heap.extend(heaviest_edge(node, &mut looked_at, &taken));
    }
    while let Some((Reverse(entry), other)) = heap.pop() {
        if meter.is_over_after(HEAP_UNITS) {
            break;
        }
        let (weight, node) = W::of_edge(entry);
        if taken[other as usize] {
            heap.extend(heaviest_edge(node, &mut looked_at, &taken));
        } else {
            taken[other as usize] = true;
            mate[node as usize] = other;
            added += i128::from(weight.widen());
        }
    }
    (mate, added)
}

/// What a matching saves against leaving everyone unmatched.
fn savings<W: Weight>(near: &Side<W>, mate: &[u32]) -> i128 {
    let saved = |(node, &mate): (usize, &u32)| {
        let row = near.row(node as u32).iter();
        let mut edges = row.map(|&edge| W::of_edge(edge));
        let edge = edges.find(|&(_, other)| mate != FREE && other == mate);
        edge.map_or(0, |(weight, _)| i128::from(weight.widen()))
    };
    mate.iter().enumerate().map(saved).sum()
}
