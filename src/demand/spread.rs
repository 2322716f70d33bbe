//! Expected requests as single ones, spread evenly.
//!
//! Drawn at random, a minute's requests would lie in clumps that say nothing of where the next ones
//! come from. They are taken at even steps instead: cells in their H3 order, which runs through
//! neighbours, each as long as its expected number; every whole step a request (systematic sampling,
//! Madow & Madow 1944). So any run of cells gets its expected number to within one. Instants follow
//! the golden ratio, which spreads those of neighbours over the time ahead.

use h3o::{CellIndex, LatLng, Resolution};

use crate::{
    decision::Phantom,
    domain::{Draw, DurationMs, Place, UnixMs},
    supply::Position,
};

/// A request's place within its cell: the middle of one of its 49 parts at this resolution.
const PLACE_RESOLUTION: Resolution = Resolution::Eleven;

/// Most requests of a stretch, so that no file makes a window late. What a window takes of them is
/// far less: the next ones.
const MOST: usize = 20_000;

/// Fraction of the golden ratio.
const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// Decimals of a degree that a place keeps: a tenth of a metre.
const DEGREE_PARTS: f64 = 1e6;

/// What is expected from one instant to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch<'a> {
    /// Cells, rising.
    pub(super) cells: &'a [CellIndex],
    /// Expected requests of each.
    pub(super) by_cell: &'a [f64],
    /// From this instant on.
    pub(super) from: UnixMs,
    /// Up to this one.
    pub(super) to: UnixMs,
}

/// A request that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    /// When it will be made.
    pub(super) at: UnixMs,
    cell: CellIndex,
    /// Which part of the cell it comes from.
    part: Draw,
}

impl Due {
    /// What a window sees of it.
    pub(super) fn phantom(self) -> Option<Phantom> {
        Some(Phantom {
            at_ms: self.at,
            pickup: Position::new(place_in(self.cell, self.part)?),
            learned: true,
        })
    }
}

/// As many requests as are expected, to within one, in the order of their cells; which ones depends
/// on the draw. Of more than [`MOST`] every so many-th.
pub(super) fn spread(stretch: Stretch<'_>, draw: Draw) -> Vec<Due> {
    let ahead_s = (stretch.to - stretch.from).as_seconds();
    let mut due = Vec::new();
    let mut instant = draw.number(1).unit_f64();
    let total: f64 = stretch.by_cell.iter().sum();
    let step = (total / MOST as f64).max(1.0);
    let mut next = step * draw.unit_f64();
    let mut sum = 0.0;
    for (&cell, &here) in stretch.cells.iter().zip(stretch.by_cell) {
        sum += here;
        while next < sum {
            next += step;
            instant = (instant + GOLDEN).fract();
            due.push(Due {
                at: stretch.from + DurationMs::from_seconds(ahead_s * instant),
                cell,
                part: draw.number(due.len() as u64 + 2),
            });
        }
    }
    due
}

/// A place in a cell.
fn place_in(cell: CellIndex, draw: Draw) -> Option<Place> {
    let parts = cell.children_count(PLACE_RESOLUTION);
    let part = cell.child_at(draw.below(parts as usize) as u64, PLACE_RESOLUTION)?;
    let middle = LatLng::from(part);
    let rounded = |degrees: f64| (degrees * DEGREE_PARTS).round() / DEGREE_PARTS;
    Place::new(rounded(middle.lat()), rounded(middle.lng())).ok()
}
