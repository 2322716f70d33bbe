//! A solve cut short, wherever it is cut, gives a valid matching and a true bound.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kheya_solver::{Budget, Graph, Method, Options, Status, solve};
use proptest::prelude::*;
use random_graphs::geometric::{Geometric, islands};
use random_graphs::{Shape, edges, graphs};

/// Polls an uncut solve makes.
fn polls_of(graph: &Graph, options: &Options<'_>) -> u64 {
    let polls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&polls);
    let budget = Budget::from_fn(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    });
    let counted = Options {
        budget: Some(budget),
        ..options.clone()
    };
    let solution = solve(graph, &counted).expect("sparse solves any graph");
    assert!(options.method == Method::GreedyEdge || solution.status != Status::Feasible);
    polls.load(Ordering::Relaxed)
}

/// Cuts a solve at many or all of its polls and checks each answer; returns how many were cut.
fn cut_everywhere(graph: &Graph, options: &Options<'_>, step: usize) -> usize {
    let least = solve(graph, &Options::default())
        .expect("sparse solves any graph")
        .objective;
    // What needs no search at all: each request at its cheapest, or each driver at its best.
    let cheapest = |i: usize| {
        graph
            .row(i)
            .fold(graph.unmatched_cost(i), |u, (_, c)| u.min(c))
    };
    let plenty: i64 = (0..graph.requests()).map(cheapest).sum();
    let mut saved = vec![0; graph.drivers()];
    for (i, j, cost) in edges(graph) {
        saved[j as usize] = graph
            .unmatched_cost(i as usize)
            .saturating_sub(cost)
            .max(saved[j as usize]);
    }
    let scarce = graph.unmatched_costs().iter().sum::<i64>() - saved.iter().sum::<i64>();
    let free_bound = plenty.max(scarce);
    let mut cut = 0;
    for polls in (0..=polls_of(graph, options)).step_by(step) {
        let budget = Some(Budget::polls(polls));
        let solution = solve(
            graph,
            &Options {
                budget,
                ..options.clone()
            },
        )
        .expect("sparse solves any graph");
        assert_eq!(solution.verify(graph), Ok(()), "cut after {polls} polls");
        assert!(solution.dual_bound <= least && least <= solution.objective);
        assert!(
            solution.dual_bound >= free_bound,
            "prices must not worsen the bound"
        );
        assert_eq!(solution.status == Status::Feasible, solution.gap_abs() > 0);
        assert_eq!(solution.gap() > 0.0, solution.gap_abs() > 0);
        cut += usize::from(solution.status == Status::Feasible);
    }
    cut
}

#[test]
fn every_stopping_point_gives_a_valid_answer() {
    for (requests, drivers) in [(60, 25), (50, 50), (40, 90), (150, 150)] {
        let graph = Geometric::new(requests, drivers, 12).graph(7);
        for method in [Method::Sparse, Method::GreedyEdge] {
            let options = Options {
                method,
                ..Options::default()
            };
            assert!(
                cut_everywhere(&graph, &options, 1) > 0,
                "the budget must cut something"
            );
        }
        let prices: Vec<i64> = (0..drivers as i64).map(|j| j * 37 % 5000).collect();
        let warm = Options {
            warm_start: Some(&prices),
            ..Options::default()
        };
        assert!(
            cut_everywhere(&graph, &warm, 1) > 0,
            "the budget must cut something"
        );
    }
    let graph = Geometric::new(1000, 1000, 30).graph(7);
    assert!(cut_everywhere(&graph, &Options::default(), 97) > 0);
    let parts = islands(24, 100);
    assert!(cut_everywhere(&parts, &Options::default(), 7) > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_stopping_point_of_random_graphs_gives_a_valid_answer(graph in graphs(Shape::Small)) {
        cut_everywhere(&graph, &Options::default(), 1);
    }
}

#[test]
fn hungarian_is_not_started_once_the_budget_is_over() {
    let graph = Geometric::new(30, 30, 8).graph(1);
    let budget = Some(Budget::polls(0));
    let options = Options {
        method: Method::Hungarian,
        budget,
        ..Options::default()
    };
    let solution = solve(&graph, &options).expect("small enough");
    assert_eq!(
        (solution.status, solution.verify(&graph)),
        (Status::Feasible, Ok(()))
    );
}

#[test]
fn no_time_at_all_still_gives_an_answer() {
    let graph = Geometric::new(2000, 800, 30).graph(3);
    for method in [Method::Auto, Method::Sparse, Method::GreedyEdge] {
        let budget = Some(Budget::wall(Duration::ZERO));
        let options = Options {
            method,
            budget,
            ..Options::default()
        };
        let solution = solve(&graph, &options).expect("sparse solves any graph");
        assert_eq!(
            (solution.status, solution.verify(&graph)),
            (Status::Feasible, Ok(()))
        );
    }
}

#[test]
fn more_time_than_needed_changes_nothing() {
    let graph = Geometric::new(300, 300, 20).graph(3);
    let plain = solve(&graph, &Options::default()).expect("sparse solves any graph");
    for budget in [Duration::from_hours(1), Duration::MAX] {
        let options = Options {
            budget: Some(Budget::wall(budget)),
            ..Options::default()
        };
        assert_eq!(
            solve(&graph, &options).expect("sparse solves any graph"),
            plain
        );
    }
}
