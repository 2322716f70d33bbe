//! Times a window under side constraints: requests, drivers, candidates a request, and how many of
//! each kind of constraint.
//!
//! `cargo run --release -p kheya-solver --example time_constraints -- 500 5000 40 3`
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement, run by hand"
)]

use std::time::Instant;

use kheya_solver::{Constraint, Constraints, Options, solve};

#[path = "../tests/random_graphs/mod.rs"]
mod random_graphs;

use random_graphs::{Random, geometric::Geometric};

fn main() {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse().ok())
        .collect();
    let &[requests, drivers, candidates, count] = arguments.as_slice() else {
        println!("usage: time_constraints REQUESTS DRIVERS CANDIDATES CONSTRAINTS");
        return;
    };
    for seed in 1..=8_u64 {
        let graph = Geometric::new(requests, drivers, candidates).graph(seed);
        let free = solve(&graph, &Options::default()).expect("sparse solves any graph");
        let mut random = Random::new(seed);
        let mut some = |count: usize| -> Vec<u32> {
            (0..count as u32)
                .filter(|_| random.within(0..=1) == 0)
                .collect()
        };
        let mut given: Vec<Constraint> = (0..count)
            .map(|index| Constraint {
                name: format!("c{index:02}"),
                drivers: Some(some(graph.drivers())),
                requests: Some(some(graph.requests())),
                max: Some(u32::MAX),
                min: None,
            })
            .collect();
        let counter = Constraints::new(requests, graph.drivers(), given.clone()).expect("fits");
        let counts = counter.count(&free.driver_of);
        for (index, (constraint, count)) in given.iter_mut().zip(counts).enumerate() {
            constraint.max = (index % 2 == 0).then_some(count * 9 / 10);
            constraint.min = (index % 2 == 1).then_some(count * 11 / 10);
        }
        let constraints = Constraints::new(requests, graph.drivers(), given).expect("fits");
        let options = Options {
            constraints: Some(&constraints),
            ..Options::default()
        };
        let started = Instant::now();
        let solution = solve(&graph, &options).expect("within limits");
        let took = started.elapsed();
        solution.verify_with(&graph, &constraints).expect("proven");
        println!(
            "{took:.1?}  {} by {}, objective {} ({} without), gap {}, short {}",
            solution.status,
            solution.proof.name(),
            solution.objective,
            free.objective,
            solution.gap_abs(),
            solution
                .constraints
                .iter()
                .map(|c| c.shortfall)
                .sum::<u32>()
        );
    }
}
