//! A whole decision, from a frozen window to everybody's outcome: search, ETAs, graph, solve, proof.
//!
//! `cargo bench --bench decide`. Windows of a busy region (500 requests, 5,000 cars) and of the
//! largest snapshot (2,000 requests) with cars to spare, as many, and too few. Times of a shared
//! machine are noise: compare two commits side by side, and take the least.
#![allow(clippy::expect_used, reason = "a bench fails by panicking")]

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use kheya::{
    config::RegionConfig,
    decision::{
        DriverSnapshot, PendingRequest, RequestSnapshot, WindowSnapshot, decide_batch,
        decide_oldest_first, explain_request, read_window, write_window,
    },
    domain::{DriverId, Place, RequestId, UnixMs},
    eta::StraightLine,
    supply::Position,
};
use kheya_solver::Options;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

const NOW: UnixMs = UnixMs::new(1_767_720_600_000);
const SIDES: [(usize, usize); 4] = [(500, 5000), (2000, 10_000), (2000, 2000), (2000, 800)];

/// A city 20 km across, the denser the nearer to its middle.
fn window(requests: usize, drivers: usize) -> WindowSnapshot {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut place = || {
        let mut off = || {
            let half = || f64::from(u32::MAX / 2);
            let mut draw = || (f64::from(random.next_u32()) - half()) / half();
            draw() * draw().abs() * 0.09
        };
        let place = Place::new(23.75 + off(), 90.40 + off());
        Position::new(place.expect("a place of the city"))
    };
    let requests = (0..requests).map(|i| PendingRequest {
        request: Arc::new(RequestSnapshot {
            id: RequestId::new(&format!("r{i}")).expect("an id"),
            rider_id: None,
            pickup: Some(place()),
            vehicle_classes: vec![],
            requested_at_ms: NOW,
            unmatched_cost_s: None,
            max_pickup_eta_s: None,
            exclude_driver_ids: vec![],
        }),
        left_over: 0,
    });
    let requests = requests.collect();
    let drivers = (0..drivers).map(|i| {
        let id = DriverId::new(&format!("d{i}")).expect("an id");
        Arc::new(DriverSnapshot::available(id, place()))
    });
    let drivers = drivers.collect();
    WindowSnapshot::new(NOW, RegionConfig::default(), 1, requests, drivers, None)
        .expect("a sound window")
}

fn decide(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(3));
    for (requests, drivers) in SIDES {
        let snapshot = window(requests, drivers);
        let eta = StraightLine::of(snapshot.config());
        let name = format!("{requests}x{drivers}");
        group.bench_function(BenchmarkId::new("batch", &name), |bencher| {
            bencher.iter(|| {
                decide_batch(black_box(&snapshot), &eta, &Options::default(), |_| ())
                    .map(|batch| batch.decision.objective)
            });
        });
        group.bench_function(BenchmarkId::new("oldest first", &name), |bencher| {
            bencher.iter(|| decide_oldest_first(black_box(&snapshot), &eta));
        });
        let batch = decide_batch(&snapshot, &eta, &Options::default(), |_| ());
        let batch = batch.expect("a window is decided");
        group.bench_function(BenchmarkId::new("explain one", &name), |bencher| {
            bencher.iter(|| explain_request(black_box(&snapshot), &batch, "r7"));
        });
        let text = write_window(&snapshot).expect("JSON");
        group.bench_function(BenchmarkId::new("read from a file", &name), |bencher| {
            bencher.iter(|| read_window(black_box(text.as_bytes())));
        });
    }
    group.finish();
}

criterion_group!(benches, decide);
criterion_main!(benches);
