//! Rates by cell and slot of the week, from what was seen.

use h3o::CellIndex;

use super::{
    counts::{DemandCounts, Span},
    spread::{Due, Stretch, spread},
    week::{SLOTS, SLOTS_A_DAY, WeekClock, WeekSlot},
};
use crate::{
    decision::{DemandSource, MAX_PHANTOMS, Phantom},
    domain::{Draw, DurationMs, UnixMs},
};

/// How many requests of its own a slot needs before its number of riders counts as much as that of
/// the coarser slots it lies in.
const TRUST_IN_TOTALS: f64 = 20.0;

/// The same for where in the city they stand.
const TRUST_IN_PLACES: f64 = 200.0;

/// Learned demand: how many riders ask, where and when in the week.
///
/// A slot seen once or never says little, so each borrows from coarser ones: any time; this time of
/// day; this time of day on weekdays, or on weekends; this time of the week. At each step the number
/// of riders is a Gamma-Poisson estimate and their places are a Dirichlet-multinomial one, whose
/// prior is the step before (conjugate shrinkage, as in Gelman et al., *Bayesian Data Analysis*,
/// ch. 2 and 5).
#[derive(Debug, Clone, PartialEq)]
pub struct DemandModel {
    clock: WeekClock,
    span: Span,
    cells: Vec<CellIndex>,
    always: Seen,
    by_time: Vec<Seen>,
    by_kind_of_day: Vec<Seen>,
    by_week: Vec<Seen>,
}

/// What was seen in some slots together.
#[derive(Debug, Clone, PartialEq, Default)]
struct Seen {
    watched_s: f64,
    requests: f64,
    /// Requests by cell (index), rising.
    places: Vec<(u32, f64)>,
}

/// What is expected of a slot.
struct SlotDemand {
    /// Requests a second.
    rate: f64,
    /// Share of each cell.
    shares: Vec<f64>,
}

impl DemandModel {
    /// Works out the rates of what was seen.
    pub fn new(counts: &DemandCounts) -> Self {
        let mut model = Self {
            clock: counts.clock.clone(),
            span: counts.span,
            cells: counts.cells.keys().copied().collect(),
            always: Seen::default(),
            by_time: vec![Seen::default(); SLOTS_A_DAY],
            by_kind_of_day: vec![Seen::default(); 2 * SLOTS_A_DAY],
            by_week: vec![Seen::default(); SLOTS],
        };
        for (slot, watched) in (0u16..).zip(&counts.watched) {
            if let Some(slot) = WeekSlot::new(slot) {
                for seen in model.levels_mut(slot) {
                    seen.watched_s += watched.as_seconds();
                }
            }
        }
        for (cell, slots) in (0u32..).zip(counts.cells.values()) {
            for (&slot, &count) in slots {
                for seen in model.levels_mut(slot) {
                    seen.add(cell, f64::from(count));
                }
            }
        }
        model
    }

    /// When the demand was recorded that it was learned from.
    pub const fn learned_from(&self) -> Span {
        self.span
    }

    fn levels_mut(&mut self, slot: WeekSlot) -> [&mut Seen; 4] {
        [
            &mut self.always,
            &mut self.by_time[slot.of_day()],
            &mut self.by_kind_of_day[kind_of_day(slot)],
            &mut self.by_week[slot.index()],
        ]
    }

    /// From the coarsest to the slot itself.
    fn levels(&self, slot: WeekSlot) -> [&Seen; 4] {
        [
            &self.always,
            &self.by_time[slot.of_day()],
            &self.by_kind_of_day[kind_of_day(slot)],
            &self.by_week[slot.index()],
        ]
    }

    fn slot(&self, slot: WeekSlot) -> SlotDemand {
        let [always, finer @ ..] = self.levels(slot);
        let mut rate = ratio(always.requests, always.watched_s);
        let mut shares = vec![0.0; self.cells.len()];
        for &(cell, count) in &always.places {
            shares[cell as usize] = ratio(count, always.requests);
        }
        for seen in finer {
            if rate > 0.0 {
                let prior_s = TRUST_IN_TOTALS / rate;
                rate = (seen.requests + TRUST_IN_TOTALS) / (seen.watched_s + prior_s);
            }
            let all = seen.requests + TRUST_IN_PLACES;
            for share in &mut shares {
                *share *= TRUST_IN_PLACES / all;
            }
            for &(cell, count) in &seen.places {
                shares[cell as usize] += count / all;
            }
        }
        SlotDemand { rate, shares }
    }

    /// Requests expected from `from` to `to`, by cell.
    fn expected_by_cell(&self, from: UnixMs, to: UnixMs) -> Vec<f64> {
        let mut expected = vec![0.0; self.cells.len()];
        for (slot, part) in self.clock.parts(from, to) {
            let SlotDemand { rate, shares } = self.slot(slot);
            for (expected, share) in expected.iter_mut().zip(shares) {
                *expected += rate * part.as_seconds() * share;
            }
        }
        expected
    }
}

impl DemandSource for DemandModel {
    /// As many as the rates say, each at an instant to come; where that is more than a window takes,
    /// the next ones.
    ///
    /// Time is cut into stretches of `horizon`, each with its requests once for all. So from one
    /// window to the next they slide, as real ones do: what was planned for them stays planned.
    fn expected(&self, now: UnixMs, horizon: DurationMs) -> Vec<Phantom> {
        if horizon <= DurationMs::ZERO {
            return Vec::new();
        }
        let until = now + horizon;
        let mut due = Vec::new();
        let first = now.get().div_euclid(horizon.get());
        for stretch in [first, first.saturating_add(1)] {
            let from = UnixMs::new(stretch.saturating_mul(horizon.get()));
            let to = from + horizon;
            let stretch = Stretch {
                cells: &self.cells,
                by_cell: &self.expected_by_cell(from, to),
                from,
                to,
            };
            let draw = Draw::new(0, "expected demand").number(from.get().unsigned_abs());
            let spread = spread(stretch, draw).into_iter();
            due.extend(spread.filter(|due| due.at > now && due.at <= until));
        }
        // of those of one instant the first in the order of cells
        due.sort_by_key(|due| due.at);
        due.truncate(MAX_PHANTOMS);
        due.into_iter().filter_map(Due::phantom).collect()
    }
}

impl Seen {
    fn add(&mut self, cell: u32, count: f64) {
        self.requests += count;
        match self.places.last_mut() {
            Some((last, sum)) if *last == cell => *sum += count,
            _ => self.places.push((cell, count)),
        }
    }
}

/// Index of the slots of the same time of day on the same kind of day.
fn kind_of_day(slot: WeekSlot) -> usize {
    slot.of_day() + usize::from(slot.on_weekend()) * SLOTS_A_DAY
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests;
