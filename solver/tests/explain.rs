//! What an explanation says against re-solves with the pair forced.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod random_graphs;

use kheya_solver::{
    Budget, CertificateError, ExplainError, Explainer, Explanation, Graph, Method, Options,
    Solution, Status, objective_of, solve,
};
use proptest::prelude::*;
use random_graphs::geometric::{Geometric, islands};
use random_graphs::{Random, Shape, brute_force, edges, graphs};

fn optimal(graph: &Graph) -> Solution {
    solve(graph, &Options::default()).expect("sparse solves any graph")
}

fn explained(graph: &Graph, solution: &Solution, request: usize) -> Explanation {
    let explainer = Explainer::new(graph, solution).expect("an optimum");
    explainer.explain(request).expect("a request of the graph")
}

/// The graph without a request and a driver; the request stays as a row that pays nothing.
fn without(graph: &Graph, request: usize, driver: u32) -> Graph {
    let mut unmatched = graph.unmatched_costs().to_vec();
    unmatched[request] = 0;
    let left = edges(graph)
        .into_iter()
        .filter(|&(i, j, _)| i as usize != request && j != driver);
    Graph::from_edges(graph.requests(), graph.drivers(), unmatched, left).expect("smaller")
}

/// Holds an explanation against the contract, with `optimum` to re-solve.
fn check(graph: &Graph, solution: &Solution, told: &Explanation, optimum: fn(&Graph) -> i64) {
    let request = told.request as usize;
    assert_eq!(told.driver, solution.driver_of[request]);
    let others = graph.row(request).filter(|&(j, _)| Some(j) != told.driver);
    let mut wanted: Vec<(i64, u32)> = others.map(|(j, cost)| (cost, j)).collect();
    wanted.sort_unstable();
    let listed: Vec<_> = told.swaps.iter().map(|s| (s.cost, s.driver)).collect();
    assert_eq!(listed, wanted, "every other candidate, by (cost, driver)");
    let cheaper = told.cheaper().map(|swap| (swap.cost, swap.driver));
    wanted.retain(|&(cost, _)| told.driver.is_none() || cost < told.cost);
    assert_eq!(cheaper.collect::<Vec<_>>(), wanted);

    for swap in &told.swaps {
        let rest = optimum(&without(graph, request, swap.driver));
        assert_eq!(swap.swap_cost, swap.cost + rest - solution.objective);
        assert!(0 <= swap.at_least && swap.at_least <= swap.swap_cost);
        let holder = solution
            .driver_of
            .iter()
            .position(|&d| d == Some(swap.driver));
        assert_eq!(swap.held_by.map(|request| request as usize), holder);

        // the moves make a matching with the pair that costs just that
        let mut moved = solution.driver_of.clone();
        for step in &swap.moves {
            let place = &mut moved[step.request as usize];
            assert_eq!(
                *place, step.from,
                "each request moves once, from what it has"
            );
            assert_ne!(step.from, step.to);
            *place = step.to;
        }
        assert_eq!(moved[request], Some(swap.driver));
        let mut used: Vec<u32> = moved.iter().flatten().copied().collect();
        used.sort_unstable();
        assert!(used.windows(2).all(|pair| pair[0] != pair[1]), "twice");
        let edges_only = (0..graph.requests())
            .all(|i| moved[i].is_none_or(|driver| graph.cost(i, driver).is_some()));
        assert!(edges_only, "a pair without an edge");
        assert_eq!(
            objective_of(graph, &moved),
            solution.objective + swap.swap_cost
        );
        let idle = solution
            .driver_of
            .iter()
            .flatten()
            .find(|driver| !used.contains(driver));
        assert_eq!(swap.left_idle, idle.copied());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_swap_costs_what_trying_everything_with_the_pair_costs(graph in graphs(Shape::Tiny)) {
        let solution = optimal(&graph);
        for request in 0..graph.requests() {
            check(&graph, &solution, &explained(&graph, &solution, request), brute_force);
        }
    }

    #[test]
    fn an_explanation_is_right_by_any_optimum_and_any_prices(graph in graphs(Shape::Tiny)) {
        let options = Options { method: Method::Hungarian, ..Options::default() };
        let solution = solve(&graph, &options).expect("small enough");
        for request in 0..graph.requests() {
            check(&graph, &solution, &explained(&graph, &solution, request), brute_force);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_swap_costs_what_a_re_solve_with_the_pair_costs(graph in graphs(Shape::Small)) {
        let solution = optimal(&graph);
        for request in 0..graph.requests().min(6) {
            let told = explained(&graph, &solution, request);
            check(&graph, &solution, &told, |graph| optimal(graph).objective);
        }
    }

    #[test]
    fn the_order_of_edges_does_not_matter(graph in graphs(Shape::Small), seed in any::<u64>()) {
        let mut shuffled = edges(&graph);
        Random::new(seed).shuffle(&mut shuffled);
        let unmatched = graph.unmatched_costs().to_vec();
        let shuffled = Graph::from_edges(graph.requests(), graph.drivers(), unmatched, shuffled);
        let shuffled = shuffled.expect("as before");
        let solution = optimal(&graph);
        for request in 0..graph.requests() {
            prop_assert_eq!(
                explained(&graph, &solution, request),
                explained(&shuffled, &solution, request)
            );
        }
    }
}

#[test]
fn windows_short_of_drivers_balanced_and_plenty_are_explained() {
    for (graph, seed) in [
        (Geometric::new(60, 25, 12).graph(1), 1),
        (Geometric::new(120, 120, 10).graph(2), 2),
        (Geometric::new(80, 200, 12).graph(3), 3),
        (islands(3, 40), 4),
    ] {
        let solution = optimal(&graph);
        let mut random = Random::new(seed);
        let mut chains = 0;
        for _ in 0..12 {
            let request = random.within(0..=graph.requests() as i64 - 1) as usize;
            let told = explained(&graph, &solution, request);
            check(&graph, &solution, &told, |graph| optimal(graph).objective);
            chains += told.swaps.iter().filter(|s| s.moves.len() > 1).count();
        }
        assert!(chains > 20, "only {chains} swaps move anyone else");
    }
}

#[test]
fn a_chain_is_told_move_by_move() {
    // r0 – d0, r1 – d1, r2 – d2 at least cost; d2 for r0 pushes r2 to d1 and r1 to d0.
    let edges = [
        (0, 0, 30),
        (0, 2, 10),
        (1, 0, 35),
        (1, 1, 20),
        (2, 1, 18),
        (2, 2, 5),
    ];
    let graph = Graph::from_edges(3, 3, vec![900; 3], edges).expect("valid graph");
    let solution = optimal(&graph);
    assert_eq!(solution.driver_of, [Some(0), Some(1), Some(2)]);
    let told = explained(&graph, &solution, 0);
    let [swap] = &told.swaps[..] else {
        panic!("one other candidate: {told:?}");
    };
    assert_eq!((swap.driver, swap.held_by), (2, Some(2)));
    assert_eq!(swap.swap_cost, (10 + 18 + 35) - (30 + 20 + 5));
    let moves: Vec<_> = swap
        .moves
        .iter()
        .map(|m| (m.request, m.from, m.to))
        .collect();
    let wanted = [
        (0, Some(0), Some(2)),
        (2, Some(2), Some(1)),
        (1, Some(1), Some(0)),
    ];
    assert_eq!((moves.as_slice(), swap.left_idle), (&wanted[..], None));
}

#[test]
fn a_driver_given_up_serves_who_had_none() {
    // Only d0 is worth much; r1 goes without while r0 has it.
    let graph = Graph::from_edges(2, 2, vec![100, 50], [(0, 0, 10), (0, 1, 80), (1, 0, 20)]);
    let graph = graph.expect("valid graph");
    let solution = optimal(&graph);
    assert_eq!(solution.driver_of, [Some(0), None]);
    let told = explained(&graph, &solution, 0);
    assert_eq!(told.cheaper().count(), 0);
    // 80 + 20 instead of 10 + 50
    let swap = &told.swaps[0];
    assert_eq!((swap.swap_cost, swap.moves.len()), (40, 2));
    assert_eq!((swap.moves[1].request, swap.moves[1].to), (1, Some(0)));
    let left = explained(&graph, &solution, 1);
    assert_eq!((left.driver, left.cost), (None, 50));
    assert_eq!(left.cheaper().count(), 1);
    assert_eq!(left.swaps[0].swap_cost, 40);
}

#[test]
fn what_is_no_proven_optimum_is_refused() {
    let graph = Geometric::new(60, 25, 12).graph(1);
    let options = Options {
        method: Method::GreedyEdge,
        budget: Some(Budget::polls(0)),
        ..Options::default()
    };
    let cut = solve(&graph, &options).expect("greedy takes any graph");
    assert_eq!(cut.status, Status::Feasible);
    let refusal = Explainer::new(&graph, &cut).err().expect("not optimal");
    let gap_abs = cut.gap_abs();
    assert_eq!(refusal, ExplainError::NotOptimal { gap_abs });

    let good = optimal(&graph);
    let mut spoiled = good.clone();
    spoiled.driver_prices.pop();
    let refusal = Explainer::new(&graph, &spoiled).err();
    assert!(matches!(
        refusal,
        Some(ExplainError::Certificate(CertificateError::Shape { .. }))
    ));
    let explainer = Explainer::new(&graph, &good).expect("an optimum");
    let outside = explainer.explain(60).expect_err("there are 60");
    assert_eq!(outside.to_string(), "request 60 is outside 0..60");
}
