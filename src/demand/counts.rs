//! What was seen: requests by cell and slot of the week, and how long each slot was watched.

use std::collections::BTreeMap;

use h3o::{CellIndex, LatLng, Resolution};

use super::week::{SLOTS, WeekClock, WeekSlot};
use crate::domain::{DurationMs, Place, UnixMs};

/// Resolution of the cells: hexagons of about 0.17 km side, half a minute's drive across.
pub(super) const MODEL_RESOLUTION: Resolution = Resolution::Nine;

/// A stretch without any request from which on the recording is taken to have a gap there, rather
/// than the riders.
const GAP: DurationMs = DurationMs::new(6 * 3600 * 1000);

/// The time that demand was recorded over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its start.
    pub from: UnixMs,
    /// Its end.
    pub to: UnixMs,
}

impl Span {
    /// Whether two spans have time in common.
    pub fn meets(self, other: Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// Requests by cell and slot of the week.
#[derive(Debug, Clone, PartialEq)]
pub struct DemandCounts {
    pub(super) clock: WeekClock,
    pub(super) span: Span,
    /// How long each slot was watched, [`SLOTS`] of them.
    pub(super) watched: Vec<DurationMs>,
    /// By cell, by slot.
    pub(super) cells: BTreeMap<CellIndex, BTreeMap<WeekSlot, u32>>,
}

impl DemandCounts {
    /// Counts the requests of `span` by `clock`; they come in the order of time. Stretches of over
    /// six hours without any do not count as watched.
    pub fn of(
        clock: WeekClock,
        span: Span,
        requests: impl IntoIterator<Item = (UnixMs, Place)>,
    ) -> Self {
        let mut counts = Self {
            clock,
            span,
            watched: vec![DurationMs::ZERO; SLOTS],
            cells: BTreeMap::new(),
        };
        let mut seen_to = span.from;
        for (at, place) in requests {
            counts.watch(seen_to, at);
            seen_to = seen_to.max(at);
            let slots = counts.cells.entry(model_cell(place)).or_default();
            let count = slots.entry(counts.clock.slot(at)).or_default();
            *count = count.saturating_add(1);
        }
        counts.watch(seen_to, span.to);
        counts
    }

    fn watch(&mut self, from: UnixMs, to: UnixMs) {
        if to - from <= GAP {
            for (slot, part) in self.clock.parts(from, to) {
                self.watched[slot.index()] = self.watched[slot.index()] + part;
            }
        }
    }

    /// When it was recorded.
    pub const fn span(&self) -> Span {
        self.span
    }

    /// Number of requests.
    pub fn requests(&self) -> u64 {
        let slots = self.cells.values().flat_map(BTreeMap::values);
        slots.map(|&count| u64::from(count)).sum()
    }

    /// Number of cells with a request.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// Share of the slots of the week that were watched, in whole or in part.
    pub fn week_share(&self) -> f64 {
        let watched = self.watched.iter().filter(|time| **time > DurationMs::ZERO);
        watched.count() as f64 / SLOTS as f64
    }

    /// Total time that was watched.
    pub fn watched(&self) -> DurationMs {
        let total = self.watched.iter().map(|watched| watched.get()).sum();
        DurationMs::new(total)
    }
}

/// The cell of a place at [`MODEL_RESOLUTION`].
fn model_cell(place: Place) -> CellIndex {
    // a checked place is finite, which is all that h3o asks for; the fallback is never reached
    let point = LatLng::new(place.lat(), place.lng()).unwrap_or_default();
    point.to_cell(MODEL_RESOLUTION)
}

#[cfg(test)]
mod tests;
