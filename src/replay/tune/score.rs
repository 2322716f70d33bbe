//! What a run gave in each block of request time.

use super::grid::Grid;
use crate::{
    domain::DurationMs,
    replay::{Outcome, Run, Scenario, Spread},
};

/// Sums over the scored requests of one block.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct BlockSums {
    /// Requests.
    pub(super) requests: u32,
    /// Those that got a driver.
    pub(super) matched: u32,
    /// Those who gave up.
    pub(super) gave_up: u32,
    /// Seconds of waiting, a lost rider counted.
    pub(super) cost_s: f64,
    /// Seconds of driving to pickups.
    pub(super) eta_s: f64,
    /// Straight kilometres of the matched trips.
    pub(super) trip_km: f64,
}

/// What one run gave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunScore {
    /// By block.
    pub(super) blocks: Vec<BlockSums>,
    /// Request to arrival of the scored matched requests.
    pub(super) wait_s: Spread,
    /// Request to assignment.
    pub(super) assign_delay_s: Spread,
    /// Assignment to arrival.
    pub(super) pickup_eta_s: Spread,
    /// Offers that drivers declined, in the whole run.
    pub(super) declined: u64,
}

impl RunScore {
    /// Scores a run; a lost rider costs `lost_s`.
    pub(super) fn of(grid: &Grid, scenario: &Scenario, run: &Run, lost_s: f64) -> Self {
        let mut blocks = vec![BlockSums::default(); grid.blocks];
        let (mut wait_s, mut delay_s, mut eta_s) = (Vec::new(), Vec::new(), Vec::new());
        for (trip, outcome) in scenario.trips.iter().zip(&run.outcomes) {
            let requested_at = trip.request.requested_at_ms;
            let Some(block) = grid.block_of(requested_at) else {
                continue;
            };
            let sums = &mut blocks[block];
            sums.requests += 1;
            sums.gave_up += u32::from(matches!(outcome, Outcome::GaveUp { .. }));
            if let Outcome::Assigned { at, eta_s: eta, .. } = *outcome {
                let delay = DurationMs::as_seconds(at - requested_at);
                sums.matched += 1;
                sums.cost_s += delay + eta;
                sums.eta_s += eta;
                sums.trip_km += trip.straight_km;
                wait_s.push(delay + eta);
                delay_s.push(delay);
                eta_s.push(eta);
            } else {
                sums.cost_s += lost_s;
            }
        }
        Self {
            blocks,
            wait_s: Spread::of(wait_s),
            assign_delay_s: Spread::of(delay_s),
            pickup_eta_s: Spread::of(eta_s),
            declined: run.declined,
        }
    }
}

/// The mean of each figure over runs that have it.
pub(super) fn mean_spread<'a>(spreads: &(impl Iterator<Item = &'a Spread> + Clone)) -> Spread {
    let mean = |figure: fn(&Spread) -> Option<f64>| {
        let known: Vec<f64> = spreads.clone().filter_map(figure).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    Spread {
        mean: mean(|s| s.mean),
        p50: mean(|s| s.p50),
        p90: mean(|s| s.p90),
        p95: mean(|s| s.p95),
        max: mean(|s| s.max),
    }
}
