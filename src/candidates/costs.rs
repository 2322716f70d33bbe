//! What a pair costs, in seconds so that every term means time, rounded once to milliseconds.

use crate::{
    config::RegionValues,
    decision::{DriverSnapshot, Phantom, RequestSnapshot},
    domain::{CostMs, DurationMs, UnixMs},
};

/// Cost of sending `driver` to a rider `eta_s` away:
/// `eta_s + (1 − acceptance_rate) × redispatch_s − idle_weight × min(idle_s, idle_cap_s)`.
/// It may be negative and is never clamped.
pub fn pair_cost(
    config: &RegionValues,
    driver: &DriverSnapshot,
    eta_s: f64,
    now: UnixMs,
) -> CostMs {
    let idle_s = driver
        .idle_since_ms
        .map_or(0.0, |since| (now - since).as_seconds().max(0.0));
    CostMs::from_seconds(
        with_refusal(config, driver, eta_s) - config.idle_weight * idle_s.min(config.idle_cap_s),
    )
}

/// The same for a driver who is not free yet, `eta_s` counted until it reaches the rider: whoever
/// drives is not idle, whatever was told of it before its trip.
pub fn planned_cost(config: &RegionValues, driver: &DriverSnapshot, eta_s: f64) -> CostMs {
    CostMs::from_seconds(with_refusal(config, driver, eta_s))
}

fn with_refusal(config: &RegionValues, driver: &DriverSnapshot, eta_s: f64) -> f64 {
    let refusal = 1.0 - driver.acceptance_rate.unwrap_or(1.0);
    eta_s + refusal * config.redispatch_s
}

/// Cost of leaving `request` unmatched: `max_pickup_eta_s + redispatch_s + age_weight × age_s`, the
/// client's own price in place of the first two terms.
///
/// Where the client allows a longer pickup than the region, its limit counts, since otherwise none
/// of the pairs it asks for would be worth it; a shorter limit does not lower a rider's priority.
pub fn unmatched_cost(config: &RegionValues, request: &RequestSnapshot, age: DurationMs) -> CostMs {
    let longest_eta_s = request
        .max_pickup_eta_s
        .unwrap_or(0.0)
        .max(config.max_pickup_eta_s);
    let base_s = request
        .unmatched_cost_s
        .unwrap_or(longest_eta_s + config.redispatch_s);
    CostMs::from_seconds(base_s + config.age_weight * age.as_seconds())
}

/// What leaving a phantom without a car costs: `phantom_unmatched_s`, or for a learned one as much as
/// for a rider who has just asked.
///
/// What the weight is worth to either kind is measured in docs/PERFORMANCE.md.
pub fn phantom_unmatched_cost(config: &RegionValues, phantom: &Phantom) -> CostMs {
    CostMs::from_seconds(if phantom.learned {
        config.max_pickup_eta_s + config.redispatch_s
    } else {
        config.phantom_unmatched_s
    })
}
