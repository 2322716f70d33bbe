//! The bound of a replay: below every schedule there is, and below every rule.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod command_line;
mod worlds;

use std::cell::Cell;

use chance::{Chance, fixed_cases};
use command_line::{Desk, run};
use kheya::{
    domain::{DurationMs, Place, UnixMs, haversine_of_km},
    eta::StraightLine,
    replay::{
        self, Acceptance, Behaviour, BoundOptions, Kpis, Patience, Policy, RELAXATION, Scenario,
        input::{FleetDriver, Trip},
    },
};
use proptest::{option, prelude::*, test_runner::TestRunner};
use serde_json::json;
use worlds::by_hand::{at, car, road_config, trip, world};
use worlds::naive::ms_of;
use worlds::window_parts::{config, driver_id, request_id};

/// Sums of seconds differ by this much between orders of adding them.
const ROUNDING_S: f64 = 1e-9;

/// All pairs at once, solved to the end.
const ALL: BoundOptions = BoundOptions {
    candidates: 1000,
    rounds: 50,
    solve_polls: u64::MAX,
    gap: 0.0,
    car_time: true,
};

fn bound(scenario: &Scenario, options: BoundOptions) -> f64 {
    let bound = replay::rider_cost_bound(scenario, &options, &|_, _| ()).unwrap();
    bound.rider_cost_s.unwrap()
}

fn cost(scenario: &Scenario, policy: Policy) -> f64 {
    let run = replay::run(scenario, policy, &|_| ()).unwrap();
    Kpis::of(scenario, &run).rider_cost_s.unwrap()
}

/// Few corners, some of them far apart, so that cars are contested and trips follow on each other.
fn corners() -> impl Strategy<Value = Place> {
    let corner = prop_oneof![
        Just((0.0, 0.0)),
        Just((0.004, 0.0031)),
        Just((-0.0172, 0.0155)),
        (-0.02..0.02_f64, -0.02..0.02_f64),
    ];
    corner.prop_map(|(north, east)| Place::new(23.75 + north, 90.39 + east).unwrap())
}

/// Trips of riders who ask at so many milliseconds for a way from one place to another.
fn numbered(trips: Vec<(i64, Place, Place, Option<f64>)>) -> Vec<Trip> {
    let trips = trips.into_iter().enumerate();
    let trips = trips.map(|(i, (ms, pickup, dropoff, trip_s))| Trip {
        request_id: request_id(i),
        requested_at: at(ms),
        pickup,
        dropoff,
        trip_s,
    });
    trips.collect()
}

/// Worlds of few riders and cars, in which many are lost.
fn worlds(riders: usize, cars: usize) -> impl Strategy<Value = Scenario> {
    let trip = (
        0..60_000_i64,
        corners(),
        corners(),
        option::weighted(0.7, 0.0..30.0_f64),
    );
    let driver = (
        -3000..40_000_i64,
        corners(),
        option::weighted(0.3, 0..40_000_i64),
    );
    let settings = (
        500..4000_i64,
        1000..40_000_i64,
        prop_oneof![Just(json!([2, 4, 7])), Just(json!([0.5, 1.5]))],
        prop_oneof![Just(900.0), 10.0..60.0_f64],
    );
    let ahead = (0..60_i64, 0..60_i64);
    let trips = prop::collection::vec(trip, 1..=riders);
    let drivers = prop::collection::vec(driver, 0..=cars);
    (trips, drivers, settings, ahead).prop_map(|(trips, drivers, settings, ahead)| {
        let fleet: Vec<FleetDriver> = drivers
            .into_iter()
            .enumerate()
            .map(|(i, (from_ms, place, work_ms))| FleetDriver {
                driver_id: driver_id(i),
                from: at(from_ms),
                place,
                to: work_ms.map(|ms| at(from_ms + ms)),
            })
            .collect();
        let (window, wait, radii, longest_s) = settings;
        let (plan, demand) = ahead;
        let patch = json!({
            "window_ms": window, "budget_ms": 1, "max_wait_ms": wait, "speed_kmh": 150,
            "search_radii_km": radii, "max_pickup_eta_s": longest_s,
            "plan_ahead_ms": plan * 1000, "demand_ahead_ms": demand * 1000,
        });
        let config = config(&road_config(&json!({})), &patch);
        world(config, numbered(trips), &fleet)
    })
}

/// A car in the search through all schedules.
#[derive(Clone, Copy)]
struct Car {
    place: Place,
    free: UnixMs,
    to: Option<UnixMs>,
}

/// What riders cost in the best of all schedules, in seconds over all requests: every order in which
/// every car could serve every set of riders, each as soon as it can be.
fn best_schedule(scenario: &Scenario, cars: &[Car], waiting: &[usize]) -> f64 {
    let config = &scenario.config;
    let line = StraightLine::of(config);
    let widest = haversine_of_km(*config.search_radii_km.last().unwrap());
    let lost_s = config.max_wait_ms.as_seconds() + config.max_pickup_eta_s;
    let mut best = waiting.len() as f64 * lost_s;
    for (c, car) in cars.iter().enumerate() {
        for &rider in waiting {
            let trip = &scenario.trips[rider];
            let pickup = trip.request.pickup.unwrap();
            let sent = car.free.max(trip.request.requested_at_ms);
            let delay = sent - trip.request.requested_at_ms;
            let haversine = pickup.sphere().haversine(car.place.on_sphere());
            let eta_s = line.seconds(kheya::domain::km_of_haversine(haversine));
            if delay > config.max_wait_ms
                || car.to.is_some_and(|to| sent > to)
                || haversine > widest
                || eta_s > config.max_pickup_eta_s
            {
                continue;
            }
            let mut cars = cars.to_vec();
            cars[c].place = trip.dropoff.place();
            cars[c].free = sent + DurationMs::new(ms_of(eta_s)) + trip.trip;
            let waiting: Vec<usize> = waiting.iter().copied().filter(|&r| r != rider).collect();
            let cost = delay.as_seconds() + eta_s + best_schedule(scenario, &cars, &waiting);
            best = best.min(cost);
        }
    }
    best
}

fn least_of_all_schedules(scenario: &Scenario) -> f64 {
    let car = |driver: &replay::ScenarioDriver| Car {
        place: driver.snapshot.position.unwrap().place(),
        free: driver.from,
        to: driver.to,
    };
    let cars: Vec<Car> = scenario.drivers.iter().map(car).collect();
    let riders: Vec<usize> = (0..scenario.trips.len()).collect();
    best_schedule(scenario, &cars, &riders) / riders.len() as f64
}

proptest! {
    #![proptest_config(fixed_cases(400))]

    #[test]
    fn no_schedule_there_is_beats_the_bound(scenario in worlds(5, 2)) {
        let (bound, least) = (bound(&scenario, ALL), least_of_all_schedules(&scenario));
        prop_assert!(bound <= least + ROUNDING_S, "{bound} {least}");
        // and the search through the schedules is one: no rule beats it either
        for policy in Policy::ALL {
            let cost = cost(&scenario, policy);
            prop_assert!(least <= cost + ROUNDING_S, "{policy} {cost} {least}");
        }
    }

    #[test]
    fn no_rule_beats_the_bound_however_hard_it_was_looked_for(
        scenario in worlds(40, 6), refuse in any::<bool>(),
    ) {
        let scenario = if refuse {
            scenario.with_behaviour(Behaviour {
                patience: Some("wait=10s,eta=20s".parse::<Patience>().unwrap()),
                acceptance: Some("base=0.8,eta=30s".parse::<Acceptance>().unwrap()),
            })
        } else {
            scenario
        };
        let all = bound(&scenario, ALL);
        for (candidates, rounds) in [(1, 0), (1, 1), (1, 3), (3, 2)] {
            let some = bound(&scenario, BoundOptions { candidates, rounds, ..ALL });
            prop_assert!(some <= all + ROUNDING_S, "{candidates} {rounds}: {some} {all}");
        }
        // pairs that come one by one end where all at once do
        let slowly = bound(&scenario, BoundOptions { candidates: 1, rounds: 1000, ..ALL });
        prop_assert!((slowly - all).abs() <= ROUNDING_S, "{slowly} {all}");
        for policy in Policy::ALL {
            let cost = cost(&scenario, policy);
            prop_assert!(all <= cost + ROUNDING_S, "{policy} {cost} {all}");
        }
    }
}

/// Worlds of a car or two that every rider wants at once, for trips of many minutes: what keeps
/// riders waiting is car time.
fn short_worlds() -> impl Strategy<Value = Scenario> {
    let trip_s = (300.0..900.0_f64).prop_map(Some);
    let trip = (0..120_000_i64, corners(), corners(), trip_s);
    let trips = prop::collection::vec(trip, 4..=5);
    let places = prop::collection::vec(corners(), 1..=2);
    let max_wait_ms = 600_000..2_400_000_i64;
    (trips, places, max_wait_ms).prop_map(|(trips, places, max_wait_ms)| {
        let patch = json!({"speed_kmh": 150, "max_wait_ms": max_wait_ms});
        let config = config(&road_config(&json!({})), &patch);
        world(config, numbered(trips), &parked(&places))
    })
}

/// Cars that stand at these places from the start on.
fn parked(places: &[Place]) -> Vec<FleetDriver> {
    let cars = places.iter().enumerate();
    let cars = cars.map(|(i, &place)| FleetDriver {
        driver_id: driver_id(i),
        from: at(0),
        place,
        to: None,
    });
    cars.collect()
}

#[test]
fn where_cars_are_short_their_time_raises_the_bound_and_no_schedule_beats_it() {
    let raised = Cell::new(0);
    let checked = TestRunner::new(fixed_cases(200)).run(&short_worlds(), |scenario| {
        let least = least_of_all_schedules(&scenario);
        let without = BoundOptions {
            car_time: false,
            ..ALL
        };
        let (with, without) = (bound(&scenario, ALL), bound(&scenario, without));
        prop_assert!(with <= least + ROUNDING_S, "{with} {least}");
        prop_assert!(without <= least + ROUNDING_S, "{without} {least}");
        for policy in Policy::ALL {
            let cost = cost(&scenario, policy);
            prop_assert!(with <= cost + ROUNDING_S, "{policy} {cost} {with}");
        }
        raised.set(raised.get() + usize::from(with > without + 1.0));
        Ok(())
    });
    checked.unwrap();
    // else car time was not under test
    assert!(raised.get() >= 50, "{}", raised.get());
}

#[test]
fn a_bound_whose_solves_were_cut_is_one_still() {
    let cut = Cell::new(0);
    let checked = TestRunner::new(fixed_cases(200)).run(&worlds(40, 6), |scenario| {
        let all = bound(&scenario, ALL);
        let costs = Policy::ALL.map(|policy| cost(&scenario, policy));
        for solve_polls in [0, 1, 3] {
            let options = BoundOptions { solve_polls, ..ALL };
            let some = bound(&scenario, options);
            prop_assert!(some <= all + ROUNDING_S, "{solve_polls}: {some} {all}");
            for cost in costs {
                prop_assert!(some <= cost + ROUNDING_S, "{solve_polls}: {some} {cost}");
            }
            cut.set(cut.get() + usize::from(some < all - ROUNDING_S));
        }
        Ok(())
    });
    checked.unwrap();
    // else nothing was cut
    assert!(cut.get() >= 50, "{}", cut.get());
}

/// Two towns that no car drives between, each of them work enough for a thread of its own.
fn two_towns() -> Scenario {
    let mut chance = Chance::new(5);
    let mut place = |town: usize| {
        let (north, east) = (chance.unit() * 0.03, chance.unit() * 0.03);
        Place::new(23.75 + town as f64 + north, 90.39 + east).unwrap()
    };
    let trips = (0..400).map(|i| Trip {
        request_id: request_id(i),
        requested_at: at(1000 * i as i64),
        pickup: place(i % 2),
        dropoff: place(i % 2),
        trip_s: Some(120.0),
    });
    let trips = trips.collect();
    let places: Vec<Place> = (0..40).map(|i| place(i % 2)).collect();
    world(road_config(&json!({})), trips, &parked(&places))
}

#[test]
fn the_same_bound_whatever_the_threads_and_wherever_it_is_cut() {
    let scenario = two_towns();
    let on = |threads: usize, solve_polls: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let options = BoundOptions { solve_polls, ..ALL };
        let found = || replay::rider_cost_bound(&scenario, &options, &|_, _| ()).unwrap();
        pool.build().unwrap().install(found)
    };
    let all = on(1, u64::MAX);
    let mut cut = 0;
    for solve_polls in [0, 100, 300, 1000, 3000, u64::MAX] {
        let one = on(1, solve_polls);
        cut += usize::from(one != all);
        for threads in [2, 4, 4, 4] {
            assert_eq!(on(threads, solve_polls), one, "{threads} {solve_polls}");
        }
    }
    assert!(cut >= 3, "cut {cut} times");
}

#[test]
fn where_nothing_is_contested_the_bound_is_what_riders_pay() {
    // the car is 100 m away, and 50 m from the second rider when it is free again at 10 s + 20 s
    let trips = vec![
        trip("a", 0, 100.0, 200.0, Some(20.0)),
        trip("b", 10_000, 250.0, 300.0, Some(20.0)),
    ];
    let scenario = world(road_config(&json!({})), trips, &[car("d", 0, 0.0, None)]);
    let found = bound(&scenario, ALL);
    assert!(
        (found - f64::midpoint(10.0, 20.0 + 5.0)).abs() < 0.002,
        "{found}"
    );
    let cost = cost(&scenario, Policy::GreedyNow);
    assert!((found - cost).abs() < 0.002, "{found} {cost}");
}

#[test]
fn a_trip_that_nobody_drives_leaves_no_car_behind() {
    // one car at a fork: whichever way it goes, the second rider of the other way is lost too
    let config = road_config(&json!({"max_wait_ms": 5000, "max_pickup_eta_s": 10}));
    let trips = vec![
        trip("west", 0, 0.0, -5000.0, Some(10.0)),
        trip("east", 0, 0.0, 5000.0, Some(10.0)),
        trip("west-2", 10_000, -5000.0, -5000.0, Some(10.0)),
        trip("east-2", 10_000, 5000.0, 5000.0, Some(10.0)),
    ];
    let scenario = world(config, trips, &[car("d", 0, 0.0, None)]);
    let found = bound(&scenario, ALL);
    assert!((found - 7.5).abs() < 0.002, "{found}");
}

#[test]
fn a_replay_tells_what_is_left_of_each_rule() {
    let desk = Desk::new();
    let city = desk.path("city");
    let size = [
        "--hours",
        "0.3",
        "--requests-per-hour",
        "900",
        "--drivers",
        "60",
    ];
    run([&["generate", "--out", city.to_str().unwrap()], &size[..]].concat()).done();
    let file = city.join("requests.csv");
    let file = file.to_str().unwrap();
    let args = [
        "replay",
        file,
        "--drivers",
        "60",
        "--policy",
        "all",
        "--bound",
    ];
    let report = run([&args[..], &["--format", "json"]].concat()).json();
    let bound = &report["bound"];
    let least = bound["rider_cost_s"].as_f64().unwrap();
    assert!(least > 0.0 && least <= bound["relaxation_at_most_s"].as_f64().unwrap());
    assert_eq!(bound["relaxation"], RELAXATION);
    for kpis in report["runs"].as_array().unwrap() {
        let cost = kpis["rider_cost_s"].as_f64().unwrap();
        let left = &bound["runs"][kpis["policy"].as_str().unwrap()];
        assert!(
            (left["left_s"].as_f64().unwrap() - (cost - least)).abs() < 2e-4,
            "{left}"
        );
        let share = left["left_pct"].as_f64().unwrap();
        assert!((0.0..100.0).contains(&share), "{share}");
    }
    let page = desk.path("page.html");
    let told = run([&args[..], &["--report", page.to_str().unwrap()]].concat()).done();
    for text in [told.stdout, std::fs::read_to_string(page).unwrap()] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(RELAXATION), "{text}");
        assert!(text.contains("left at most: batch"), "{text}");
    }
    let without = run([&args[..6], &["--format", "json"]].concat()).json();
    assert!(without.get("bound").is_none());
}
