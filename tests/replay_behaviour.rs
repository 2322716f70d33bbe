//! Riders who give up and drivers who decline, in the replay's world.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use kheya::{
    domain::DurationMs,
    replay::{self, Behaviour, Kpis, Outcome, Policy, Run, Scenario},
};
use serde_json::json;
use worlds::by_hand::{at, car, road_config, trip, world};

fn behaviour(patience: &str, acceptance: &str) -> Behaviour {
    Behaviour {
        patience: (!patience.is_empty()).then(|| patience.parse().unwrap()),
        acceptance: (!acceptance.is_empty()).then(|| acceptance.parse().unwrap()),
    }
}

fn run(scenario: &Scenario, policy: Policy) -> (Run, Kpis) {
    let run = replay::run(scenario, policy, &|_| ()).unwrap();
    let kpis = Kpis::of(scenario, &run);
    let ended = kpis.matched + kpis.expired + kpis.gave_up.unwrap_or(0);
    assert_eq!(ended, kpis.requests, "everybody ends once");
    (run, kpis)
}

/// A car that declines everything, and a rider who waits 300 s: with a cool-down of a minute the pair
/// is offered at 3, 63, 123, 183 and 243 s.
#[test]
fn a_declined_pair_is_not_offered_again_within_its_cool_down() {
    for (cooldown_ms, offers) in [(60_000, 5), (300_000, 1), (400_000, 1), (0, 100)] {
        let config = json!({"decline_cooldown_ms": cooldown_ms, "max_wait_ms": 300_000});
        let trips = vec![trip("r", 0, 0.0, 100.0, None)];
        let scenario = world(road_config(&config), trips, &[car("d", 0, 0.0, None)])
            .with_behaviour(behaviour("", "0"));
        for policy in [Policy::Batch, Policy::GreedyEdge, Policy::Greedy] {
            let (run, kpis) = run(&scenario, policy);
            assert_eq!(run.declined, offers, "{policy}, {cooldown_ms} ms");
            assert_eq!(kpis.declined, Some(offers));
            assert_eq!((kpis.expired, kpis.expired_with_candidates), (1, 1));
        }
    }
}

/// Many riders, each far from the others with a near car and a farther one that accept every other
/// offer: whoever is declined gets the other car in the next window, and waits on with their age.
#[test]
fn a_declined_request_carries_over_with_its_age_to_another_driver() {
    let (mut trips, mut cars) = (Vec::new(), Vec::new());
    for n in 0..300 {
        let place = f64::from(n) * 40_000.0;
        trips.push(trip(&format!("r{n:03}"), 0, place, place, Some(9000.0)));
        cars.push(car(&format!("d{n:03}near"), 0, place + 10.0, None));
        cars.push(car(&format!("d{n:03}next"), 0, place + 50.0, None));
    }
    let config = json!({"decline_cooldown_ms": 300_000, "max_wait_ms": 30_000});
    let scenario = world(road_config(&config), trips, &cars).with_behaviour(behaviour("", "0.5"));
    for policy in Policy::ALL {
        let (run, _) = run(&scenario, policy);
        let (mut first, mut second, mut none) = (0, 0, 0);
        for (n, outcome) in run.outcomes.iter().enumerate() {
            match *outcome {
                Outcome::Assigned { driver, at: t, .. } if driver as usize == 2 * n => {
                    first += 1;
                    assert!(t <= at(3000));
                }
                Outcome::Assigned { driver, at: t, .. } => {
                    second += 1;
                    assert_eq!(driver as usize, 2 * n + 1);
                    // without windows the next car is asked at once
                    let wanted = if policy.has_windows() {
                        at(6000)
                    } else {
                        at(0)
                    };
                    assert_eq!(t, wanted, "{policy}");
                }
                Outcome::Expired { had_candidate } => {
                    none += 1;
                    assert!(had_candidate);
                }
                Outcome::GaveUp { .. } => panic!("nobody gives up here"),
            }
        }
        // 150, 75 and 75 of 300, within four standard errors
        assert!((115..=185).contains(&first), "{policy}: {first}");
        assert!((45..=105).contains(&second), "{policy}: {second}");
        assert!((45..=105).contains(&none), "{policy}: {none}");
    }
}

#[test]
fn riders_give_up_at_the_hazard_of_their_wait_the_same_under_every_rule() {
    let trips = (0..2000).map(|n| trip(&format!("r{n:04}"), n * 10, 0.0, 100.0, None));
    let config = json!({"max_wait_ms": 120_000, "window_ms": 1000, "budget_ms": 1});
    let scenario =
        world(road_config(&config), trips.collect(), &[]).with_behaviour(behaviour("wait=60s", ""));
    let mut outcomes = Vec::new();
    for policy in Policy::ALL {
        let (run, kpis) = run(&scenario, policy);
        // 1 - 2^(-120/60) of 2,000, within four standard errors
        assert!(
            (1422..=1578).contains(&kpis.gave_up.unwrap()),
            "{policy}: {kpis:?}"
        );
        assert_eq!(kpis.gave_up_at_eta, Some(0));
        outcomes.push(run.outcomes);
    }
    assert!(outcomes.iter().all(|o| *o == outcomes[0]));
}

#[test]
fn riders_cancel_at_the_eta_they_are_shown_and_their_car_stays_free() {
    // every rider is alone with a car 100 s away
    let (mut trips, mut cars) = (Vec::new(), Vec::new());
    for n in 0..1000 {
        let place = f64::from(n) * 19_000.0;
        trips.push(trip(&format!("r{n:04}"), 0, place, place, Some(60.0)));
        cars.push(car(&format!("d{n:04}"), 0, place + 1000.0, None));
    }
    let scenario =
        world(road_config(&json!({})), trips, &cars).with_behaviour(behaviour("eta=100s", ""));
    for policy in Policy::ALL {
        let (run, kpis) = run(&scenario, policy);
        let cancelled = kpis.gave_up_at_eta.unwrap();
        assert!((437..=563).contains(&cancelled), "{policy}: {cancelled}");
        assert_eq!((kpis.gave_up, kpis.expired), (Some(cancelled), 0));
        let lost_s = 900.0 + 600.0;
        let wait_s = if policy.has_windows() { 103.0 } else { 100.0 };
        let wanted = (cancelled as f64 * lost_s + kpis.matched as f64 * wait_s) / 1000.0;
        assert!(
            (kpis.rider_cost_s.unwrap() - wanted).abs() < 0.1,
            "{policy}"
        );
        assert!(run.outcomes.contains(&Outcome::GaveUp { at_eta: true }));
    }

    // a car whose rider cancelled takes the next one
    let mut trips: Vec<_> = (0..40)
        .map(|n| trip(&format!("r{n:02}"), n * 5000, 0.0, 0.0, Some(1.0)))
        .collect();
    trips.rotate_left(7);
    let scenario = world(road_config(&json!({})), trips, &[car("d", 0, 20.0, None)])
        .with_behaviour(behaviour("eta=2s", ""));
    for policy in Policy::ALL {
        let (_, kpis) = run(&scenario, policy);
        assert!(
            kpis.matched > 0 && kpis.gave_up_at_eta > Some(0),
            "{policy}: {kpis:?}"
        );
        assert_eq!(kpis.expired, 0, "{policy}");
    }
}

#[test]
fn without_refusals_nothing_changes_and_nothing_is_said_of_them() {
    let trips: Vec<_> = (0..60)
        .map(|n| {
            trip(
                &format!("r{n:02}"),
                n * 1700,
                f64::from(n as i32 % 9) * 90.0,
                0.0,
                None,
            )
        })
        .collect();
    let cars: Vec<_> = (0..4)
        .map(|n| car(&format!("d{n}"), 0, f64::from(n) * 200.0, None))
        .collect();
    let plain = world(road_config(&json!({})), trips, &cars);
    let willing = plain.clone().with_behaviour(behaviour("", "1"));
    for policy in Policy::ALL {
        let (plain, kpis) = run(&plain, policy);
        let (willing, _) = run(&willing, policy);
        assert_eq!(plain.outcomes, willing.outcomes, "{policy}");
        assert_eq!(plain.windows, willing.windows, "{policy}");
        let json = serde_json::to_string(&kpis).unwrap();
        assert!(
            !json.contains("gave_up") && !json.contains("declined"),
            "{json}"
        );
    }
}

#[test]
fn a_phase_moves_every_close_by_as_much() {
    let trips = vec![
        trip("a", 0, 0.0, 100.0, Some(1.0)),
        trip("b", 999, 0.0, 100.0, Some(1.0)),
        trip("c", 1000, 0.0, 100.0, Some(1.0)),
        trip("d", 61_000, 0.0, 100.0, Some(1.0)),
    ];
    let cars: Vec<_> = (0..4)
        .map(|n| car(&format!("d{n}"), 0, 0.0, None))
        .collect();
    let scenario = world(road_config(&json!({})), trips, &cars);
    let assigned = |phase_ms: i64| -> Vec<i64> {
        let scenario = scenario.clone().with_phase(DurationMs::new(phase_ms));
        let (run, _) = run(&scenario, Policy::Batch);
        let when = |outcome: &Outcome| match *outcome {
            Outcome::Assigned { at: t, .. } => (t - at(0)).get(),
            _ => panic!("there are cars enough"),
        };
        run.outcomes.iter().map(when).collect()
    };
    assert_eq!(assigned(0), [3000, 3000, 3000, 63_000]);
    assert_eq!(assigned(1000), [1000, 1000, 4000, 64_000]);
    assert_eq!(assigned(2999), [2999, 2999, 2999, 62_999]);
    assert_eq!(
        assigned(4000),
        assigned(1000),
        "a phase is less than a window"
    );
}
