//! Looking ahead by learned demand, in replays of random streets: the guard rails are those of
//! looking ahead by recent demand.

use std::sync::Arc;

use kheya::{
    demand::{DemandCounts, DemandModel, Span, WeekClock},
    domain::UnixMs,
    replay::Scenario,
};
use serde_json::json;

use crate::replayed::{planned_end_as_any_other, replayed, street};

/// What a street's demand teaches.
fn learned(scenario: &Scenario) -> DemandCounts {
    let requests = scenario.trips.iter().map(|trip| {
        let pickup = trip.request.pickup.unwrap();
        (trip.request.requested_at_ms, pickup.place())
    });
    let asked = || {
        scenario
            .trips
            .iter()
            .map(|trip| trip.request.requested_at_ms)
    };
    let span = Span {
        from: asked().min().unwrap_or(UnixMs::new(0)),
        to: asked().max().unwrap_or(UnixMs::new(0)),
    };
    DemandCounts::of(WeekClock::of("Asia/Dhaka").unwrap(), span, requests)
}

#[test]
fn learned_riders_are_never_given_a_car_and_nobody_is_lost_from_sight() {
    let (mut planned, mut changed) = (0, 0);
    for seed in 0..6 {
        let settings = json!({
            "plan_ahead_ms": 60_000, "demand_ahead_ms": 60_000, "max_planned_ms": 20_000,
        });
        let recent = street(seed, &settings);
        // another day of the same street
        let counts = learned(&street(seed + 100, &settings));
        assert_eq!(counts.requests(), 160);
        let model = Arc::new(DemandModel::new(&counts));
        let scenario = recent.clone().with_demand_model(Some(model));
        let run = replayed(&scenario);
        // as many outcomes as riders: a phantom has none
        assert_eq!(run.outcomes.len(), scenario.trips.len());
        planned += planned_end_as_any_other(&scenario, &run);
        assert_eq!(replayed(&scenario.clone()).outcomes, run.outcomes);
        changed += usize::from(run.outcomes != replayed(&recent).outcomes);
    }
    assert!(planned > 50, "only {planned} requests were planned");
    assert!(changed > 0, "the model changed nothing");
}

#[test]
fn a_model_says_nothing_where_demand_is_not_looked_ahead_to() {
    for settings in [json!({}), json!({"plan_ahead_ms": 60_000})] {
        let without = street(3, &settings);
        let model = Arc::new(DemandModel::new(&learned(&street(4, &settings))));
        let with = without.clone().with_demand_model(Some(model));
        assert_eq!(replayed(&with).outcomes, replayed(&without).outcomes);
    }
}
