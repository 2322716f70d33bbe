//! Looking ahead in a replay: nobody is lost from sight, waiting is bounded, and the truth about
//! trips does not leak.

use kheya::{
    domain::DurationMs,
    replay::{Kpis, Outcome, Policy, Run, Scenario, TripEndError, run},
};
use serde_json::json;

use crate::{
    chance::Chance,
    worlds::by_hand::{car, road_config, trip, world},
};

/// A street of 4 km with more riders than its cars can drive at once.
pub(crate) fn street(seed: u64, more: &serde_json::Value) -> Scenario {
    let mut chance = Chance::new(seed);
    let metres = |chance: &mut Chance| chance.below(4_000) as f64;
    let trips = (0..160)
        .map(|n| {
            let (from, to) = (metres(&mut chance), metres(&mut chance));
            let trip_s = 60.0 + chance.below(200) as f64;
            trip(
                &format!("r{n:03}"),
                chance.below(900_000) as i64,
                from,
                to,
                Some(trip_s),
            )
        })
        .collect();
    let cars: Vec<_> = (0..40)
        .map(|n| car(&format!("d{n:02}"), 0, metres(&mut chance), None))
        .collect();
    world(road_config(more), trips, &cars)
}

pub(crate) fn replayed(scenario: &Scenario) -> Run {
    run(scenario, Policy::Batch, &|_| ()).unwrap()
}

/// Every rider is served or lost, and those that were planned too: after they were, by a car that
/// is near enough, or lost though one was there. Returns how many were planned.
pub(crate) fn planned_end_as_any_other(scenario: &Scenario, run: &Run) -> usize {
    for &(trip, since) in &run.planned {
        match run.outcomes[trip as usize] {
            Outcome::Assigned { at, eta_s, .. } => {
                assert!(at > since);
                assert!(eta_s <= scenario.config.max_pickup_eta_s);
            }
            // it could have been given a car only while it waited
            Outcome::Expired { had_candidate } => assert!(had_candidate),
            Outcome::GaveUp { .. } => panic!("nobody gives up here"),
        }
    }
    let kpis = Kpis::of(scenario, run);
    assert_eq!(kpis.matched + kpis.lost(), scenario.trips.len());
    run.planned.len()
}

#[test]
fn every_planned_request_ends_as_any_other() {
    let mut planned = 0;
    for seed in 0..6 {
        let longest_ms = 20_000;
        let settings = json!({
            "plan_ahead_ms": 60_000, "demand_ahead_ms": 60_000, "max_planned_ms": longest_ms,
        });
        let scenario = street(seed, &settings);
        let run = replayed(&scenario);
        planned += planned_end_as_any_other(&scenario, &run);
        let kpis = Kpis::of(&scenario, &run);
        let ahead = kpis.ahead.clone().unwrap();
        assert_eq!(ahead.planned, run.planned.len());
        assert!((ahead.trip_end_error - 0.3).abs() < 1e-12);
        let said = ahead.in_words();
        assert!(
            said.contains("plan 60 s") && said.contains("σ 0.3"),
            "{said}"
        );
    }
    assert!(planned > 50, "only {planned} requests were planned");
}

#[test]
fn a_run_is_the_same_again_and_an_error_changes_it() {
    let settings = json!({"plan_ahead_ms": 60_000, "demand_ahead_ms": 30_000});
    let scenario = street(1, &settings);
    let outcomes = |scenario: &Scenario| replayed(scenario).outcomes;
    assert_eq!(outcomes(&scenario), outcomes(&scenario.clone()));
    let sure: TripEndError = "0".parse().unwrap();
    let unsure: TripEndError = "1.5".parse().unwrap();
    let [sure, unsure] = [sure, unsure].map(|error| scenario.clone().with_trip_end_error(error));
    assert_ne!(outcomes(&sure), outcomes(&unsure));
    let off = street(1, &json!({}));
    assert!(replayed(&off).planned.is_empty());
    assert_eq!(Kpis::of(&off, &replayed(&off)).ahead, None);
    assert_eq!(off.config.plan_ahead_ms, DurationMs::ZERO);
}
