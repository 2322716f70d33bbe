//! Repair: what a window lost at the claim is solved once more, and nothing else is touched.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use std::collections::BTreeSet;

use chance::Chance;
use chance::fixed_cases;
use kheya::{
    decision::{Assignment, Batch, Reason, Repaired, WindowDecision, decide_batch, repair},
    domain::{DriverId, RequestId},
    eta::StraightLine,
};
use kheya_solver::{Budget, Options, Status};
use proptest::prelude::*;
use worlds::by_hand::{driver, request, window};
use worlds::naive;
use worlds::window_parts::{WindowParts, searched, with_edges};

fn decide(parts: &WindowParts) -> Batch {
    let eta = StraightLine::of(&parts.config);
    decide_batch(&parts.snapshot(), &eta, &Options::default(), |_| ()).unwrap()
}

/// A share of the chosen requests, by a seed.
fn some_of(decision: &WindowDecision, share: f64, seed: u64) -> BTreeSet<RequestId> {
    let mut chance = Chance::new(seed);
    let assigned = decision.assignments.iter();
    assigned
        .filter(|_| chance.unit() < share)
        .map(|a| a.request_id.clone())
        .collect()
}

fn pairs<'a>(assignments: impl IntoIterator<Item = &'a Assignment>) -> naive::Pairs {
    let assignments = assignments.into_iter();
    assignments
        .map(|a| (a.request_id.clone(), a.driver_id.clone()))
        .collect()
}

/// The rows that repair may still serve, with the drivers that are still free.
fn still_open(
    parts: &WindowParts,
    before: &WindowDecision,
    kept: &naive::Pairs,
) -> Vec<naive::Row> {
    let gone: BTreeSet<&DriverId> = before.assignments.iter().map(|a| &a.driver_id).collect();
    let mut rows = naive::rows(parts);
    rows.retain(|row| !kept.contains_key(&row.request));
    for row in &mut rows {
        row.edges.retain(|e| !gone.contains(&e.driver));
    }
    rows
}

proptest! {
    #![proptest_config(fixed_cases(300))]

    #[test]
    fn a_repair_keeps_what_was_won_and_does_the_best_with_what_is_left(
        parts in prop_oneof![4 => searched(60, 70), 1 => with_edges(30, 20)],
        share in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64],
        seed in any::<u64>(),
    ) {
        let batch = decide(&parts);
        let before = &batch.decision;
        let lost = some_of(before, share, seed);
        let Repaired { decision, added } =
            repair(&parts.snapshot(), &batch, &lost, &Options::default()).unwrap();

        let kept = pairs(before.assignments.iter().filter(|a| !lost.contains(&a.request_id)));
        let after = pairs(&decision.assignments);
        for (request, driver) in &kept {
            prop_assert_eq!(after.get(request), Some(driver), "a kept pair moved");
        }
        let new: naive::Pairs =
            after.iter().filter(|(r, _)| !kept.contains_key(*r)).map(|(r, d)| (r.clone(), d.clone())).collect();
        prop_assert_eq!(&pairs(&added), &new);
        let used: BTreeSet<&DriverId> = after.values().collect();
        prop_assert_eq!(used.len(), after.len(), "a driver twice");
        let taken: BTreeSet<&DriverId> = before.assignments.iter().map(|a| &a.driver_id).collect();
        prop_assert!(new.values().all(|d| !taken.contains(d)), "a lost driver came back");

        let rows = naive::rows(&parts);
        prop_assert_eq!(decision.objective.get(), naive::objective_ms(&rows, &after));
        prop_assert!(decision.objective.get() <= naive::objective_ms(&rows, &kept));
        let open = still_open(&parts, before, &kept);
        prop_assert_eq!(
            decision.objective.get() - naive::objective_ms(&rows, &kept)
                + naive::objective_ms(&open, &naive::Pairs::new()),
            naive::least_objective_ms(&open)
        );

        prop_assert_eq!(decision.assignments.len() + decision.unmatched.len(), rows.len());
        prop_assert_eq!(&decision.excluded, &before.excluded);
        for left in &decision.unmatched {
            let was = before.unmatched.iter().find(|u| u.request_id == left.request_id);
            let wanted = if lost.contains(&left.request_id) {
                Reason::ClaimLost
            } else {
                was.unwrap().reason
            };
            prop_assert_eq!(left.reason, wanted);
        }
    }
}

#[test]
fn a_repair_that_lost_nothing_changes_nothing() {
    let cars = vec![driver("a", 0.0), driver("b", 500.0)];
    let parts = window(vec![request("r", 0.0), request("s", 600.0)], cars);
    let batch = decide(&parts);
    let repaired = repair(
        &parts.snapshot(),
        &batch,
        &BTreeSet::new(),
        &Options::default(),
    );
    let Repaired { decision, added } = repaired.unwrap();
    assert_eq!((decision, added), (batch.decision, vec![]));
}

#[test]
fn who_was_outbid_may_get_a_car_that_a_lost_claim_did_not_cost() {
    // r and s are served, t is not; r loses its car and only s's reserve is in reach of both
    let cars = vec![driver("a", 0.0), driver("b", 1000.0), driver("c", 3000.0)];
    let mut parts = window(vec![request("r", 0.0), request("s", 1000.0)], cars);
    let batch = decide(&parts);
    let lost = BTreeSet::from([RequestId::new("r").unwrap()]);
    let again = repair(&parts.snapshot(), &batch, &lost, &Options::default()).unwrap();
    assert_eq!(again.added.len(), 1);
    assert_eq!(again.added[0].driver_id.as_str(), "c");
    // without a third car the rider carries over, and is told what happened
    parts.drivers.pop();
    let batch = decide(&parts);
    let again = repair(&parts.snapshot(), &batch, &lost, &Options::default()).unwrap();
    assert_eq!(again.decision.unmatched[0].reason, Reason::ClaimLost);
    assert_eq!(again.decision.assignments.len(), 1);
}

#[test]
fn a_repair_cut_by_its_budget_is_still_valid() {
    let riders = (0..60).map(|n| request(&format!("r{n:02}"), f64::from(n * n % 97) * 10.0));
    let cars = (0..80).map(|n| driver(&format!("d{n:02}"), f64::from(n * n % 89) * 10.0));
    let parts = window(riders.collect(), cars.collect());
    let batch = decide(&parts);
    let lost = some_of(&batch.decision, 0.5, 3);
    assert!(lost.len() > 5);
    let options = Options {
        budget: Some(Budget::polls(0)),
        ..Options::default()
    };
    let Repaired { decision, .. } = repair(&parts.snapshot(), &batch, &lost, &options).unwrap();
    // the cut is told, although the first solve was optimal
    let status = |decision: &WindowDecision| decision.solve.as_ref().unwrap().status;
    assert_eq!(status(&batch.decision), Status::Optimal);
    assert_eq!(status(&decision), Status::Feasible);
    let used: BTreeSet<&DriverId> = decision.assignments.iter().map(|a| &a.driver_id).collect();
    assert_eq!(used.len(), decision.assignments.len());
    assert_eq!(decision.assignments.len() + decision.unmatched.len(), 60);
    let rows = naive::rows(&parts);
    let cost_ms = naive::objective_ms(&rows, &pairs(&decision.assignments));
    assert_eq!(decision.objective.get(), cost_ms);
}
