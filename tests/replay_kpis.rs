//! The figures of a replay, each worked out by hand on a world of three trips.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use kheya::replay::{self, Kpis, Outcome, Policy, Scenario, SolveTimes, Spread};
use serde_json::json;
use worlds::by_hand::{at, car, road_config, trip, world};

fn kpis(scenario: &Scenario, policy: Policy) -> Kpis {
    Kpis::of(scenario, &replay::run(scenario, policy, &|_| ()).unwrap())
}

fn close(found: Option<f64>, wanted: f64) {
    let found = found.unwrap();
    assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
}

fn spread(found: &Spread, [mean, p50, p90, p95, max]: [f64; 5]) {
    close(found.mean, mean);
    close(found.p50, p50);
    close(found.p90, p90);
    close(found.p95, p95);
    close(found.max, max);
}

/// Windows of 3 s, at most 6 s of waiting, 10 m a second.
///
/// - a asks at 0 s, is assigned d1, 100 m away, at 3 s, picked up at 13 s, and rides 2 km for 200 s;
/// - b asks at 10 s while no car is free, and is gone at 18 s;
/// - c asks at 121 s, is assigned d2, 200 m away, at 123 s, picked up at 143 s, and rides 3 km, which
///   has no recorded time.
fn three_trips() -> Scenario {
    let trips = vec![
        trip("a", 0, 0.0, 2000.0, Some(200.0)),
        trip("b", 10_000, 5000.0, 6000.0, Some(50.0)),
        trip("c", 121_000, 2300.0, 5300.0, None),
    ];
    let fleet = [
        car("d1", -50_000, 100.0, None),
        car("d2", 60_000, 2500.0, None),
    ];
    world(road_config(&json!({"max_wait_ms": 6000})), trips, &fleet)
}

#[test]
fn every_figure_of_a_world_of_three_trips() {
    let scenario = three_trips();
    for policy in [Policy::Batch, Policy::GreedyEdge, Policy::Greedy] {
        let kpis = kpis(&scenario, policy);
        assert_eq!(
            (kpis.policy, kpis.window_ms, kpis.drivers),
            (policy.name(), 3000, 2)
        );
        assert_eq!((kpis.requests, kpis.matched, kpis.expired), (3, 2, 1));
        assert_eq!(kpis.expired_with_candidates, 0);
        close(kpis.match_rate, 2.0 / 3.0);
        spread(&kpis.pickup_eta_s, [15.0, 15.0, 19.0, 19.5, 20.0]);
        spread(&kpis.assign_delay_s, [2.5, 2.5, 2.9, 2.95, 3.0]);
        spread(&kpis.wait_s, [17.5, 17.5, 21.1, 21.55, 22.0]);
        // 13 + 22 of the served, 6 + 900 of the lost
        close(kpis.rider_cost_s, 941.0 / 3.0);
        close(Some(kpis.empty_km), 0.3);
        close(Some(kpis.paid_km), 5.0);
        close(kpis.empty_km_share, 0.3 / 5.3);
        // up to c's request at 121 s: d1 from the start, not from before it, and d2 from 60 s; a rides
        // from 13 s on, after 10 s of way, and c's car has not left
        close(kpis.utilisation, 108.0 / 182.0);
        close(kpis.en_route_share, 10.0 / 182.0);
        // at 3 s; at 12 s and 15 s for b, gone before 18 s; at 123 s
        assert_eq!(kpis.windows, 4);
        assert_eq!(kpis.solve_ms.max.is_some(), policy == Policy::Batch);
    }
}

#[test]
fn without_windows_nothing_is_waited_for_but_a_car() {
    let kpis = kpis(&three_trips(), Policy::GreedyNow);
    assert_eq!((kpis.window_ms, kpis.windows, kpis.matched), (0, 0, 2));
    spread(&kpis.assign_delay_s, [0.0; 5]);
    spread(&kpis.wait_s, [15.0, 15.0, 19.0, 19.5, 20.0]);
    // a rides from 10 s on
    close(kpis.utilisation, 111.0 / 182.0);
    assert_eq!(kpis.solve_ms, SolveTimes::default());
}

#[test]
fn detours_count_in_kilometres_but_not_in_recorded_times() {
    let mut scenario = three_trips();
    scenario.config = worlds::window_parts::config(&scenario.config, &json!({"detour": 2}));
    let kpis = kpis(&scenario, Policy::Batch);
    // twice as long to each pickup, on roads twice as long
    spread(&kpis.pickup_eta_s, [30.0, 30.0, 38.0, 39.0, 40.0]);
    close(Some(kpis.empty_km), 0.6);
    close(Some(kpis.paid_km), 10.0);
}

#[test]
fn a_lost_rider_who_had_a_candidate_is_counted_as_such() {
    // one car, two riders at once: the nearer is served, the other saw the car and lost it
    let trips = vec![
        trip("near", 0, 10.0, 9000.0, Some(900.0)),
        trip("far", 0, 50.0, 9000.0, Some(900.0)),
    ];
    let config = road_config(&json!({"max_wait_ms": 6000}));
    let scenario = world(config, trips, &[car("d", 0, 0.0, None)]);
    for (policy, wanted) in [
        (Policy::Batch, 1),
        (Policy::GreedyEdge, 1),
        (Policy::Greedy, 0),
    ] {
        let kpis = kpis(&scenario, policy);
        assert_eq!(
            (kpis.expired, kpis.expired_with_candidates),
            (1, wanted),
            "{policy}"
        );
    }
}

#[test]
fn a_world_without_cars_has_no_means_and_no_shares() {
    let trips = vec![trip("r", 0, 0.0, 100.0, None)];
    let scenario = world(road_config(&json!({})), trips, &[]);
    for policy in Policy::ALL {
        let kpis = kpis(&scenario, policy);
        assert_eq!((kpis.matched, kpis.expired), (0, 1));
        assert_eq!(kpis.pickup_eta_s, Spread::default());
        assert_eq!((kpis.empty_km_share, kpis.utilisation), (None, None));
        close(kpis.rider_cost_s, 1500.0);
        close(kpis.match_rate, 0.0);
    }
}

#[test]
fn the_longest_wait_of_a_served_rider_shows_in_the_spread() {
    let trips = vec![trip("r", 0, 0.0, 100.0, None)];
    let config = road_config(&json!({"max_wait_ms": 9000}));
    let scenario = world(config, trips, &[car("d", 8000, 0.0, None)]);
    let run = replay::run(&scenario, Policy::Batch, &|_| ()).unwrap();
    assert!(matches!(run.outcomes[0], Outcome::Assigned { at: t, .. } if t == at(9000)));
    spread(&Kpis::of(&scenario, &run).assign_delay_s, [9.0; 5]);
}

#[test]
fn gains_are_per_cent_of_the_baseline_and_points_of_its_match_rate() {
    let ours = kpis(&three_trips(), Policy::Batch);
    let mut theirs = ours.clone();
    theirs.rider_cost_s = Some(ours.rider_cost_s.unwrap() / 0.75);
    theirs.pickup_eta_s.mean = Some(12.0);
    theirs.match_rate = Some(0.25);
    (theirs.empty_km, theirs.matched) = (0.4, 1);
    let gain = ours.gain_on(&theirs);
    close(gain.rider_cost_pct, 25.0);
    close(gain.pickup_eta_mean_pct, -25.0);
    close(gain.match_rate_pts, 100.0 * (2.0 / 3.0 - 0.25));
    // 0.15 km a trip against 0.4
    close(gain.empty_km_per_trip_pct, 62.5);
    // nothing to compare with is no gain
    theirs.pickup_eta_s.mean = None;
    assert_eq!(ours.gain_on(&theirs).pickup_eta_mean_pct, None);
}
