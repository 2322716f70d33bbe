//! Prices of the window before change no cost; they are part of a snapshot, its hash and its record,
//! and bad ones are refused by name.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use std::sync::Arc;

use chance::fixed_cases;
use kheya::{
    decision::{
        Batch, WarmStart, WindowSnapshot, decide_batch, read_window, snapshot_hash, write_window,
    },
    domain::{NodeId, RegionId, WindowSeq},
    eta::StraightLine,
    record::{RecordOptions, Recorder, WindowEntry, WindowSource, verify},
    store::ManualClock,
};
use kheya_solver::Options;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::tempdir;
use worlds::window_parts::{NOW, driver_id, searched};

fn decide(snapshot: &WindowSnapshot) -> Batch {
    let eta = StraightLine::of(snapshot.config());
    decide_batch(snapshot, &eta, &Options::default(), |_| ()).unwrap()
}

/// What a decision cost: that of the wider solve where it looked ahead.
fn cost(batch: &Batch) -> i64 {
    let alone = batch.decision.objective.get();
    batch
        .decision
        .ahead
        .as_ref()
        .map_or(alone, |a| a.objective.get())
}

fn window(extra: Value) -> Vec<u8> {
    let mut body = json!({
        "format": "kheya-window/1", "now_ms": 100, "seed": 1,
        "requests": [{"id": "r1", "requested_at_ms": 1}, {"id": "r2", "requested_at_ms": 2}],
        "drivers": [{"id": "d1"}, {"id": "d2"}],
        "edges": [
            {"request_id": "r1", "driver_id": "d1", "eta_s": 60.0},
            {"request_id": "r2", "driver_id": "d1", "eta_s": 90.0},
        ],
    });
    let Value::Object(extra) = extra else {
        return Vec::new();
    };
    body.as_object_mut().unwrap().extend(extra);
    body.to_string().into_bytes()
}

proptest! {
    #![proptest_config(fixed_cases(60))]

    #[test]
    fn windows_in_a_row_cost_the_same_warm_and_cold_and_are_verified(
        windows in prop::collection::vec(searched(40, 50), 2..4),
        ahead in any::<bool>(),
        noise in prop::collection::vec(0..2_000_000_i64, 50),
    ) {
        let dir = tempdir().unwrap();
        let mut options = RecordOptions::new(dir.path().to_owned(), NodeId::new("n:1").unwrap());
        options.clock = Arc::new(ManualClock::at(NOW));
        let recorder = Recorder::open(options).unwrap();
        let region = RegionId::new("dhaka").unwrap();
        let mut before = WarmStart::new((0..50).map(driver_id).zip(noise));
        let count = windows.len();
        for (seq, mut parts) in windows.into_iter().enumerate() {
            if ahead {
                parts.set(&json!({"plan_ahead_ms": 300_000}));
            }
            let cold = parts.snapshot();
            let known = |id: &_| cold.drivers().iter().any(|driver| driver.id == *id);
            let kept = (0..50).map(driver_id).filter(known);
            let kept = WarmStart::new(kept.map(|id| { let price = before.price_ms(&id); (id, price) }));
            let warm = cold.clone().with_warm_start(kept.clone()).unwrap();
            let (of_cold, of_warm) = (decide(&cold), decide(&warm));
            prop_assert_eq!(cost(&of_cold), cost(&of_warm));
            prop_assert_eq!(snapshot_hash(&cold) == snapshot_hash(&warm), kept.is_empty());
            let text = write_window(&warm).unwrap();
            let read = read_window(text.as_bytes()).unwrap().0;
            prop_assert_eq!(read.warm_start(), warm.warm_start());
            prop_assert_eq!(write_window(&read).unwrap(), text);
            recorder.window(WindowEntry {
                region: &region,
                window_seq: Some(WindowSeq::new(seq as u64)),
                window_id: None,
                source: WindowSource::Batch,
                snapshot: &warm,
                decision: &of_warm.decision,
                claim_lost: &[],
                repaired: None,
            });
            before = of_warm.driver_prices(&warm);
        }
        recorder.close();
        let report = verify(&[dir.path().to_owned()], &|_, _| ()).unwrap();
        prop_assert_eq!(report.differences, []);
        prop_assert_eq!(report.decisions.identical, count as u64);
    }
}

#[test]
fn bad_prices_are_refused_by_name() {
    for (price, wanted) in [
        (json!({"d1": -5}), "warm_start.d1"),
        (json!({"d1": 0}), "warm_start.d1"),
        (json!({"d1": i64::MAX}), "warm_start.d1"),
        (
            json!({"nobody": 5}),
            "warm_start.nobody: there is no driver",
        ),
        (json!({"d1": 1.5}), "invalid type"),
    ] {
        let refused = read_window(&window(json!({"warm_start": price})));
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn only_a_recorded_snapshot_brings_prices() {
    let body =
        json!({"requests": [], "drivers": [{"id": "d1"}], "edges": [], "warm_start": {"d1": 5}});
    let error = read_window(body.to_string().as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("warm_start: "), "{error}");
}

#[test]
fn a_snapshot_without_prices_has_the_bytes_it_had() {
    let plain = read_window(&window(json!({}))).unwrap().0;
    let empty = read_window(&window(json!({"warm_start": {}}))).unwrap().0;
    let text = write_window(&plain).unwrap();
    assert!(!text.contains("warm_start"));
    assert_eq!(
        (snapshot_hash(&plain), &plain),
        (snapshot_hash(&empty), &empty)
    );
    let warm = read_window(&window(json!({"warm_start": {"d1": 5}})))
        .unwrap()
        .0;
    assert_ne!(snapshot_hash(&warm), snapshot_hash(&plain));
}
