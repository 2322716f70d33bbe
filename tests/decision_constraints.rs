//! Side constraints in a window: caps hold whoever decides, everyone else's reason stays true, and
//! the window is decided the same again from its file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use std::collections::{BTreeMap, BTreeSet};

use chance::{Chance, fixed_cases};
use kheya::{
    decision::{
        Batch, Reason, Repaired, SideConstraint, WindowDecision, WindowSnapshot, decide_batch,
        decide_edge_first, decide_oldest_first, read_window, repair, snapshot_hash, write_window,
    },
    domain::{DriverId, RequestId},
    eta::StraightLine,
};
use kheya_solver::{Options, Status};
use proptest::prelude::*;
use worlds::by_hand::{driver, request, window};
use worlds::window_parts::{WindowParts, searched, with_edges};

fn decide(snapshot: &WindowSnapshot) -> Batch {
    let eta = StraightLine::of(snapshot.config());
    decide_batch(snapshot, &eta, &Options::default(), |_| ()).unwrap()
}

fn side(name: &str, max: Option<u32>, min: Option<u32>) -> SideConstraint {
    SideConstraint {
        name: name.into(),
        drivers: None,
        requests: None,
        max,
        min,
        standing: 0,
    }
}

/// One to three constraints over some of the window, with and without floors.
fn constraints(parts: &WindowParts, seed: u64, floors: bool) -> Vec<SideConstraint> {
    let mut chance = Chance::new(seed);
    let count = 1 + (chance.unit() * 3.0) as usize;
    let most = parts.requests.len() as f64 / 3.0 + 1.0;
    let constraint = |index: usize| {
        let (has_drivers, has_requests) = (chance.unit() < 0.6, chance.unit() < 0.6);
        let drivers: Vec<DriverId> = parts
            .drivers
            .iter()
            .filter(|_| chance.unit() < 0.5)
            .map(|driver| driver.id.clone())
            .collect();
        let requests: Vec<RequestId> = parts
            .requests
            .iter()
            .filter(|_| chance.unit() < 0.5)
            .map(|pending| pending.request.id.clone())
            .collect();
        let bound = (chance.unit() * most) as u32;
        let is_floor = floors && chance.unit() < 0.5;
        SideConstraint {
            drivers: has_drivers.then_some(drivers),
            requests: has_requests.then_some(requests),
            ..side(
                &format!("c{index}"),
                (!is_floor).then_some(bound),
                is_floor.then_some(bound),
            )
        }
    };
    (0..count).map(constraint).collect()
}

/// Caps hold, and what the decision says of constraints is what its pairs give.
fn check_facts(given: &[SideConstraint], decision: &WindowDecision) -> Result<(), TestCaseError> {
    prop_assert_eq!(given.len(), decision.constraints.len());
    for (side, facts) in given.iter().zip(&decision.constraints) {
        let counted = decision.assignments.iter().filter(|pair| {
            let request = side
                .requests
                .as_ref()
                .is_none_or(|ids| ids.contains(&pair.request_id));
            request
                && side
                    .drivers
                    .as_ref()
                    .is_none_or(|ids| ids.contains(&pair.driver_id))
        });
        let count = counted.count() as u32;
        prop_assert_eq!((&facts.name, facts.count), (&side.name, count));
        prop_assert!(side.max.is_none_or(|max| count <= max));
        prop_assert_eq!(facts.shortfall, side.min.unwrap_or(0).saturating_sub(count));
    }
    Ok(())
}

proptest! {
    #![proptest_config(fixed_cases(100))]

    #[test]
    fn constraints_hold_whoever_decides_and_cost_no_more_than_they_must(
        parts in prop_oneof![3 => searched(40, 50), 1 => with_edges(25, 20)],
        seed in any::<u64>(),
        floors in any::<bool>(),
    ) {
        let given = constraints(&parts, seed, floors);
        let snapshot = parts.snapshot().with_constraints(given.clone()).unwrap();
        let eta = StraightLine::of(snapshot.config());
        let Batch { decision, .. } = decide(&snapshot);
        let facts = decision.solve.as_ref().unwrap();
        prop_assert_ne!(facts.status, Status::Feasible);
        check_facts(&given, &decision)?;
        let lacking = |decision: &WindowDecision| decision.constraints.iter().map(|c| c.shortfall).sum::<u32>();
        let free = decide(&parts.snapshot()).decision;
        if lacking(&decision) == 0 {
            prop_assert!(decision.objective >= free.objective);
        }
        check_facts(&given, &decide_oldest_first(&snapshot, &eta))?;
        let edge_first = decide_edge_first(&snapshot, &eta);
        check_facts(&given, &edge_first)?;
        prop_assert!((lacking(&decision), decision.objective) <= (lacking(&edge_first), edge_first.objective));
        if !floors {
            prop_assert!(facts.gain_vs_greedy.get() >= 0 && facts.gain_vs_greedy_edge.get() >= 0);
        }

        // the file tells all, and neither the order of the input nor of the constraints matters
        let text = write_window(&snapshot).unwrap();
        let (read, _) = read_window(text.as_bytes()).unwrap();
        prop_assert_eq!(&read, &snapshot);
        let mut shuffled = given;
        shuffled.reverse();
        let again = parts.shuffled(seed).snapshot().with_constraints(shuffled).unwrap();
        prop_assert_eq!(snapshot_hash(&again), snapshot_hash(&snapshot));
        prop_assert_ne!(snapshot_hash(&again), snapshot_hash(&parts.snapshot()));
        prop_assert_eq!(decide(&again).decision, decision);
    }

    #[test]
    fn only_a_full_cap_keeps_a_request_from_a_free_driver(
        parts in prop_oneof![3 => searched(40, 50), 1 => with_edges(25, 20)],
        seed in any::<u64>(),
    ) {
        let given = constraints(&parts, seed, true);
        let snapshot = parts.snapshot().with_constraints(given.clone()).unwrap();
        let Batch { decision, table, .. } = decide(&snapshot);
        let taken: BTreeSet<&DriverId> = decision.assignments.iter().map(|a| &a.driver_id).collect();
        let reasons: BTreeMap<&RequestId, Reason> =
            decision.unmatched.iter().map(|u| (&u.request_id, u.reason)).collect();
        let full: Vec<bool> = decision.constraints.iter().map(|c| c.max == Some(c.count)).collect();
        for (row, pending) in snapshot.requests().iter().enumerate() {
            let id = &pending.request.id;
            let Some(&reason) = reasons.get(id) else { continue };
            let mut apart = false;
            for candidate in table.row(row).iter().filter(|c| c.cost < table.unmatched_cost(row)) {
                let driver = &snapshot.drivers()[candidate.driver as usize].id;
                let forbidden = given.iter().zip(&full).any(|(side, &full)| {
                    let of = side.requests.as_ref().is_none_or(|ids| ids.contains(id));
                    full && of && side.drivers.as_ref().is_none_or(|ids| ids.contains(driver))
                });
                let free = !taken.contains(driver);
                prop_assert!(!free || forbidden, "{} could have had {}", id, driver);
                apart |= free;
            }
            prop_assert_eq!(reason == Reason::Constraint, apart);
        }
    }

    #[test]
    fn a_repair_counts_what_was_won(parts in searched(40, 50), seed in any::<u64>(), share in 0.0..1.0_f64) {
        let given = constraints(&parts, seed, true);
        let snapshot = parts.snapshot().with_constraints(given.clone()).unwrap();
        let batch = decide(&snapshot);
        let mut chance = Chance::new(seed);
        let lost: BTreeSet<RequestId> = batch.decision.assignments.iter()
            .filter(|_| chance.unit() < share)
            .map(|pair| pair.request_id.clone())
            .collect();
        let Repaired { decision, added } = repair(&snapshot, &batch, &lost, &Options::default()).unwrap();
        check_facts(&given, &decision)?;
        for pair in &batch.decision.assignments {
            prop_assert!(lost.contains(&pair.request_id) || decision.assignments.contains(pair));
        }
        prop_assert!(added.iter().all(|pair| decision.assignments.contains(pair)));
    }
}

#[test]
fn pairs_that_stand_already_fill_a_cap_and_a_floor() {
    let parts = window(
        vec![request("r", 0.0), request("s", 100.0)],
        vec![driver("a", 0.0), driver("b", 100.0)],
    );
    let with_standing = |standing| {
        let cap = SideConstraint {
            standing,
            ..side("cap", Some(2), Some(2))
        };
        let snapshot = parts.snapshot().with_constraints(vec![cap]).unwrap();
        decide(&snapshot).decision
    };
    let half = with_standing(1);
    assert_eq!((half.assignments.len(), half.constraints[0].count), (1, 2));
    assert_eq!(half.unmatched[0].reason, Reason::Constraint);
    let full = with_standing(2);
    assert_eq!((full.assignments.len(), full.constraints[0].count), (0, 2));
}

#[test]
fn a_floor_takes_a_pair_that_is_not_worth_it_and_says_what_it_lacks() {
    // 5 km at 10 m a second: worth 500 s, and the rider may go without for 100 s
    let mut far = window(vec![request("r", 0.0)], vec![driver("a", 5_000.0)]);
    far.requests[0] = worlds::by_hand::with(far.requests[0].clone(), |r| {
        r.unmatched_cost_s = Some(100.0);
    });
    let free = decide(&far.snapshot()).decision;
    assert_eq!(free.unmatched[0].reason, Reason::NotWorthIt);
    let floor = vec![side("must", None, Some(3))];
    let snapshot = far.snapshot().with_constraints(floor).unwrap();
    let decision = decide(&snapshot).decision;
    assert_eq!(decision.assignments.len(), 1);
    let facts = &decision.constraints[0];
    assert_eq!((facts.count, facts.shortfall), (1, 2));
    assert!(facts.multiplier.get() <= -400_000, "{facts:?}");
}

#[test]
fn what_is_wrong_with_constraints_is_told_by_its_path() {
    let parts = window(vec![request("r", 0.0)], vec![driver("a", 0.0)]);
    let refused = |given: Vec<SideConstraint>| -> Vec<String> {
        let errors = parts.snapshot().with_constraints(given).unwrap_err();
        errors.iter().map(ToString::to_string).collect()
    };
    let strange = SideConstraint {
        drivers: Some(vec![
            DriverId::new("a").unwrap(),
            DriverId::new("x").unwrap(),
        ]),
        requests: Some(vec![RequestId::new("y").unwrap()]),
        ..side("c", Some(1), None)
    };
    assert_eq!(
        refused(vec![strange]),
        [
            "constraints[0].drivers[1]: there is no driver \"x\"",
            "constraints[0].requests[0]: there is no request \"y\"",
        ]
    );
    let told = refused(vec![
        side("", Some(1), None),
        side("c", Some(1), Some(2)),
        side("c", None, None),
        side("d", Some(1_000_001), None),
    ]);
    let paths: Vec<&str> = told.iter().filter_map(|e| e.split(':').next()).collect();
    assert_eq!(
        paths,
        [
            "constraints[0].name",
            "constraints[1].min",
            "constraints[2].name",
            "constraints[2]",
            "constraints[3].max",
        ]
    );
    let many = (0..65)
        .map(|n| side(&n.to_string(), Some(1), None))
        .collect();
    assert!(refused(many)[0].starts_with("constraints: 65"));
}
