//! Solve times of geometric windows (short of drivers, balanced, plenty, real and large), of families
//! that are hard for other solvers, and what it takes to explain one request.
//!
//! From a graph with unsorted rows to matching and prices; building the graph is not in it.
//! `cargo bench -p kheya-solver`, or a part: `cargo bench -p kheya-solver -- families`. Times of a shared machine are noise: compare two commits side by
//! side, and take the least.
#![allow(clippy::expect_used, reason = "a bench fails by panicking")]

#[path = "../tests/random_graphs/mod.rs"]
mod random_graphs;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use kheya_solver::{Explainer, Options, least_driver_prices, solve};
use random_graphs::families::Family;
use random_graphs::geometric::Geometric;

const CANDIDATES: usize = 30;
const SIDES: [(usize, usize); 7] = [
    (50, 200),
    (500, 5000),
    (1000, 1000),
    (2000, 800),
    (5000, 10_000),
    (20_000, 40_000),
    (20_000, 8000),
];

fn solve_windows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("solve");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(3));
    for (requests, drivers) in SIDES {
        let graph = Geometric::new(requests, drivers, CANDIDATES).graph(1);
        let cold = solve(&graph, &Options::default()).expect("sparse solves any graph");
        let name = format!("{requests}x{drivers}");
        group.bench_function(BenchmarkId::new("cold", &name), |bencher| {
            bencher.iter(|| solve(black_box(&graph), &Options::default()));
        });
        let warm = Options {
            warm_start: Some(&cold.driver_prices),
            ..Options::default()
        };
        group.bench_function(BenchmarkId::new("warm, same window", &name), |bencher| {
            bencher.iter(|| solve(black_box(&graph), &warm));
        });
        group.bench_function(BenchmarkId::new("verify", &name), |bencher| {
            bencher.iter(|| cold.verify(black_box(&graph)));
        });
        group.bench_function(BenchmarkId::new("least prices", &name), |bencher| {
            bencher.iter(|| least_driver_prices(black_box(&graph), &cold));
        });
    }
    group.finish();
}

/// Edges of a graph of the families: enough that a cliff would show.
const FAMILY_EDGES: usize = 60_000;

fn solve_families(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("families");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(2));
    for family in Family::ALL {
        let graph = family.graph(FAMILY_EDGES, 1);
        group.bench_function(family.name(), |bencher| {
            bencher.iter(|| solve(black_box(&graph), &Options::default()));
        });
    }
    group.finish();
}

fn explain(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("explain");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(3));
    for (requests, drivers) in SIDES {
        let graph = Geometric::new(requests, drivers, CANDIDATES).graph(1);
        let solution = solve(&graph, &Options::default()).expect("sparse solves any graph");
        let name = format!("{requests}x{drivers}");
        group.bench_function(BenchmarkId::new("prepare", &name), |bencher| {
            bencher.iter(|| Explainer::new(black_box(&graph), &solution).map(|_| ()));
        });
        let explainer = Explainer::new(&graph, &solution).expect("an optimum");
        let mut request = 0;
        group.bench_function(BenchmarkId::new("one request", &name), |bencher| {
            bencher.iter(|| {
                request = (request + 1) % requests;
                explainer.explain(black_box(request))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, solve_windows, solve_families, explain);
criterion_main!(benches);
