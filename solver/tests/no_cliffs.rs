//! Graphs that are hard for one kind of solver or another are not much harder for this one.
//!
//! Work is counted, not timed: a budget is polled once for every 512 units of work, a unit being
//! about one edge looked at, so the number of polls is the same on every machine.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kheya_solver::{Budget, Graph, Options, Status, solve};
use random_graphs::families::Family;

const EDGES: usize = 60_000;

/// Polls of a solve on one thread.
fn work(graph: &Graph) -> u64 {
    let polls = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&polls);
    let options = Options {
        budget: Some(Budget::from_fn(move || {
            counting.fetch_add(1, Ordering::Relaxed);
            false
        })),
        ..Options::default()
    };
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let solution = one
        .expect("a pool of one")
        .install(|| solve(graph, &options));
    let solution = solution.expect("sparse solves any graph");
    assert_eq!(solution.verify(graph), Ok(()));
    assert_eq!(solution.status, Status::Optimal);
    polls.load(Ordering::Relaxed)
}

/// How many times the work of the easy window a graph of as many edges may take.
const MOST_TIMES: f64 = 10.0;

#[test]
fn no_family_takes_ten_times_the_work_of_an_easy_window() {
    let easy = work(&Family::Plenty.graph(EDGES, 1));
    assert!(easy > 50, "{easy} polls are too few to compare");
    for family in Family::ALL {
        let graph = family.graph(EDGES, 1);
        let share = graph.edges() as f64 / EDGES as f64;
        assert!(
            (0.9..1.1).contains(&share),
            "{family:?}: {} edges",
            graph.edges()
        );
        let times = work(&graph) as f64 / easy as f64;
        println!("{:<12} {times:8.2}", family.name());
        assert!(
            times < MOST_TIMES,
            "{family:?} takes {times:.1} times the work"
        );
    }
}
