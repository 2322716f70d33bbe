//! Own windows under side constraints are recorded whole and decided the same again; one that a
//! budget cut is checked, and nothing of it can be bent.

use std::collections::BTreeSet;

use kheya::{
    decision::{
        WindowDecision, WindowSnapshot, decide_batch, decide_oldest_first, read_window, repair,
    },
    domain::{RequestId, WindowId},
    eta::StraightLine,
    record::{VerifyReport, WindowEntry, WindowSource, verify},
};
use kheya_solver::{Budget, Options, Status};
use serde_json::json;
use tempfile::tempdir;

use super::round_trip::{recorder, region};

/// Forty riders and thirty cars; a cap that binds, and floors that can and cannot be met.
fn window(seed: u64) -> WindowSnapshot {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let requests: Vec<_> = (0..40)
        .map(|n| json!({"id": format!("r{n:02}"), "requested_at_ms": n}))
        .collect();
    let drivers: Vec<_> = (0..30).map(|n| json!({"id": format!("d{n:02}")})).collect();
    let mut edges = Vec::new();
    for request in 0..40 {
        for driver in 0..30 {
            if draw(3) == 0 {
                edges.push(json!({
                    "request_id": format!("r{request:02}"), "driver_id": format!("d{driver:02}"),
                    "eta_s": draw(900_000) as f64 / 1000.0,
                }));
            }
        }
    }
    let some = |from: std::ops::Range<u64>, letter: &str| -> Vec<String> {
        from.map(|n| format!("{letter}{n:02}")).collect()
    };
    let body = json!({
        "format": "kheya-window/1", "now_ms": 100, "seed": seed,
        "requests": requests, "drivers": drivers, "edges": edges,
        "constraints": [
            {"name": "cap", "drivers": some(0..15, "d"), "requests": some(0..25, "r"), "max": 5},
            {"name": "floor", "drivers": some(10..20, "d"), "requests": some(30..40, "r"), "min": 8, "standing": 2},
            {"name": "too much", "drivers": some(0..3, "d"), "min": 5},
        ],
    });
    read_window(body.to_string().as_bytes()).unwrap().0
}

fn options(polls: Option<u64>) -> Options<'static> {
    Options {
        budget: polls.map(Budget::polls),
        ..Options::default()
    }
}

struct Recorded {
    snapshot: WindowSnapshot,
    decision: WindowDecision,
    lost: Vec<RequestId>,
    repaired: Option<WindowDecision>,
}

fn recorded(seed: u64, polls: Option<u64>) -> Recorded {
    let snapshot = window(seed);
    let eta = StraightLine::of(snapshot.config());
    let batch = decide_batch(&snapshot, &eta, &options(polls), |_| ()).unwrap();
    let pairs = batch.decision.assignments.iter();
    let lost: BTreeSet<RequestId> = pairs
        .step_by(4)
        .map(|pair| pair.request_id.clone())
        .collect();
    let repaired = repair(&snapshot, &batch, &lost, &options(polls)).unwrap();
    Recorded {
        snapshot,
        decision: batch.decision,
        lost: lost.into_iter().collect(),
        repaired: Some(repaired.decision),
    }
}

fn verified(windows: &[Recorded]) -> VerifyReport {
    let dir = tempdir().unwrap();
    let (recorder, _) = recorder(dir.path());
    for (n, window) in windows.iter().enumerate() {
        recorder.window(WindowEntry {
            region: &region(),
            window_seq: None,
            window_id: Some(&WindowId::new(&format!("w{n}")).unwrap()),
            source: WindowSource::Own,
            snapshot: &window.snapshot,
            decision: &window.decision,
            claim_lost: &window.lost,
            repaired: window.repaired.as_ref(),
        });
    }
    recorder.close();
    verify(&[dir.path().to_owned()], &|_, _| ()).unwrap()
}

#[test]
fn constrained_windows_and_their_repairs_are_decided_again() {
    let mut windows: Vec<Recorded> = (0..12).map(|seed| recorded(seed, None)).collect();
    for window in &windows {
        let lacking: Vec<u32> = window
            .decision
            .constraints
            .iter()
            .map(|c| c.shortfall)
            .collect();
        assert!(lacking[2] >= 2, "three cars cannot serve five: {lacking:?}");
    }
    let snapshot = window(99);
    let eta = StraightLine::of(snapshot.config());
    windows.push(Recorded {
        decision: decide_oldest_first(&snapshot, &eta),
        snapshot,
        lost: Vec::new(),
        repaired: None,
    });
    let report = verified(&windows);
    assert_eq!(report.differences, []);
    assert_eq!(report.decisions.identical, 13);
    assert_eq!(report.repairs.identical, 12);
}

#[test]
fn a_constrained_window_that_was_cut_is_checked() {
    let mut cut = 0;
    for (seed, polls) in (0..40).map(|n| (n % 8, n * 7)) {
        let window = recorded(seed, Some(polls));
        let facts = window.decision.solve.as_ref().unwrap();
        if facts.status != Status::Feasible {
            continue;
        }
        cut += 1;
        let report = verified(&[window]);
        assert_eq!(report.differences, [], "{seed} {polls}");
        assert_eq!(report.decisions.checked, 1);
    }
    assert!(cut >= 10, "{cut} were cut");
}

#[test]
fn what_is_said_of_constraints_cannot_be_bent() {
    for polls in [None, Some(3)] {
        for (word, change) in [
            (
                "count",
                &(|d: &mut WindowDecision| d.constraints[0].count += 1)
                    as &dyn Fn(&mut WindowDecision),
            ),
            ("shortfall", &|d| d.constraints[2].shortfall -= 1),
            ("constraints", &|d| d.constraints.clear()),
        ] {
            let mut window = recorded(1, polls);
            window.repaired = None;
            window.lost.clear();
            change(&mut window.decision);
            let report = verified(&[window]);
            assert_eq!(report.decisions.different, 1, "{word}");
            let told = &report.differences[0].detail;
            assert!(told.contains(word), "{word}: {told}");
        }
    }
}
