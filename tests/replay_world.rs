//! The replay's world against one written once more in plain loops, and its boundaries by hand.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use std::sync::atomic::{AtomicU64, Ordering};

use chance::fixed_cases;
use kheya::{
    decision::{PendingRequest, WindowSnapshot, decide_batch},
    domain::{DurationMs, Place},
    eta::StraightLine,
    replay::{
        self, Outcome, Policy, Run, Scenario,
        input::{FleetDriver, Trip},
    },
};
use kheya_solver::Options;
use proptest::{option, prelude::*};
use serde_json::{Value, json};
use worlds::by_hand::{at, car, road_config, trip, world};
use worlds::naive;
use worlds::reference_world::{assert_same, reference};
use worlds::window_parts::{NOW, config, driver_id, request_id};

fn run(scenario: &Scenario, policy: Policy) -> Run {
    replay::run(scenario, policy, &|_| ()).unwrap()
}

/// Few corners, so that cars often stand where riders wait and come free on the very close.
fn corners() -> impl Strategy<Value = Place> {
    let corner = prop_oneof![
        Just((0.0, 0.0)),
        Just((0.004, 0.0031)),
        Just((-0.0072, 0.0055)),
        (-0.02..0.02_f64, -0.02..0.02_f64),
    ];
    corner.prop_map(|(north, east)| Place::new(23.75 + north, 90.39 + east).unwrap())
}

/// Small worlds whose times lie on half seconds: many tie, or fall on a close or on the longest wait.
fn worlds() -> impl Strategy<Value = Scenario> {
    let half_seconds = |most: i64| (0..=most).prop_map(|n| n * 500);
    let trip = (
        half_seconds(50),
        corners(),
        option::of(corners()),
        option::weighted(0.7, (0..40_u32).prop_map(|n| f64::from(n) / 2.0)),
    );
    let driver = (
        half_seconds(30),
        corners(),
        option::weighted(0.3, half_seconds(40)),
    );
    let settings = (
        prop_oneof![Just(500), Just(1000), Just(1500), Just(2500), 500..4000_i64],
        half_seconds(20),
        prop_oneof![
            Just(json!([2, 4, 7])),
            Just(json!([0.5, 1.5])),
            Just(json!([1]))
        ],
        1..=3_u32,
        prop_oneof![Just(40_u32), 3..=4_u32],
        prop_oneof![Just(900.0), 10.0..40.0_f64],
        prop_oneof![2 => Just((0.0, 0.0)), 1 => (0.0..2.0_f64, 0.0..1.0_f64)],
    );
    let trips = prop::collection::vec(trip, 1..=12);
    let drivers = prop::collection::vec(driver, 0..=4);
    (trips, drivers, settings).prop_map(|(trips, drivers, settings)| {
        let trips = trips.into_iter().enumerate();
        let trips = trips.map(|(i, (ms, pickup, dropoff, trip_s))| Trip {
            request_id: request_id(i),
            requested_at: at(ms),
            pickup,
            // without a drop-off of its own the trip has no length
            dropoff: dropoff.unwrap_or(pickup),
            trip_s,
        });
        let fleet: Vec<FleetDriver> = drivers
            .into_iter()
            .enumerate()
            .map(|(i, (from_ms, place, work_ms))| FleetDriver {
                driver_id: driver_id(i),
                // some cars are there before the start
                from: at(from_ms - 3000),
                place,
                to: work_ms.map(|ms| at(from_ms - 3000 + ms)),
            })
            .collect();
        let (window, wait, radii, least, most, longest_s, (age, idle_share)) = settings;
        let patch = json!({
            "window_ms": window, "budget_ms": 1, "max_wait_ms": wait + 1000, "speed_kmh": 150,
            "search_radii_km": radii, "min_candidates": least, "max_candidates": most,
            "max_pickup_eta_s": longest_s, "age_weight": age, "idle_cap_s": 10,
            "idle_weight": f64::min(idle_share * longest_s / 10.0, 10.0) * 0.999,
        });
        world(
            config(&road_config(&json!({})), &patch),
            trips.collect(),
            &fleet,
        )
    })
}

/// The rules that the reference can judge in a world.
fn rules(scenario: &Scenario) -> &'static [Policy] {
    // cars that grow cheaper as they idle make the choice depend on the radius, and only windows
    // widen it
    if scenario.config.idle_weight > 0.0 {
        &[Policy::Batch, Policy::GreedyEdge, Policy::Greedy]
    } else {
        &Policy::ALL
    }
}

proptest! {
    #![proptest_config(fixed_cases(600))]

    #[test]
    fn a_world_unfolds_as_in_one_written_in_plain_loops(scenario in worlds()) {
        for &policy in rules(&scenario) {
            let run = run(&scenario, policy);
            assert_same(&scenario, &run, &reference(&scenario, policy, &run));
        }
    }

    #[test]
    fn every_request_ends_once_and_no_car_carries_two_riders(scenario in worlds()) {
        for policy in Policy::ALL {
            let told = AtomicU64::new(0);
            let run = replay::run(&scenario, policy, &|ended| told.store(ended, Ordering::Relaxed));
            let run = run.unwrap();
            prop_assert_eq!(told.into_inner(), scenario.trips.len() as u64);
            let kpis = replay::Kpis::of(&scenario, &run);
            prop_assert_eq!(kpis.matched + kpis.expired, kpis.requests);
            prop_assert_eq!(run.outcomes.len(), scenario.trips.len());
            if policy.has_windows() {
                let assigned: u32 = run.windows.iter().map(|w| w.assigned).sum();
                prop_assert_eq!(assigned as usize, kpis.matched);
                prop_assert_eq!(kpis.windows, run.windows.len());
            }

            let mut rides = Vec::new();
            for (trip, outcome) in scenario.trips.iter().zip(&run.outcomes) {
                let Outcome::Assigned { driver, at, eta_s } = *outcome else { continue };
                let until = at + DurationMs::new(naive::ms_of(eta_s)) + trip.trip;
                let waited = at - trip.request.requested_at_ms;
                prop_assert!(waited >= DurationMs::ZERO && waited <= scenario.config.max_wait_ms);
                let car = &scenario.drivers[driver as usize];
                prop_assert!(at >= car.from && car.to.is_none_or(|to| at <= to));
                rides.push((driver, at, until));
            }
            rides.sort_unstable();
            let overlap = rides.windows(2).find(|two| two[0].0 == two[1].0 && two[1].1 < two[0].2);
            prop_assert_eq!(overlap, None);
        }
    }

    #[test]
    fn a_run_repeats_itself(scenario in worlds()) {
        for policy in Policy::ALL {
            let (a, b) = (run(&scenario, policy), run(&scenario, policy));
            prop_assert_eq!((a.outcomes, a.windows), (b.outcomes, b.windows));
        }
    }
}

#[test]
fn the_worlds_drawn_reach_the_boundaries() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::new(fixed_cases(1));
    let (mut on_a_close, mut at_the_last_moment, mut free_on_a_close, mut contested) = (0, 0, 0, 0);
    for _ in 0..300 {
        let scenario = worlds().new_tree(&mut runner).unwrap().current();
        let window_ms = scenario.config.window_ms.get();
        let on_close = |at: kheya::domain::UnixMs| (at - scenario.t0).get() % window_ms == 0;
        let run = run(&scenario, Policy::Batch);
        for (trip, outcome) in scenario.trips.iter().zip(&run.outcomes) {
            on_a_close += u32::from(on_close(trip.request.requested_at_ms));
            let Outcome::Assigned { at, eta_s, .. } = *outcome else {
                continue;
            };
            let age = at - trip.request.requested_at_ms;
            at_the_last_moment += u32::from(age == scenario.config.max_wait_ms);
            let free_at = at + DurationMs::new(naive::ms_of(eta_s)) + trip.trip;
            free_on_a_close += u32::from(on_close(free_at));
        }
        contested += run
            .windows
            .iter()
            .filter(|w| w.requests > w.assigned && w.assigned > 0)
            .count();
    }
    let reached = [
        on_a_close,
        at_the_last_moment,
        free_on_a_close,
        contested as u32,
    ];
    assert!(reached.iter().all(|&n| n >= 10), "{reached:?}");
}

/// When the only request of a world is assigned, in milliseconds from the start.
fn assigned_at(scenario: &Scenario, policy: Policy) -> Option<i64> {
    let outcomes = run(scenario, policy).outcomes;
    match outcomes.last() {
        Some(Outcome::Assigned { at, .. }) => Some((*at - NOW).get()),
        _ => None,
    }
}

const IN_WINDOWS: [Policy; 3] = [Policy::Batch, Policy::GreedyEdge, Policy::Greedy];

fn road(more: &Value) -> kheya::config::RegionConfig {
    road_config(more)
}

#[test]
fn a_request_belongs_to_the_first_close_strictly_later_than_its_time() {
    for (asked_ms, close_ms) in [(0, 3000), (2999, 3000), (3000, 6000), (3001, 6000)] {
        let trips = vec![trip("r", asked_ms, 0.0, 100.0, None)];
        let scenario = world(road(&json!({})), trips, &[car("d", 0, 0.0, None)]);
        for policy in IN_WINDOWS {
            assert_eq!(
                assigned_at(&scenario, policy),
                Some(close_ms),
                "{asked_ms} {policy}"
            );
        }
        assert_eq!(assigned_at(&scenario, Policy::GreedyNow), Some(asked_ms));
    }
}

#[test]
fn a_driver_is_available_at_a_close_when_free_at_or_before_it() {
    for (from_ms, close_ms) in [(3000, 3000), (3001, 6000)] {
        let trips = vec![trip("r", 0, 0.0, 100.0, None)];
        let scenario = world(road(&json!({})), trips, &[car("d", from_ms, 0.0, None)]);
        for policy in IN_WINDOWS {
            assert_eq!(
                assigned_at(&scenario, policy),
                Some(close_ms),
                "{from_ms} {policy}"
            );
        }
        assert_eq!(assigned_at(&scenario, Policy::GreedyNow), Some(from_ms));
    }
}

#[test]
fn a_driver_is_free_at_the_drop_off_after_the_eta_and_the_trip() {
    // assigned at 3 s, 10 s to the pickup, 17 s of trip: free at 30 s, which is a close
    let first = trip("a", 0, 100.0, 5000.0, Some(17.0));
    let second = |trip_s| {
        vec![
            Trip {
                trip_s,
                ..first.clone()
            },
            trip("b", 27_000, 5000.0, 0.0, None),
        ]
    };
    for (trip_s, close_ms) in [(17.0, 30_000), (17.001, 33_000)] {
        let scenario = world(
            road(&json!({})),
            second(Some(trip_s)),
            &[car("d", 0, 0.0, None)],
        );
        for policy in IN_WINDOWS {
            assert_eq!(
                assigned_at(&scenario, policy),
                Some(close_ms),
                "{trip_s} {policy}"
            );
            let last = run(&scenario, policy).outcomes[1];
            assert!(matches!(last, Outcome::Assigned { eta_s, .. } if eta_s < 1e-6));
        }
    }
}

#[test]
fn a_request_as_old_as_the_longest_wait_may_still_match() {
    for (wait_ms, car_from_ms, close_ms) in [
        (6000, 6000, Some(6000)),
        (5999, 6000, None),
        (6000, 6001, None),
        (9000, 6001, Some(9000)),
    ] {
        let trips = vec![trip("r", 0, 0.0, 100.0, None)];
        let settings = road(&json!({"max_wait_ms": wait_ms}));
        let scenario = world(settings, trips, &[car("d", car_from_ms, 0.0, None)]);
        for policy in IN_WINDOWS {
            assert_eq!(
                assigned_at(&scenario, policy),
                close_ms,
                "{wait_ms} {car_from_ms} {policy}"
            );
        }
    }
}

#[test]
fn without_windows_a_request_expires_exactly_at_the_longest_wait() {
    for (car_from_ms, at_ms) in [(5999, Some(5999)), (6000, Some(6000)), (6001, None)] {
        let trips = vec![trip("r", 0, 0.0, 100.0, None)];
        let settings = road(&json!({"max_wait_ms": 6000}));
        let scenario = world(settings, trips, &[car("d", car_from_ms, 0.0, None)]);
        assert_eq!(
            assigned_at(&scenario, Policy::GreedyNow),
            at_ms,
            "{car_from_ms}"
        );
    }
}

#[test]
fn a_driver_takes_no_new_assignment_after_its_end() {
    for (to_ms, close_ms) in [(3000, Some(3000)), (2999, None)] {
        let trips = vec![trip("r", 0, 0.0, 100.0, None)];
        let scenario = world(road(&json!({})), trips, &[car("d", 0, 0.0, Some(to_ms))]);
        for policy in IN_WINDOWS {
            assert_eq!(assigned_at(&scenario, policy), close_ms, "{to_ms} {policy}");
        }
    }
}

#[test]
fn a_trip_of_no_length_frees_its_driver_on_arrival() {
    let trips = vec![
        trip("a", 0, 50.0, 50.0, None),
        trip("b", 6000, 50.0, 50.0, None),
    ];
    // 3 s + 5 s of way: free at 8 s, in time for the close at 9 s
    let scenario = world(road(&json!({})), trips, &[car("d", 0, 0.0, None)]);
    for policy in IN_WINDOWS {
        assert_eq!(assigned_at(&scenario, policy), Some(9000));
    }
    // without windows a car that is free again at once serves the next rider at the same instant
    let trips = vec![trip("a", 0, 0.0, 0.0, None), trip("b", 0, 0.0, 0.0, None)];
    let scenario = world(road(&json!({})), trips, &[car("d", 0, 0.0, None)]);
    assert_eq!(assigned_at(&scenario, Policy::GreedyNow), Some(0));
}

#[test]
fn windows_are_counted_only_while_somebody_waits() {
    let trips = vec![
        trip("a", 0, 0.0, 100.0, None),
        trip("b", 600_000, 0.0, 100.0, None),
        trip("c", 603_000, 0.0, 100.0, None),
    ];
    // nobody serves: each waits for closes at ages up to 7 s
    let settings = road(&json!({"max_wait_ms": 7000}));
    let scenario = world(settings, trips, &[]);
    for policy in IN_WINDOWS {
        let run = run(&scenario, policy);
        let closes: Vec<i64> = run
            .windows
            .iter()
            .map(|w| (w.closed_at - NOW).get())
            .collect();
        // a: 3, 6; b: 603, 606; c: 606, 609; both of the last two are full windows later
        assert_eq!(closes, [3000, 6000, 603_000, 606_000, 609_000], "{policy}");
        let waiting: Vec<u32> = run.windows.iter().map(|w| w.requests).collect();
        assert_eq!(waiting, [1, 1, 1, 2, 1]);
    }
}

#[test]
fn a_rider_lost_at_the_end_of_the_day_keeps_what_it_had_in_sight() {
    // 99.9998 s away under a limit of 100 s: a candidate that rounds to the price of going without
    let trips = vec![trip("r", 0, 0.0, 100.0, None)];
    let settings = road(&json!({"max_pickup_eta_s": 100, "max_wait_ms": 6000}));
    let scenario = world(settings, trips, &[car("d", 0, 999.998, None)]);
    for policy in Policy::ALL {
        let outcome = run(&scenario, policy).outcomes[0];
        assert_eq!(
            outcome,
            Outcome::Expired {
                had_candidate: true
            },
            "{policy}"
        );
    }
}

#[test]
fn a_world_of_one_window_is_decided_like_that_window() {
    let trips: Vec<Trip> = (0..30)
        .map(|n| {
            trip(
                &format!("r{n}"),
                n * 90,
                f64::from((n * n % 31) as u32) * 70.0,
                0.0,
                None,
            )
        })
        .collect();
    let fleet: Vec<FleetDriver> = (0..20)
        .map(|n| car(&format!("d{n}"), 0, f64::from(n * n % 23) * 90.0, None))
        .collect();
    let scenario = world(road(&json!({})), trips, &fleet);
    let replayed = run(&scenario, Policy::Batch);

    let requests = scenario.trips.iter().map(|trip| PendingRequest {
        request: trip.request.clone(),
        left_over: 0,
    });
    let drivers = scenario
        .drivers
        .iter()
        .map(|d| d.snapshot.clone())
        .collect();
    let settings = scenario.config.clone();
    let snapshot =
        WindowSnapshot::new(at(3000), settings, 7, requests.collect(), drivers, None).unwrap();
    let eta = StraightLine::of(&scenario.config);
    let decided = decide_batch(&snapshot, &eta, &Options::default(), |_| ()).unwrap();
    let decided = decided.decision;
    assert_eq!(decided.assignments.len(), 20);

    let mut pairs = Vec::new();
    for (trip, outcome) in scenario.trips.iter().zip(&replayed.outcomes) {
        if let Outcome::Assigned { driver, at, eta_s } = *outcome
            && at == NOW + DurationMs::new(3000)
        {
            let driver = scenario.drivers[driver as usize].snapshot.id.clone();
            pairs.push((trip.request.id.clone(), driver, eta_s));
        }
    }
    let wanted: Vec<_> = decided
        .assignments
        .into_iter()
        .map(|a| (a.request_id, a.driver_id, a.eta_s))
        .collect();
    assert_eq!(pairs, wanted);
}
