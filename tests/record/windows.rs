//! Windows told as deltas, read back as they were, and decided again.

use std::{fs, path::Path, sync::Arc};

use kheya::{
    config::RegionConfig,
    decision::{
        CoolDown, DriverSnapshot, Held, PendingRequest, Presence, Reason, RequestSnapshot,
        SnapshotEdge, TripEnd, Unmatched, WindowDecision, WindowSnapshot, decide_batch,
        decide_oldest_first,
    },
    domain::{CostMs, RequestId, RiderId, VehicleClass, WindowId, WindowSeq},
    eta::StraightLine,
    record::{Entry, VerifyReport, WindowEntry, WindowSource, verify},
    supply::Position,
};
use kheya_solver::Options;
use tempfile::tempdir;

use super::{
    city::{entries, segments},
    round_trip::{at, driver, place, recorder, region, request},
};

fn busy_driver(id: &str, step: i64) -> Arc<DriverSnapshot> {
    let mut driver = DriverSnapshot::available(driver(id), Position::new(place(step as f64 / 1e4)));
    driver.at_ms = Some(at(step));
    driver.vehicle_class = Some(VehicleClass::new("car").unwrap());
    driver.acceptance_rate = Some(1.0 / 3.0);
    driver.idle_since_ms = Some(at(-40_000));
    driver.cooldowns = vec![CoolDown {
        request_id: request("r0"),
        rider_id: None,
        until_ms: at(1),
    }];
    Arc::new(driver)
}

fn window(
    now: i64,
    config: &RegionConfig,
    requests: &[(&str, u32)],
    drivers: Vec<Arc<DriverSnapshot>>,
    edges: Option<Vec<SnapshotEdge>>,
) -> WindowSnapshot {
    let requests = requests.iter().map(|&(id, left_over)| PendingRequest {
        request: Arc::new(RequestSnapshot {
            id: request(id),
            rider_id: Some(RiderId::new("p").unwrap()),
            pickup: Some(Position::new(place(0.002))),
            vehicle_classes: vec![],
            requested_at_ms: at(-7),
            unmatched_cost_s: Some(0.1 + 0.2),
            max_pickup_eta_s: None,
            exclude_driver_ids: vec![driver("x")],
        }),
        left_over,
    });
    WindowSnapshot::new(
        at(now),
        config.clone(),
        u64::MAX,
        requests.collect(),
        drivers,
        edges,
    )
    .unwrap()
}

/// Windows with everything a snapshot may hold, one after the other.
fn windows() -> Vec<(Option<WindowId>, WindowSnapshot)> {
    let plain = RegionConfig::default();
    let mut patch = serde_json::Map::new();
    patch.insert("idle_weight".into(), serde_json::json!(0.1));
    let tuned = plain.patched(&patch).unwrap().config;
    let mut away = DriverSnapshot::clone(&busy_driver("d2", 2));
    away.presence = Presence::Offline;
    let mut driving = DriverSnapshot::clone(&busy_driver("d3", 3));
    driving.held = Held::OnTrip;
    driving.trip_end = Some(TripEnd {
        place: place(0.3),
        at_ms: at(90_000),
    });
    let (away, driving) = (Arc::new(away), Arc::new(driving));
    let mut nowhere = DriverSnapshot::clone(&busy_driver("d7", 0));
    nowhere.position = None;
    let edge = SnapshotEdge {
        request_id: request("r9"),
        driver_id: driver("d7"),
        eta_s: 0.1 + 0.7,
    };
    let one = busy_driver("d1", 1);
    vec![
        (
            None,
            window(
                3_000,
                &plain,
                &[("r1", 0), ("r2", 0)],
                vec![one.clone(), away.clone(), driving.clone()],
                None,
            ),
        ),
        // the caller's own, in between, with its own drivers and edges
        (
            Some(WindowId::new("w-1").unwrap()),
            window(
                4_000,
                &plain,
                &[("r9", 0)],
                vec![Arc::new(nowhere)],
                Some(vec![edge]),
            ),
        ),
        (
            None,
            window(
                6_000,
                &plain,
                &[("r2", 1), ("r3", 0)],
                vec![
                    one,
                    busy_driver("d2", 5),
                    driving.clone(),
                    busy_driver("d4", 4),
                ],
                None,
            ),
        ),
        (
            None,
            window(
                9_000,
                &tuned,
                &[("r2", 2)],
                vec![driving.clone(), busy_driver("d4", 8)],
                None,
            ),
        ),
        (None, window(12_000, &tuned, &[], vec![], None)),
        (
            None,
            window(63_000, &tuned, &[("r5", 0)], vec![driving.clone()], None),
        ),
        // the clock went back
        (
            None,
            window(2_000, &tuned, &[("r6", 0)], vec![driving], None),
        ),
    ]
}

#[test]
fn windows_told_as_deltas_are_read_back_as_they_were() {
    let dir = tempdir().unwrap();
    let (recorder, _) = recorder(dir.path());
    let windows = windows();
    let decided: Vec<(WindowDecision, WindowDecision)> = windows
        .iter()
        .map(|(_, snapshot)| {
            let eta = StraightLine::of(snapshot.config());
            let batch = decide_batch(snapshot, &eta, &Options::default(), |_| ()).unwrap();
            (batch.decision, decide_oldest_first(snapshot, &eta))
        })
        .collect();
    let lost = [request("r2")];
    for (n, ((id, snapshot), (decision, greedy))) in (1..).zip(windows.iter().zip(&decided)) {
        recorder.window(WindowEntry {
            region: &region(),
            window_seq: id.is_none().then(|| WindowSeq::new(n)),
            window_id: id.as_ref(),
            source: if id.is_some() {
                WindowSource::Own
            } else {
                WindowSource::Batch
            },
            snapshot,
            decision,
            claim_lost: &lost,
            repaired: (n % 2 == 0).then_some(greedy),
        });
    }
    recorder.close();

    let read = entries(dir.path());
    let read: Vec<_> = read
        .iter()
        .filter_map(|entry| match entry {
            Entry::Window(window) => Some(window),
            _ => None,
        })
        .collect();
    assert_eq!(read.len(), windows.len());
    for (n, (read, ((id, snapshot), (decision, greedy)))) in
        (1..).zip(read.iter().zip(windows.iter().zip(&decided)))
    {
        assert_eq!(read.snapshot, *snapshot, "window {n}");
        assert_eq!(read.decision, *decision, "window {n}");
        assert_eq!(read.window_id, *id);
        assert_eq!(read.claim_lost, lost);
        assert_eq!(read.repaired.as_ref(), (n % 2 == 0).then_some(greedy));
    }
    assert_eq!(
        full_ones(&segments(recorder.run_directory())[0]),
        [true, true, false, false, false, true, true]
    );
}

/// Which windows of a segment are told in full.
fn full_ones(segment: &Path) -> Vec<bool> {
    let text = zstd::stream::decode_all(&fs::read(segment).unwrap()[..]).unwrap();
    let lines = text.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap())
        .filter_map(|line| line["window"]["full"].as_bool())
        .collect()
}

/// What is left of a greedy decision when one pair is lost at the claim and nobody else will do.
fn without_first(
    decision: &WindowDecision,
    snapshot: &WindowSnapshot,
) -> (RequestId, WindowDecision) {
    let mut left = decision.clone();
    let lost = left.assignments.remove(0);
    let id = lost.request_id;
    left.unmatched.push(Unmatched {
        request_id: id.clone(),
        reason: Reason::ClaimLost,
    });
    let place = |id: &RequestId| snapshot.requests().iter().position(|p| p.request.id == *id);
    left.unmatched
        .sort_by_key(|unmatched| place(&unmatched.request_id));
    // each of these riders has a price of their own
    let price = CostMs::from_seconds(0.1 + 0.2).get();
    let cost = CostMs::from_seconds(lost.cost_s).get();
    left.objective = CostMs::new(left.objective.get() - cost + price);
    (id, left)
}

fn verified_fallback(change: &dyn Fn(&mut WindowDecision)) -> VerifyReport {
    let dir = tempdir().unwrap();
    let (recorder, _) = recorder(dir.path());
    let near = |id: &str| {
        let mut driver = DriverSnapshot::clone(&busy_driver(id, 0));
        driver.position = Some(Position::new(place(0.002)));
        driver.acceptance_rate = None;
        driver.cooldowns.clear();
        Arc::new(driver)
    };
    let config = RegionConfig::default();
    let requests = [("r1", 0), ("r2", 0)];
    let snapshot = window(
        3_000,
        &config,
        &requests,
        vec![near("d1"), near("d2")],
        None,
    );
    let decision = decide_oldest_first(&snapshot, &StraightLine::of(&config));
    assert_eq!(decision.assignments.len(), 2);
    let (lost, mut repaired) = without_first(&decision, &snapshot);
    change(&mut repaired);
    recorder.window(WindowEntry {
        region: &region(),
        window_seq: Some(WindowSeq::new(1)),
        window_id: None,
        source: WindowSource::Fallback,
        snapshot: &snapshot,
        decision: &decision,
        claim_lost: &[lost],
        repaired: Some(&repaired),
    });
    recorder.close();
    verify(&[dir.path().to_owned()], &|_, _| ()).unwrap()
}

type Change<'a> = (&'a str, &'a dyn Fn(&mut WindowDecision));

#[test]
fn a_fallback_that_lost_a_claim_is_checked_for_validity() {
    let report = verified_fallback(&|_| ());
    assert_eq!(report.differences, []);
    assert_eq!((report.decisions.identical, report.repairs.checked), (1, 1));
    let changes: [Change<'_>; 5] = [
        ("is not kept", &|d| d.assignments[0].eta_s += 1e-9),
        ("objective", &|d| {
            d.objective = CostMs::new(d.objective.get() + 1);
        }),
        ("not kept", &|d| {
            let pair = d.assignments.remove(0);
            let reason = Reason::NotWorthIt;
            d.unmatched.push(Unmatched {
                request_id: pair.request_id,
                reason,
            });
        }),
        ("was lost", &|d| d.assignments[0].driver_id = driver("d1")),
        ("nothing is said", &|d| d.unmatched.clear()),
    ];
    for (word, change) in changes {
        let report = verified_fallback(change);
        assert_eq!(report.repairs.different, 1, "{word}");
        assert!(
            report.differences[0].detail.contains(word),
            "{word}: {:?}",
            report.differences
        );
    }
}

#[test]
fn own_windows_with_edges_and_empty_windows_are_decided_again() {
    let dir = tempdir().unwrap();
    let (recorder, _) = recorder(dir.path());
    for (n, (id, snapshot)) in (1..).zip(&windows()) {
        let eta = StraightLine::of(snapshot.config());
        let batch = decide_batch(snapshot, &eta, &Options::default(), |_| ()).unwrap();
        recorder.window(WindowEntry {
            region: &region(),
            window_seq: id.is_none().then(|| WindowSeq::new(n)),
            window_id: id.as_ref(),
            source: if id.is_some() {
                WindowSource::Own
            } else {
                WindowSource::Batch
            },
            snapshot,
            decision: &batch.decision,
            claim_lost: &[],
            repaired: None,
        });
    }
    recorder.close();
    let report = verify(&[dir.path().to_owned()], &|_, _| ()).unwrap();
    assert_eq!(report.differences, []);
    assert_eq!((report.windows.own, report.decisions.identical), (1, 7));
}
