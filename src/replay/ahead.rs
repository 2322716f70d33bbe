//! Looking ahead in a replay: what a live region would know of the trips under way and of the
//! pickups asked for lately, and what waiting for them costs riders.

use std::sync::Arc;

use serde::Serialize;

use super::{Outcome, Policy, Run, Scenario, ScenarioTrip, Spread, TripEndError};
use crate::{
    decision::{DemandSource, DriverSnapshot, Held, MAX_PHANTOMS, Phantom, TripEnd},
    demand::Span,
    domain::{DurationMs, Place, UnixMs},
};

/// A driver on the way to a rider or with one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Driving {
    free_at: UnixMs,
    dropoff: Place,
    /// What the time until it is free is taken for, over what it is.
    error: f64,
}

impl Driving {
    /// A driver who was sent to a trip's rider and is free again at `free_at`.
    pub(super) fn new(
        error: TripEndError,
        seed: u64,
        trip: &ScenarioTrip,
        driver: &DriverSnapshot,
        free_at: UnixMs,
    ) -> Self {
        Self {
            free_at,
            dropoff: trip.dropoff.place(),
            error: error.of(seed, trip.request.id.as_str(), driver.id.as_str()),
        }
    }

    /// Where and when the trip ends, as it is known at `now`: renewed at every window, with an error
    /// on what is left of it.
    pub(super) fn announced(self, now: UnixMs) -> TripEnd {
        let left_s = (self.free_at - now).as_seconds().max(0.0);
        TripEnd {
            place: self.dropoff,
            at_ms: now + DurationMs::from_seconds(left_s * self.error),
        }
    }
}

/// A driver on a trip, as a window that looks ahead sees it.
pub(super) fn on_trip(driver: &DriverSnapshot, end: TripEnd) -> Arc<DriverSnapshot> {
    Arc::new(DriverSnapshot {
        position: None,
        held: Held::OnTrip,
        trip_end: Some(end),
        ..driver.clone()
    })
}

/// The trips asked for so far, by time.
pub(super) struct Asked<'a>(pub(super) &'a [ScenarioTrip]);

impl DemandSource for Asked<'_> {
    fn expected(&self, now: UnixMs, horizon: DurationMs) -> Vec<Phantom> {
        let Self(trips) = self;
        let from = now - horizon;
        let recent = trips.partition_point(|trip| trip.request.requested_at_ms <= from);
        let recent = &trips[recent.max(trips.len().saturating_sub(MAX_PHANTOMS))..];
        let phantom = |trip: &ScenarioTrip| {
            trip.request.pickup.map(|pickup| Phantom {
                learned: false,
                at_ms: trip.request.requested_at_ms,
                pickup,
            })
        };
        recent.iter().filter_map(phantom).collect()
    }
}

/// What looking ahead was set to and what riders waited for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AheadKpis {
    /// How far ahead drivers were planned who would be free.
    pub plan_ahead_ms: i64,
    /// How long past pickups stood for the next.
    pub demand_ahead_ms: i64,
    /// Whether learned demand stood for the next riders.
    pub learned_demand: bool,
    /// Whether that was learned from the time that was replayed, so that it knew the answer.
    pub learned_from_this: bool,
    /// How badly the ends of trips were known: standard deviation of the logarithm of the time left.
    pub trip_end_error: f64,
    /// Requests that a window planned.
    pub planned: usize,
    /// Those of them that got no driver.
    pub planned_lost: usize,
    /// From the first window that planned a request to its assignment: what planning made riders
    /// wait, of those that got a driver.
    pub planned_wait_s: Spread,
}

impl AheadKpis {
    /// The figures of a run; none where it did not look ahead.
    pub(super) fn of(scenario: &Scenario, run: &Run) -> Option<Self> {
        let config = &scenario.config;
        if run.policy != Policy::Batch || !config.looks_ahead() {
            return None;
        }
        let used = config.demand_ahead_ms > DurationMs::ZERO;
        let learned = scenario.demand_model.as_deref().filter(|_| used);
        let replayed = Span {
            from: scenario.t0,
            to: scenario.last_request(),
        };
        let waits =
            run.planned
                .iter()
                .filter_map(|&(trip, since)| match run.outcomes.get(trip as usize) {
                    Some(Outcome::Assigned { at, .. }) => Some((*at - since).as_seconds()),
                    _ => None,
                });
        let waits: Vec<f64> = waits.collect();
        Some(Self {
            plan_ahead_ms: config.plan_ahead_ms.get(),
            demand_ahead_ms: config.demand_ahead_ms.get(),
            learned_demand: learned.is_some(),
            learned_from_this: learned.is_some_and(|model| model.learned_from().meets(replayed)),
            trip_end_error: scenario.trip_end_error.sigma(),
            planned: run.planned.len(),
            planned_lost: run.planned.len() - waits.len(),
            planned_wait_s: Spread::of(waits),
        })
    }

    /// What was looked ahead to and how well it was known: what every figure names.
    pub fn in_words(&self) -> String {
        let seconds = |ms: i64| ms as f64 / 1000.0;
        format!(
            "looking ahead: plan {} s, demand {} s{}, trip-end error σ {} on the time left",
            seconds(self.plan_ahead_ms),
            seconds(self.demand_ahead_ms),
            self.source_in_words(),
            self.trip_end_error
        )
    }

    /// What stood for the next riders, if not those asked for lately.
    const fn source_in_words(&self) -> &'static str {
        match (self.learned_demand, self.learned_from_this) {
            (false, _) => "",
            (true, false) => " learned",
            (true, true) => " learned (from this very demand: no measure of other days)",
        }
    }

    /// What riders waited for it, in a sentence without its full stop.
    pub fn wait_in_words(&self) -> String {
        let wait = &self.planned_wait_s;
        match (wait.mean, wait.p95, wait.max) {
            (Some(mean), Some(p95), Some(max)) => format!(
                "{} requests planned; from the first plan to the car {mean:.1} s mean, {p95:.1} s p95, {max:.1} s at most; {} of them lost",
                self.planned, self.planned_lost
            ),
            _ if self.planned == 0 => "no request was planned".into(),
            _ => format!("{} requests planned, none of them served", self.planned),
        }
    }
}
