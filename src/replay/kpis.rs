//! What a run was worth: waits, lost riders, empty driving.

use serde::Serialize;

use super::{AheadKpis, Outcome, Policy, Run, Scenario};
use crate::domain::{DurationMs, UnixMs};

/// Mean and quantiles of a time in seconds, of matched requests. All absent when there are none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// Quantiles of the solve times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SolveTimes {
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// The figures of one run. Waits are those of matched requests: compare policies by
/// `rider_cost_s`, in which lost riders count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kpis {
    /// The rule.
    pub policy: &'static str,
    /// Length of its windows; 0 where it has none.
    pub window_ms: i64,
    /// Size of the fleet.
    pub drivers: usize,
    /// Requests replayed.
    pub requests: usize,
    /// Requests that got a driver.
    pub matched: usize,
    /// Requests that waited too long.
    pub expired: usize,
    /// Lost riders who had a candidate in some window.
    pub expired_with_candidates: usize,
    /// Riders who gave up, where riders may: while waiting, or at the ETA they were shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up: Option<usize>,
    /// Those of them who cancelled at the ETA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up_at_eta: Option<usize>,
    /// Offers that drivers declined, where they may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declined: Option<u64>,
    /// Share of requests that got a driver.
    pub match_rate: Option<f64>,
    /// Assignment to arrival, by the ETA.
    pub pickup_eta_s: Spread,
    /// Request to assignment.
    pub assign_delay_s: Spread,
    /// Request to the car's arrival.
    pub wait_s: Spread,
    /// (Σ `wait_s` of matched + lost × (`max_wait_s` + `max_pickup_eta_s`)) ÷ requests.
    pub rider_cost_s: Option<f64>,
    /// Road kilometres driven to pickups.
    pub empty_km: f64,
    /// Road kilometres driven with riders.
    pub paid_km: f64,
    /// `empty_km` ÷ (`empty_km` + `paid_km`).
    pub empty_km_share: Option<f64>,
    /// Σ trip seconds ÷ Σ driver seconds, between the start and the last request.
    pub utilisation: Option<f64>,
    /// The same for the way to the pickup.
    pub en_route_share: Option<f64>,
    /// Windows with at least one pending request.
    pub windows: usize,
    /// Those of them with more pending requests than a snapshot takes.
    pub windows_deferring: usize,
    /// Solve times; absent where nothing was solved.
    pub solve_ms: SolveTimes,
    /// What looking ahead was set to and what it made riders wait; absent where nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<AheadKpis>,
}

/// What batch gained on a baseline; positive is better for batch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Rider cost, per cent of the baseline's.
    pub rider_cost_pct: Option<f64>,
    /// Mean pickup ETA, per cent of the baseline's.
    pub pickup_eta_mean_pct: Option<f64>,
    /// Match rate, in points of a hundred.
    pub match_rate_pts: Option<f64>,
    /// Empty kilometres a matched trip, per cent of the baseline's.
    pub empty_km_per_trip_pct: Option<f64>,
}

impl Kpis {
    /// Works out the figures of a run.
    pub fn of(scenario: &Scenario, run: &Run) -> Self {
        let config = &scenario.config;
        let (mut eta_s, mut delay_s, mut wait_s) = (Vec::new(), Vec::new(), Vec::new());
        let (mut expired, mut expired_with_candidates) = (0, 0);
        let (mut gave_up, mut gave_up_at_eta) = (0, 0);
        let mut paid_km = 0.0;
        for (trip, outcome) in scenario.trips.iter().zip(&run.outcomes) {
            match *outcome {
                Outcome::Assigned { at, eta_s: eta, .. } => {
                    let delay = (at - trip.request.requested_at_ms).as_seconds();
                    eta_s.push(eta);
                    delay_s.push(delay);
                    wait_s.push(delay + eta);
                    paid_km += trip.straight_km * config.detour;
                }
                Outcome::Expired { had_candidate } => {
                    expired += 1;
                    expired_with_candidates += usize::from(had_candidate);
                }
                Outcome::GaveUp { at_eta } => {
                    gave_up += 1;
                    gave_up_at_eta += usize::from(at_eta);
                }
            }
        }
        let (requests, matched) = (scenario.trips.len(), eta_s.len());
        let empty_km = eta_s.iter().sum::<f64>() * config.speed_kmh / 3600.0;
        let lost_s = config.max_wait_ms.as_seconds() + config.max_pickup_eta_s;
        let rider_s = wait_s.iter().sum::<f64>() + (expired + gave_up) as f64 * lost_s;
        let (trip_s, en_route_s, driver_s) = time_use(scenario, run);
        let solve_ms = run
            .solve_times
            .iter()
            .map(|time| time.as_secs_f64() * 1000.0)
            .collect();
        Self {
            policy: run.policy.name(),
            window_ms: run.window.get(),
            drivers: scenario.drivers.len(),
            requests,
            matched,
            expired,
            expired_with_candidates,
            gave_up: scenario.behaviour.patience.map(|_| gave_up),
            gave_up_at_eta: scenario.behaviour.patience.map(|_| gave_up_at_eta),
            declined: scenario.behaviour.acceptance.map(|_| run.declined),
            match_rate: ratio(matched as f64, requests as f64),
            pickup_eta_s: Spread::of(eta_s),
            assign_delay_s: Spread::of(delay_s),
            wait_s: Spread::of(wait_s),
            rider_cost_s: ratio(rider_s, requests as f64),
            empty_km,
            paid_km,
            empty_km_share: ratio(empty_km, empty_km + paid_km),
            utilisation: ratio(trip_s, driver_s),
            en_route_share: ratio(en_route_s, driver_s),
            windows: run.windows.len(),
            windows_deferring: run.windows.iter().filter(|row| row.deferred > 0).count(),
            solve_ms: SolveTimes::of(solve_ms),
            ahead: AheadKpis::of(scenario, run),
        }
    }

    /// Requests that got no driver.
    pub fn lost(&self) -> usize {
        self.expired + self.gave_up.unwrap_or(0)
    }

    /// The policy the figures are of.
    pub fn is_of(&self, policy: Policy) -> bool {
        self.policy == policy.name()
    }

    /// What these figures, those of batch, gain on a baseline's.
    pub fn gain_on(&self, baseline: &Self) -> Gain {
        let pct = |ours: Option<f64>, theirs: Option<f64>| {
            let (ours, theirs) = (ours?, theirs?);
            ratio(100.0 * (theirs - ours), theirs)
        };
        let empty_per_trip = |kpis: &Self| ratio(kpis.empty_km, kpis.matched as f64);
        Gain {
            rider_cost_pct: pct(self.rider_cost_s, baseline.rider_cost_s),
            pickup_eta_mean_pct: pct(self.pickup_eta_s.mean, baseline.pickup_eta_s.mean),
            match_rate_pts: self
                .match_rate
                .zip(baseline.match_rate)
                .map(|(a, b)| 100.0 * (a - b)),
            empty_km_per_trip_pct: pct(empty_per_trip(self), empty_per_trip(baseline)),
        }
    }
}

/// Trip, en-route and driver seconds between the start and the last request.
fn time_use(scenario: &Scenario, run: &Run) -> (f64, f64, f64) {
    let (start, end) = (scenario.t0, scenario.last_request());
    let mut last_busy: Vec<UnixMs> = vec![start; scenario.drivers.len()];
    let (mut trip_ms, mut en_route_ms) = (0, 0);
    for (trip, outcome) in scenario.trips.iter().zip(&run.outcomes) {
        let Outcome::Assigned { driver, at, eta_s } = *outcome else {
            continue;
        };
        let since = start.max(scenario.drivers[driver as usize].from);
        let pickup = at + DurationMs::from_seconds(eta_s);
        let dropoff = pickup + trip.trip;
        en_route_ms += overlap(at, pickup, since, end);
        trip_ms += overlap(pickup, dropoff, since, end);
        let last = &mut last_busy[driver as usize];
        *last = dropoff.max(*last);
    }
    let mut driver_ms = 0;
    for (driver, last_busy) in scenario.drivers.iter().zip(last_busy) {
        // a driver who takes no more assignments still works until its last drop-off
        let until = driver.to.map_or(end, |to| to.max(last_busy).min(end));
        driver_ms += overlap(driver.from, until, start, end);
    }
    (
        trip_ms as f64 / 1000.0,
        en_route_ms as f64 / 1000.0,
        driver_ms as f64 / 1000.0,
    )
}

/// Milliseconds that two intervals share.
fn overlap(from: UnixMs, to: UnixMs, start: UnixMs, end: UnixMs) -> i64 {
    (to.min(end) - from.max(start)).get().max(0)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole != 0.0).then(|| part / whole)
}

impl Spread {
    /// The spread of a list of values.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self {
            mean: ratio(values.iter().sum(), values.len() as f64),
            p50: quantile(&values, 0.5),
            p90: quantile(&values, 0.9),
            p95: quantile(&values, 0.95),
            max: values.last().copied(),
        }
    }
}

impl SolveTimes {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self {
            p50: quantile(&values, 0.5),
            p99: quantile(&values, 0.99),
            max: values.last().copied(),
        }
    }
}

/// A quantile of sorted values, with linear interpolation between neighbours.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let at = q * sorted.len().checked_sub(1)? as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_linearly() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.95), Some(7.0));
        assert_eq!(quantile(&[0.0, 10.0], 0.9), Some(9.0));
        assert_eq!(quantile(&[0.0, 1.0, 2.0, 3.0], 1.0), Some(3.0));
    }

    #[test]
    fn a_share_of_nothing_is_absent() {
        assert_eq!(ratio(0.0, 0.0), None);
        assert_eq!(Spread::of(vec![]), Spread::default());
    }
}
