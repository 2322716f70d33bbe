//! Graphs with side constraints, and the slowest way to solve them.

use kheya_solver::{Constraint, Constraints, Graph};
use proptest::prelude::*;

use super::{Random, Shape, graphs};

/// A graph with up to four constraints: caps, floors, both; over drivers, requests, both or all; sets
/// that overlap, are empty or whole; floors that can and cannot be met.
pub(crate) fn constrained(shape: Shape) -> impl Strategy<Value = (Graph, Constraints)> {
    (graphs(shape), 1..=4_usize, any::<u64>()).prop_map(|(graph, count, seed)| {
        let mut random = Random::new(seed);
        let given = (0..count).map(|index| constraint(&graph, index, &mut random));
        let constraints = Constraints::new(graph.requests(), graph.drivers(), given.collect());
        (graph, constraints.expect("made to fit"))
    })
}

fn constraint(graph: &Graph, index: usize, random: &mut Random) -> Constraint {
    let sets = random.within(0..=3);
    let most = graph.requests().min(graph.drivers()) as i64;
    let (a, b) = (random.within(0..=most / 2 + 1), random.within(0..=most));
    let (min, max) = (a.min(b) as u32, b.max(a) as u32);
    let kind = random.within(0..=2);
    Constraint {
        name: format!("c{index}"),
        drivers: (sets & 1 != 0).then(|| some_of(graph.drivers(), random)),
        requests: (sets & 2 != 0).then(|| some_of(graph.requests(), random)),
        max: (kind != 1).then_some(if kind == 0 { min } else { max }),
        min: (kind != 0).then_some(min),
    }
}

fn some_of(count: usize, random: &mut Random) -> Vec<u32> {
    let share = random.within(0..=100);
    (0..count as u32)
        .filter(|_| random.within(0..=99) < share)
        .collect()
}

/// The least total shortfall, and the least cost with it, by trying every matching.
pub(crate) fn try_everything(graph: &Graph, constraints: &Constraints) -> (u32, i64) {
    let mut driver_of = vec![None; graph.requests()];
    let mut best = (u32::MAX, i64::MAX);
    try_from(graph, constraints, &mut driver_of, 0, 0, &mut best);
    best
}

fn try_from(
    graph: &Graph,
    constraints: &Constraints,
    driver_of: &mut Vec<Option<u32>>,
    request: usize,
    cost: i64,
    best: &mut (u32, i64),
) {
    if request == graph.requests() {
        let counts = constraints.count(driver_of);
        let over = |(k, &count): (usize, &u32)| constraints.max(k).is_some_and(|max| count > max);
        if !counts.iter().enumerate().any(over) {
            let short = counts
                .iter()
                .enumerate()
                .map(|(k, &n)| constraints.shortfall(k, n))
                .sum();
            *best = (*best).min((short, cost));
        }
        return;
    }
    let unmatched = cost + graph.unmatched_cost(request);
    try_from(graph, constraints, driver_of, request + 1, unmatched, best);
    for (driver, more) in graph.row(request) {
        if !driver_of.contains(&Some(driver)) {
            driver_of[request] = Some(driver);
            try_from(
                graph,
                constraints,
                driver_of,
                request + 1,
                cost + more,
                best,
            );
            driver_of[request] = None;
        }
    }
}
