//! One small window for every reason a request goes without, for every exclusion of a driver, and
//! for each limit that decides between the two.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use kheya::{
    decision::{
        CoolDown, DriverSnapshot, Excluded, Held, Presence, Reason, SnapshotEdge, WindowDecision,
        decide_batch,
    },
    domain::{DriverId, DurationMs, RequestId, RiderId, VehicleClass},
    eta::{EtaModel, EtaPair, StraightLine},
    supply::Position,
};
use kheya_solver::{Budget, Options, Status};
use serde_json::json;
use worlds::by_hand::{ago, driver, metres, request, road_config, window, with};
use worlds::window_parts::{NOW, WindowParts};

fn decide(parts: &WindowParts) -> WindowDecision {
    decide_with(parts, &StraightLine::of(&parts.config), &Options::default())
}

fn decide_with(parts: &WindowParts, eta: &dyn EtaModel, options: &Options<'_>) -> WindowDecision {
    let batch = decide_batch(&parts.snapshot(), eta, options, |_| ()).unwrap();
    batch.decision
}

/// `request driver` of every pair, then `request reason` of everyone else.
fn told(decision: &WindowDecision) -> Vec<String> {
    let pairs = decision.assignments.iter();
    let pairs = pairs.map(|a| format!("{} {}", a.request_id, a.driver_id));
    let left = decision.unmatched.iter();
    pairs
        .chain(left.map(|u| format!("{} {:?}", u.request_id, u.reason)))
        .collect()
}

fn only_reason(parts: &WindowParts) -> Reason {
    let decision = decide(parts);
    assert_eq!(
        (decision.assignments.len(), decision.unmatched.len()),
        (0, 1)
    );
    decision.unmatched[0].reason
}

fn only_exclusion(driver: DriverSnapshot) -> Option<Excluded> {
    let decision = decide(&window(vec![request("r", 0.0)], vec![driver]));
    assert_eq!(decision.drivers + decision.excluded.len(), 1);
    decision.excluded.first().map(|e| e.reason)
}

fn class(name: &str) -> VehicleClass {
    VehicleClass::new(name).unwrap()
}

#[test]
fn the_youngest_requests_are_deferred_when_the_snapshot_is_full() {
    let old = with(request("z", 0.0), |r| r.requested_at_ms = ago(1));
    let mut parts = window(
        vec![request("b", 0.0), old, request("a", 0.0)],
        vec![driver("d1", 0.0), driver("d2", 10.0), driver("d3", 20.0)],
    );
    parts.config = road_config(&json!({"max_snapshot_requests": 2}));
    let decision = decide(&parts);
    let served: Vec<&str> = decision
        .assignments
        .iter()
        .map(|a| a.request_id.as_str())
        .collect();
    assert_eq!(served, ["z", "a"]);
    assert_eq!(told(&decision)[2], "b Deferred");
}

#[test]
fn a_rider_whose_class_nobody_drives_is_told_so() {
    let asks = with(request("r", 0.0), |r| {
        r.vehicle_classes = vec![class("van")];
    });
    let mut car = driver("d", 0.0);
    car.vehicle_class = Some(class("car"));
    let unknown = driver("e", 0.0);
    let parts = window(vec![asks.clone()], vec![car, unknown]);
    assert_eq!(only_reason(&parts), Reason::VehicleClass);
    // without any car at all it is not the class that is missing
    assert_eq!(
        only_reason(&window(vec![asks], vec![])),
        Reason::NoDriverInRange
    );
}

#[test]
fn nobody_within_the_last_radius_is_no_driver_in_range() {
    let at = |metres| window(vec![request("r", 0.0)], vec![driver("d", metres)]);
    assert_eq!(only_reason(&at(7001.0)), Reason::NoDriverInRange);
    assert_eq!(told(&decide(&at(6999.0))), ["r d"]);
}

#[test]
fn a_driver_that_declined_the_request_or_its_rider_is_in_cooldown() {
    let rider = |name: &str| RiderId::new(name).unwrap();
    let cooled = |request_id: &str, rider_id: Option<&str>, until_ms| {
        let mut car = driver("d", 0.0);
        let request_id = RequestId::new(request_id).unwrap();
        car.cooldowns = vec![CoolDown {
            request_id,
            rider_id: rider_id.map(rider),
            until_ms,
        }];
        let asks = with(request("r", 0.0), |r| r.rider_id = Some(rider("ann")));
        window(vec![asks], vec![car])
    };
    let later = NOW + DurationMs::new(1);
    assert_eq!(only_reason(&cooled("r", None, later)), Reason::Cooldown);
    assert_eq!(
        only_reason(&cooled("other", Some("ann"), later)),
        Reason::Cooldown
    );
    assert_eq!(told(&decide(&cooled("other", Some("bob"), later))), ["r d"]);
    assert_eq!(told(&decide(&cooled("other", None, later))), ["r d"]);
    // it ends at its instant
    assert_eq!(told(&decide(&cooled("r", Some("ann"), NOW))), ["r d"]);
}

#[test]
fn riders_without_a_name_share_no_cooldown() {
    let mut car = driver("d", 0.0);
    car.cooldowns = vec![CoolDown {
        request_id: RequestId::new("other").unwrap(),
        rider_id: None,
        until_ms: NOW + DurationMs::new(1),
    }];
    assert_eq!(
        told(&decide(&window(vec![request("r", 0.0)], vec![car]))),
        ["r d"]
    );
}

#[test]
fn a_driver_the_client_excludes_is_in_cooldown() {
    let asks = with(request("r", 0.0), |r| {
        r.exclude_driver_ids = vec![DriverId::new("d").unwrap()];
    });
    let parts = window(vec![asks], vec![driver("d", 0.0)]);
    assert_eq!(only_reason(&parts), Reason::Cooldown);
}

/// A river runs across the road at a place: no route from its other side.
struct River(f64);

impl EtaModel for River {
    fn etas_s(
        &self,
        pickups: &[Position],
        drivers: &[Position],
        pairs: &[EtaPair],
    ) -> Vec<Option<f64>> {
        let river = metres(self.0).lng();
        let beyond = |p: &Position| p.place().lng() > river;
        let route = |pair: &EtaPair| {
            let (from, to) = (
                drivers[pair.driver as usize],
                pickups[pair.request as usize],
            );
            (beyond(&from) == beyond(&to)).then(|| from.distance_km(&to) * 100.0)
        };
        pairs.iter().map(route).collect()
    }
}

#[test]
fn a_rider_no_car_in_range_has_a_route_to_is_unroutable() {
    let river = River(500.0);
    let mut parts = window(vec![request("r", 0.0)], vec![driver("d", 600.0)]);
    let decide = |parts: &WindowParts| decide_with(parts, &river, &Options::default());
    assert_eq!(told(&decide(&parts)), ["r Unroutable"]);
    // the pair is dropped, not the rider: a longer way on this side is taken
    parts.drivers.push(driver("e", -900.0));
    assert_eq!(told(&decide(&parts)), ["r e"]);
}

#[test]
fn an_eta_that_is_no_time_is_no_route() {
    struct Broken;
    impl EtaModel for Broken {
        fn etas_s(&self, _: &[Position], _: &[Position], pairs: &[EtaPair]) -> Vec<Option<f64>> {
            let odd = [f64::NAN, f64::INFINITY, -1.0];
            pairs
                .iter()
                .map(|pair| Some(odd[pair.driver as usize]))
                .collect()
        }
    }
    let drivers = vec![driver("a", 0.0), driver("b", 0.0), driver("c", 0.0)];
    let parts = window(vec![request("r", 0.0)], drivers);
    assert_eq!(
        told(&decide_with(&parts, &Broken, &Options::default())),
        ["r Unroutable"]
    );
}

#[test]
fn a_pickup_is_absent_only_above_the_longest_eta() {
    let limit = |limit_s: f64| {
        let asks = with(request("r", 0.0), |r| r.max_pickup_eta_s = Some(limit_s));
        window(vec![asks], vec![driver("d", 1000.0)])
    };
    // 1,000 m at 10 m/s
    assert_eq!(only_reason(&limit(99.9)), Reason::OverMaxPickupEta);
    assert_eq!(told(&decide(&limit(100.1))), ["r d"]);
    let mut region = window(vec![request("r", 0.0)], vec![driver("d", 1000.0)]);
    region.config = road_config(&json!({"max_pickup_eta_s": 99.9}));
    assert_eq!(only_reason(&region), Reason::OverMaxPickupEta);
}

#[test]
fn a_pair_that_costs_as_much_as_going_without_is_not_worth_it() {
    let priced = |unmatched_s: f64| {
        let asks = with(request("r", 0.0), |r| {
            r.unmatched_cost_s = Some(unmatched_s);
        });
        let mut parts = window(vec![asks], vec![]);
        let (request_id, driver_id) = ("r", "d");
        parts.drivers = vec![driver(driver_id, 0.0)];
        parts.edges = Some(vec![SnapshotEdge {
            request_id: RequestId::new(request_id).unwrap(),
            driver_id: DriverId::new(driver_id).unwrap(),
            eta_s: 100.0,
        }]);
        parts
    };
    assert_eq!(only_reason(&priced(100.0)), Reason::NotWorthIt);
    assert_eq!(told(&decide(&priced(100.001))), ["r d"]);
}

#[test]
fn of_two_riders_for_one_car_the_dearer_is_outbid() {
    let parts = window(
        vec![request("near", 100.0), request("far", 300.0)],
        vec![driver("d", 0.0)],
    );
    assert_eq!(told(&decide(&parts)), ["near d", "far Outbid"]);
}

#[test]
fn a_solve_cut_by_its_budget_says_so_of_those_it_left() {
    // every rider wants every car, and there are half as many cars
    let riders = (0..40).map(|n| request(&format!("r{n:02}"), f64::from(n * n % 97) * 10.0));
    let cars = (0..20).map(|n| driver(&format!("d{n:02}"), f64::from(n * n % 89) * 10.0));
    let parts = window(riders.collect(), cars.collect());
    let options = Options {
        budget: Some(Budget::polls(0)),
        ..Options::default()
    };
    let decision = decide_with(&parts, &StraightLine::of(&parts.config), &options);
    let facts = decision.solve.as_ref().unwrap();
    assert_eq!(
        facts.status,
        Status::Feasible,
        "the budget must cut the solve"
    );
    assert!(facts.dual_bound < decision.objective && facts.gap > 0.0);
    assert_eq!(decision.assignments.len() + decision.unmatched.len(), 40);
    assert!(
        decision
            .unmatched
            .iter()
            .all(|u| u.reason == Reason::Budget)
    );
}

#[test]
fn what_the_region_cannot_send_is_excluded_under_its_first_reason() {
    let be = |presence, held| {
        let mut car = driver("d", 0.0);
        (car.presence, car.held) = (presence, held);
        // old as well, which comes last
        car.at_ms = Some(ago(60_000));
        only_exclusion(car)
    };
    assert_eq!(be(Presence::Offline, Held::OnTrip), Some(Excluded::Offline));
    assert_eq!(be(Presence::Busy, Held::Offered), Some(Excluded::Busy));
    assert_eq!(
        be(Presence::Available, Held::OnTrip),
        Some(Excluded::OnTrip)
    );
    assert_eq!(
        be(Presence::Available, Held::Offered),
        Some(Excluded::Claimed)
    );
    assert_eq!(
        be(Presence::Available, Held::None),
        Some(Excluded::StaleLocation)
    );
}

#[test]
fn a_position_is_stale_only_beyond_the_limit() {
    let seen = |at_ms| {
        let mut car = driver("d", 0.0);
        car.at_ms = at_ms;
        only_exclusion(car)
    };
    assert_eq!(seen(Some(ago(15_001))), Some(Excluded::StaleLocation));
    assert_eq!(seen(Some(ago(15_000))), None);
    assert_eq!(seen(Some(NOW + DurationMs::new(5000))), None);
    assert_eq!(seen(None), None);
}

#[test]
fn a_radius_is_final_once_enough_drivers_lie_within_it() {
    // four cars within 2 km, one within 4 km, one within 7 km
    let places = [0.0, 100.0, 200.0, 300.0, 3000.0, 6000.0];
    let cars = || places.iter().zip("abcdef".chars());
    let cars: Vec<DriverSnapshot> = cars()
        .map(|(&at, id)| driver(&id.to_string(), at))
        .collect();
    let edges = |least: u32, left_over: u32| {
        let mut asks = request("r", 0.0);
        asks.left_over = left_over;
        let mut parts = window(vec![asks], cars.clone());
        parts.config = road_config(&json!({"min_candidates": least}));
        decide(&parts).edges
    };
    assert_eq!(
        [edges(4, 0), edges(5, 0), edges(6, 0), edges(7, 0)],
        [4, 5, 6, 6]
    );
    // each window that left the rider over starts it one radius further out
    assert_eq!([edges(4, 1), edges(4, 2), edges(4, 9)], [5, 6, 6]);
}

#[test]
fn the_count_that_ends_the_widening_is_taken_before_the_eta_limit() {
    let asks = with(request("r", 0.0), |r| r.max_pickup_eta_s = Some(50.0));
    let mut parts = window(vec![asks], vec![driver("a", 600.0), driver("b", -700.0)]);
    parts.config = road_config(&json!({"min_candidates": 2, "search_radii_km": [1, 7]}));
    assert_eq!(only_reason(&parts), Reason::OverMaxPickupEta);
}

#[test]
fn ties_break_by_id_whatever_the_order_given() {
    for order in [["d1", "d2", "d3"], ["d3", "d1", "d2"], ["d2", "d3", "d1"]] {
        let cars = order.map(|id| driver(id, 500.0)).to_vec();
        let parts = window(vec![request("b", 0.0), request("a", 0.0)], cars);
        assert_eq!(told(&decide(&parts)), ["a d1", "b d2"]);
    }
}

#[test]
fn idle_drivers_and_reliable_drivers_cost_less_and_costs_may_be_negative() {
    let mut idle = driver("idle", 200.0);
    idle.idle_since_ms = Some(ago(3_600_000));
    let mut shaky = driver("shaky", 0.0);
    shaky.acceptance_rate = Some(0.25);
    let mut parts = window(vec![request("r", 0.0)], vec![idle, shaky]);
    let weights = json!({"idle_weight": 0.5, "idle_cap_s": 120, "redispatch_s": 40});
    parts.config = road_config(&weights);
    let decision = decide(&parts);
    // 20 − 0.5 × min(3600, 120) = −40 against 0 + 0.75 × 40 = 30
    assert_eq!(decision.assignments[0].driver_id.as_str(), "idle");
    assert!((decision.assignments[0].cost_s - -40.0).abs() < 0.001);
    assert_eq!(decision.objective.get(), -40_000);
}

#[test]
fn the_price_of_going_without_rises_with_age_alone() {
    // 250 s old at weight 0.5, on 900 + 40, or on the client's own 300
    let price = |own: Option<f64>| {
        let asks = with(request("r", 0.0), |r| {
            r.requested_at_ms = ago(250_000);
            r.unmatched_cost_s = own;
        });
        let mut parts = window(vec![asks], vec![]);
        parts.config = road_config(&json!({"age_weight": 0.5, "redispatch_s": 40}));
        decide(&parts).objective.as_seconds()
    };
    assert!((price(None) - 1065.0).abs() < 1e-9);
    assert!((price(Some(300.0)) - 425.0).abs() < 1e-9);
}
