//! What a page shows of a replay, gathered in one pass over its outcomes into bins whose number does
//! not depend on the number of trips.
//!
//! Everything but the solve times is the same for the same input, configuration and seed.

use h3o::CellIndex;
use rustc_hash::FxHashMap;

use super::{sketch::Sketch, timeline::Timeline};
use crate::{
    domain::DurationMs,
    replay::{Outcome, Policy, Run, Scenario},
};

/// A replay in bins.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// The bins of request time.
    pub(super) timeline: Timeline,
    /// Requests in each.
    pub(super) requests: Vec<u32>,
    /// One entry a run.
    pub(super) runs: Vec<RunBins>,
    /// Cells with demand, in the order of their index.
    pub(super) cells: Vec<CellBins>,
}

/// One run in bins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunBins {
    /// The rule.
    pub(super) policy: Policy,
    /// Request to arrival of the matched, in seconds.
    pub(super) wait_s: Sketch,
    /// Solve times in milliseconds.
    pub(super) solve_ms: Sketch,
    /// By request time.
    pub(super) times: Vec<TimeBin>,
}

/// Sums over the requests of one bin of request time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct TimeBin {
    /// Requests that got a driver.
    pub(super) matched: u32,
    /// Seconds of driving to their pickups.
    pub(super) eta_s: f64,
    /// Road kilometres of their trips.
    pub(super) paid_km: f64,
}

/// Sums over the requests of one cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellBins {
    /// The cell, at the resolution of the supply index.
    pub(super) cell: CellIndex,
    /// Requests whose pickup lies in it.
    pub(super) requests: u32,
    /// By run.
    pub(super) runs: Vec<CellRun>,
}

/// What a run gave in one cell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CellRun {
    /// Requests that got a driver.
    pub(super) matched: u32,
    /// Seconds of driving to their pickups.
    pub(super) eta_s: f64,
}

impl Collected {
    /// Gathers runs of one scenario. Time: trips × runs. Memory: a fixed number of bins, and one
    /// for each cell with demand, of which a circle of 100 km has 42,000.
    pub fn of(scenario: &Scenario, runs: &[Run]) -> Self {
        let timeline = Timeline::of(scenario.t0, scenario.last_request(), scenario.trips.len());
        let mut requests = vec![0_u32; timeline.bins()];
        let mut gathered: Vec<RunBins> = runs
            .iter()
            .map(|run| RunBins {
                policy: run.policy,
                wait_s: Sketch::new(),
                solve_ms: solve_times(run),
                times: vec![TimeBin::default(); timeline.bins()],
            })
            .collect();
        let mut cells: FxHashMap<CellIndex, CellBins> = FxHashMap::default();
        for (at, trip) in scenario.trips.iter().enumerate() {
            let requested_at = trip.request.requested_at_ms;
            let bin = timeline.bin_of(requested_at);
            requests[bin] += 1;
            let mut cell = trip.request.pickup.map(|pickup| {
                let cell = pickup.cell();
                cells.entry(cell).or_insert_with(|| CellBins {
                    cell,
                    requests: 0,
                    runs: vec![CellRun::default(); runs.len()],
                })
            });
            if let Some(cell) = &mut cell {
                cell.requests += 1;
            }
            for (n, (run, bins)) in runs.iter().zip(&mut gathered).enumerate() {
                let Outcome::Assigned { at, eta_s, .. } = run.outcomes[at] else {
                    continue;
                };
                bins.wait_s
                    .add(DurationMs::as_seconds(at - requested_at) + eta_s);
                let time = &mut bins.times[bin];
                time.matched += 1;
                time.eta_s += eta_s;
                time.paid_km += trip.straight_km * scenario.config.detour;
                if let Some(cell) = &mut cell {
                    cell.runs[n].matched += 1;
                    cell.runs[n].eta_s += eta_s;
                }
            }
        }
        let mut cells: Vec<CellBins> = cells.into_values().collect();
        cells.sort_unstable_by_key(|bins| bins.cell);
        Self {
            timeline,
            requests,
            runs: gathered,
            cells,
        }
    }
}

fn solve_times(run: &Run) -> Sketch {
    let mut sketch = Sketch::new();
    for time in &run.solve_times {
        sketch.add(time.as_secs_f64() * 1000.0);
    }
    sketch
}
