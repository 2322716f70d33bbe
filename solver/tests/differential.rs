//! The exact methods against each other and against trying everything.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use kheya_solver::{
    Method, Options, Solution, Status, greedy_edge, greedy_oldest, objective_of, solve,
};
use proptest::prelude::*;
use random_graphs::{Shape, brute_force, graphs};

fn solve_with(graph: &kheya_solver::Graph, method: Method) -> Solution {
    let options = Options {
        method,
        ..Options::default()
    };
    solve(graph, &options).expect("small enough for every method")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn exact_methods_agree_with_trying_everything(graph in graphs(Shape::Tiny)) {
        let least = brute_force(&graph);
        for method in [Method::Auto, Method::Sparse, Method::Hungarian] {
            let solution = solve_with(&graph, method);
            prop_assert_eq!(solution.objective, least, "{}", method);
            let expected = if graph.edges() == 0 { Status::Empty } else { Status::Optimal };
            prop_assert_eq!(solution.status, expected);
            prop_assert_eq!((solution.gap_abs(), solution.gap()), (0, 0.0));
            prop_assert_eq!(solution.verify(&graph), Ok(()));
        }
    }

    #[test]
    fn greedy_is_valid_and_never_better_than_exact(graph in graphs(Shape::Tiny)) {
        let solution = solve_with(&graph, Method::GreedyEdge);
        prop_assert_eq!(solution.verify(&graph), Ok(()));
        prop_assert_eq!(objective_of(&graph, &greedy_edge(&graph)), solution.objective);
        let least = brute_force(&graph);
        prop_assert!(least <= solution.objective);
        prop_assert!(solution.dual_bound <= least);
        prop_assert!(least <= objective_of(&graph, &greedy_oldest(&graph)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn sparse_agrees_with_hungarian(graph in graphs(Shape::Small)) {
        let (sparse, dense) = (solve_with(&graph, Method::Sparse), solve_with(&graph, Method::Hungarian));
        prop_assert_eq!(sparse.objective, dense.objective);
        prop_assert_eq!(sparse.verify(&graph), Ok(()));
        prop_assert_eq!(dense.verify(&graph), Ok(()));
    }
}
