//! A good matching out of a search that was cut.
//!
//! The requests a cut search has not come to are given drivers heaviest edge first. That can be
//! worse than doing so for all requests from nothing, as bids in progress hold drivers that others
//! need more, so both are made and the one that saves more is kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::side::{FREE, Side};
use super::weight::Weight;
use crate::budget::Meter;

/// Units of work for one step of the heap.
const HEAP_UNITS: usize = 16;

/// Gives free drivers to unmatched requests: the better of completing the matching in `requests`
/// and starting afresh. Left as far as it is when the whole budget is over.
pub(crate) fn improve<W: Weight>(requests: &mut Side<W>, drivers: usize, meter: &mut Meter<'_>) {
    let completed = heaviest_first(requests, requests.mate.clone(), drivers, meter);
    let afresh = heaviest_first(requests, vec![FREE; requests.len()], drivers, meter);
    let better = if savings(requests, &afresh) > savings(requests, &completed) {
        afresh
    } else {
        completed
    };
    requests.mate = better;
}

/// Adds edges to a matching, heaviest first (then by request and driver), while both ends are free.
fn heaviest_first<W: Weight>(
    requests: &mut Side<W>,
    mut mate: Vec<u32>,
    drivers: usize,
    meter: &mut Meter<'_>,
) -> Vec<u32> {
    let mut taken = vec![false; drivers];
    for &driver in mate.iter().filter(|&&driver| driver != FREE) {
        taken[driver as usize] = true;
    }
    // For each request how many of its edges were looked at; the heap holds the heaviest other one.
    let mut looked_at = vec![0_u32; requests.len()];
    let mut heap = BinaryHeap::new();
    let mut heaviest_edge = |request: u32, looked_at: &mut [u32], taken: &[bool]| {
        let looked_at = &mut looked_at[request as usize];
        loop {
            let (weight, driver) = requests.nth_heaviest(request, *looked_at as usize)?;
            if !taken[driver as usize] {
                return Some((Reverse(weight.edge(request)), driver));
            }
            *looked_at += 1;
        }
    };
    for request in (0..mate.len() as u32).filter(|&r| mate[r as usize] == FREE) {
        heap.extend(heaviest_edge(request, &mut looked_at, &taken));
    }
    while let Some((Reverse(entry), driver)) = heap.pop() {
        if meter.is_over_after(HEAP_UNITS) {
            break;
        }
        let (_, request) = W::of_edge(entry);
        if taken[driver as usize] {
            heap.extend(heaviest_edge(request, &mut looked_at, &taken));
        } else {
            taken[driver as usize] = true;
            mate[request as usize] = driver;
        }
    }
    mate
}

/// What a matching saves against leaving everyone unmatched.
fn savings<W: Weight>(requests: &Side<W>, mate: &[u32]) -> i128 {
    let saved = |(request, &driver): (usize, &u32)| {
        let mut row = requests
            .row(request as u32)
            .iter()
            .map(|&edge| W::of_edge(edge));
        let edge = row.find(|&(_, other)| driver != FREE && other == driver);
        edge.map_or(0, |(weight, _)| i128::from(weight.widen()))
    };
    mate.iter().enumerate().map(saved).sum()
}
