//! The decision of a window that looks ahead, in random windows.

use std::collections::{BTreeMap, BTreeSet};

use kheya::{
    candidates::{availability, soon_free},
    decision::{
        Foresight, Phantom, Reason, Waiting, WindowDecision, WindowSnapshot, decide_alone,
        decide_batch, read_window, snapshot_hash, write_window,
    },
    domain::{DurationMs, RequestId, UnixMs},
    eta::StraightLine,
    supply::Position,
};
use kheya_solver::{Budget, Options, Status};
use proptest::prelude::*;
use serde_json::json;

use crate::{
    chance::{Chance, fixed_cases},
    worlds::{
        by_hand::{self, road_config},
        window_parts::{NOW, WindowParts, places, searched},
    },
};

/// A random window that looks ahead, with phantoms of past requests and of expected ones, and with
/// requests that have been planned before.
#[derive(Debug, Clone)]
struct Ahead {
    parts: WindowParts,
    phantoms: Vec<Phantom>,
    waiting: Vec<Waiting>,
}

impl Ahead {
    fn snapshot(&self) -> WindowSnapshot {
        let foresight = Foresight::new(self.phantoms.clone(), self.waiting.clone());
        self.parts.snapshot().with_foresight(foresight).unwrap()
    }

    fn shuffled(&self, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut shuffled = self.clone();
        shuffled.parts = self.parts.shuffled(seed);
        chance.shuffle(&mut shuffled.phantoms);
        chance.shuffle(&mut shuffled.waiting);
        shuffled
    }
}

fn ahead() -> impl Strategy<Value = Ahead> {
    let phantoms = prop::collection::vec((places(), -60_000..60_000_i64), 0..40);
    let times = (0..90_000_i64, 0..90_000_i64, 1_000..60_000_i64);
    (searched(12, 30), phantoms, times, any::<u64>()).prop_map(
        |(mut parts, phantoms, (plan, demand, longest), seed)| {
            parts.set(&json!({
                "plan_ahead_ms": plan, "demand_ahead_ms": demand, "max_planned_ms": longest,
            }));
            let mut chance = Chance::new(seed);
            // a third of the drivers are on trips, most of which end soon
            for driver in &mut parts.drivers {
                if chance.below(3) == 0
                    && let Some(place) = driver.position
                {
                    driver.held = kheya::decision::Held::OnTrip;
                    driver.trip_end = Some(kheya::decision::TripEnd {
                        place: place.place(),
                        at_ms: NOW + DurationMs::new(chance.below(180_000) as i64 - 60_000),
                    });
                }
            }
            let phantom = |(place, ago): (_, i64)| Phantom {
                learned: ago < 0,
                at_ms: NOW - DurationMs::new(ago),
                pickup: Position::new(place),
            };
            let mut waiting = Vec::new();
            for pending in &parts.requests {
                if chance.below(2) == 0 {
                    let ago = |chance: &mut Chance| DurationMs::new(chance.below(70_000) as i64);
                    waiting.push(Waiting {
                        request_id: pending.request.id.clone(),
                        planned_since_ms: (chance.below(2) == 0).then(|| NOW - ago(&mut chance)),
                        deadline_ms: (chance.below(3) == 0).then(|| NOW + ago(&mut chance)),
                    });
                }
            }
            Ahead {
                parts,
                phantoms: phantoms.into_iter().map(phantom).collect(),
                waiting,
            }
        },
    )
}

fn decide(snapshot: &WindowSnapshot) -> WindowDecision {
    let eta = StraightLine::of(snapshot.config());
    let options = Options::default();
    decide_batch(snapshot, &eta, &options, |_| ())
        .unwrap()
        .decision
}

fn alone(snapshot: &WindowSnapshot) -> WindowDecision {
    let eta = StraightLine::of(snapshot.config());
    let options = Options::default();
    decide_alone(snapshot, &eta, &options, |_| ())
        .unwrap()
        .decision
}

/// Whom each request gets, and why not.
fn outcomes(decision: &WindowDecision) -> BTreeMap<RequestId, Result<String, Reason>> {
    let pairs = decision.assignments.iter();
    let pairs = pairs.map(|pair| (pair.request_id.clone(), Ok(pair.driver_id.to_string())));
    let left = decision.unmatched.iter();
    let left = left.map(|left| (left.request_id.clone(), Err(left.reason)));
    pairs.chain(left).collect()
}

/// Whether a request may still wait for what comes.
fn may_wait(snapshot: &WindowSnapshot, request: &RequestId) -> bool {
    let pending = snapshot
        .requests()
        .iter()
        .find(|p| p.request.id == *request);
    let waiting = snapshot.foresight().waiting_of(request);
    let config = snapshot.config();
    let deadline = waiting.and_then(|w| w.deadline_ms);
    let deadline =
        deadline.unwrap_or(pending.unwrap().request.requested_at_ms + config.max_wait_ms);
    let since: UnixMs = waiting.and_then(|w| w.planned_since_ms).unwrap_or(NOW);
    let until = since + config.max_planned_ms;
    NOW < until && until <= deadline
}

proptest! {
    #![proptest_config(fixed_cases(300))]

    #[test]
    fn only_waiting_requests_and_free_cars_make_pairs(world in ahead()) {
        let snapshot = world.snapshot();
        let decision = decide(&snapshot);
        let config = snapshot.config();
        let mut taken = BTreeSet::new();
        for pair in &decision.assignments {
            let driver = snapshot.drivers().iter().find(|d| d.id == pair.driver_id).unwrap();
            prop_assert!(availability(driver, config, NOW).is_ok());
            prop_assert!(taken.insert(&pair.driver_id), "{} twice", pair.driver_id);
            let request = snapshot.requests().iter().find(|p| p.request.id == pair.request_id);
            let longest = request.unwrap().request.max_pickup_eta_s;
            prop_assert!(pair.eta_s <= longest.unwrap_or(config.max_pickup_eta_s));
        }
        // everyone once, and nobody who does not wait
        let known: BTreeSet<RequestId> =
            snapshot.requests().iter().map(|p| p.request.id.clone()).collect();
        prop_assert_eq!(decision.assignments.len() + decision.unmatched.len(), known.len());
        prop_assert_eq!(outcomes(&decision).into_keys().collect::<BTreeSet<_>>(), known);
    }

    #[test]
    fn a_plan_is_a_driver_who_will_be_free_in_time(world in ahead()) {
        let snapshot = world.snapshot();
        let decision = decide(&snapshot);
        let plan_s = snapshot.config().plan_ahead_ms.as_seconds();
        let eta = StraightLine::of(snapshot.config());
        let outcomes = outcomes(&decision);
        let plans = decision.ahead.map_or_else(Vec::new, |ahead| ahead.plans);
        let mut taken = BTreeSet::new();
        for plan in plans {
            prop_assert_eq!(&outcomes[&plan.request_id], &Err(Reason::Planned));
            prop_assert!(taken.insert(plan.driver_id.clone()));
            let request = snapshot.requests().iter().find(|p| p.request.id == plan.request_id);
            let pickup = request.unwrap().request.pickup.unwrap();
            let soon = soon_free(&snapshot).into_iter().find(|soon| {
                snapshot.drivers()[soon.driver as usize].id == plan.driver_id
            });
            let soon = soon.unwrap();
            prop_assert!(soon.free_in_s <= plan_s);
            let travel_s = eta.seconds(pickup.distance_km(&soon.place));
            prop_assert!((plan.eta_s - soon.free_in_s - travel_s).abs() < 1e-6);
        }
    }

    #[test]
    fn who_may_not_wait_gets_what_the_window_alone_gives(world in ahead()) {
        let snapshot = world.snapshot();
        let (ahead, alone) = (outcomes(&decide(&snapshot)), outcomes(&alone(&snapshot)));
        for (request, outcome) in &ahead {
            if !may_wait(&snapshot, request) {
                prop_assert_eq!(outcome, &alone[request], "{}", request);
            } else if alone[request].is_ok() && outcome.is_err() {
                // whatever looking ahead costs a rider is counted as planned
                prop_assert_eq!(outcome, &Err(Reason::Planned), "{}", request);
            }
        }
    }

    #[test]
    fn neither_the_input_order_nor_the_threads_change_a_byte(world in ahead(), seed in any::<u64>()) {
        let (snapshot, shuffled) = (world.snapshot(), world.shuffled(seed).snapshot());
        prop_assert_eq!(snapshot_hash(&snapshot), snapshot_hash(&shuffled));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        prop_assert_eq!(decide(&snapshot), pool.install(|| decide(&shuffled)));
        let text = write_window(&snapshot).unwrap();
        prop_assert_eq!(read_window(text.as_bytes()).unwrap().0, snapshot);
    }

    #[test]
    fn a_budget_that_ends_leaves_the_window_as_it_is_alone(world in ahead(), polls in 0..12_u64) {
        let snapshot = world.snapshot();
        let eta = StraightLine::of(snapshot.config());
        let options = Options { budget: Some(Budget::polls(polls)), ..Options::default() };
        let cut = decide_batch(&snapshot, &eta, &options, |_| ()).unwrap().decision;
        if cut.ahead.is_some() {
            prop_assert_eq!(cut, decide(&snapshot));
        } else if cut.solve.as_ref().is_some_and(|facts| facts.status != Status::Feasible) {
            prop_assert_eq!(cut, alone(&snapshot));
        }
    }
}

/// A rider at 0 m, a free car 3 km away, and one 200 m away whose trip ends in 20 s.
fn round_the_corner(more: &serde_json::Value) -> WindowParts {
    let mut busy = by_hand::driver("busy", 5_000.0);
    busy.held = kheya::decision::Held::OnTrip;
    busy.trip_end = Some(kheya::decision::TripEnd {
        place: by_hand::metres(200.0),
        at_ms: NOW + DurationMs::new(20_000),
    });
    let requests = vec![by_hand::request("r", 0.0)];
    let mut parts = by_hand::window(requests, vec![by_hand::driver("free", 3_000.0), busy]);
    parts.config = road_config(more);
    parts
}

#[test]
fn a_rider_waits_for_the_car_round_the_corner_but_not_for_ever() {
    let plan = json!({"plan_ahead_ms": 60_000});
    let parts = round_the_corner(&plan);
    let r = RequestId::new("r").unwrap();
    let since = |ms: i64| {
        let waiting = Waiting {
            request_id: r.clone(),
            planned_since_ms: Some(NOW - DurationMs::new(ms)),
            deadline_ms: None,
        };
        let foresight = Foresight::new(Vec::new(), vec![waiting]);
        outcomes(&decide(
            &parts.snapshot().with_foresight(foresight).unwrap(),
        ))[&r]
            .clone()
    };
    assert_eq!(
        outcomes(&decide(&parts.snapshot()))[&r],
        Err(Reason::Planned)
    );
    assert_eq!(since(59_999), Err(Reason::Planned));
    assert_eq!(since(60_000), Ok("free".into()));
    // off, too short, or overdue: the free car
    for other in [json!({}), json!({"plan_ahead_ms": 19_000})] {
        assert!(outcomes(&decide(&round_the_corner(&other).snapshot()))[&r].is_ok());
    }
    let mut overdue = round_the_corner(&plan);
    let end = &mut overdue.drivers[1].trip_end;
    end.as_mut().unwrap().at_ms = NOW - DurationMs::new(30_000);
    assert!(outcomes(&decide(&overdue.snapshot()))[&r].is_err());
    overdue.drivers[1].trip_end.as_mut().unwrap().at_ms = NOW - DurationMs::new(30_001);
    assert!(outcomes(&decide(&overdue.snapshot()))[&r].is_ok());
}

#[test]
fn a_phantom_keeps_the_near_car_for_the_next_rider() {
    // the car at 100 m is nearer, but the next rider is expected beside it; the one at −150 m will do
    let requests = vec![by_hand::request("r", 0.0)];
    let drivers = vec![
        by_hand::driver("near", 100.0),
        by_hand::driver("other", -150.0),
    ];
    let mut parts = by_hand::window(requests, drivers);
    parts.config = road_config(&json!({"demand_ahead_ms": 60_000}));
    let r = RequestId::new("r").unwrap();
    assert_eq!(outcomes(&decide(&parts.snapshot()))[&r], Ok("near".into()));
    let phantom = Phantom {
        learned: false,
        at_ms: NOW,
        pickup: Position::new(by_hand::metres(120.0)),
    };
    let foresight = Foresight::new(vec![phantom], Vec::new());
    let snapshot = parts.snapshot().with_foresight(foresight).unwrap();
    let decision = decide(&snapshot);
    assert_eq!(outcomes(&decision)[&r], Ok("other".into()));
    assert_eq!(decision.assignments.len(), 1);
}

#[test]
fn foresight_of_unknown_or_repeated_requests_is_refused() {
    let parts = round_the_corner(&json!({"plan_ahead_ms": 60_000}));
    let waiting = |id: &str| Waiting {
        request_id: RequestId::new(id).unwrap(),
        planned_since_ms: Some(NOW),
        deadline_ms: None,
    };
    for bad in [vec![waiting("x")], vec![waiting("r"), waiting("r")]] {
        let errors = parts
            .snapshot()
            .with_foresight(Foresight::new(Vec::new(), bad));
        let errors = errors.unwrap_err();
        assert!(
            errors[0].to_string().starts_with("ahead.waiting["),
            "{errors:?}"
        );
    }
    let phantom = Phantom {
        learned: false,
        at_ms: NOW,
        pickup: Position::new(by_hand::metres(0.0)),
    };
    let many = Foresight::new(vec![phantom; 2_001], Vec::new());
    assert!(parts.snapshot().with_foresight(many).is_err());
}
