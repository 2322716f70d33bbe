//! The linear program over all edges against the other exact methods.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use kheya_solver::{Graph, LpBackend, MAX_LP_EDGES, Method, Options, SolveError, Status, solve};
use proptest::prelude::*;
use random_graphs::{Shape, graphs};

fn back_ends() -> Vec<LpBackend> {
    vec![
        LpBackend::Microlp,
        #[cfg(feature = "highs")]
        LpBackend::Highs,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_program_agrees_with_sparse(graph in graphs(Shape::Small)) {
        let exact = solve(&graph, &Options::default()).expect("sparse solves any graph");
        // costs that differ by more than floats can tell leave a gap, and say so
        let largest = (0..graph.requests())
            .flat_map(|i| graph.row(i).map(|(_, cost)| cost).chain([graph.unmatched_cost(i)]))
            .map(i64::unsigned_abs).max().unwrap_or(0);
        for lp_backend in back_ends() {
            let options = Options { method: Method::Lp, lp_backend, ..Options::default() };
            let solution = solve(&graph, &options).expect("small enough");
            prop_assert_eq!(solution.verify(&graph), Ok(()));
            prop_assert_eq!(solution.method, Method::Lp);
            prop_assert!(solution.dual_bound <= exact.objective && exact.objective <= solution.objective);
            if largest <= 1_000_000 {
                prop_assert_eq!(solution.status, exact.status);
                prop_assert_eq!(solution.objective, exact.objective);
            }
        }
    }
}

#[test]
fn a_program_too_large_is_refused() {
    let edges = MAX_LP_EDGES as u32 + 1;
    let graph = Graph::from_edges(1, edges as usize, vec![9], (0..edges).map(|j| (0, j, 1)));
    let options = Options {
        method: Method::Lp,
        ..Options::default()
    };
    let refused = solve(&graph.expect("valid graph"), &options);
    assert!(matches!(refused, Err(SolveError::TooLargeForLp { .. })));
}

#[test]
fn nothing_to_program_is_empty() {
    let graph = Graph::from_edges(2, 2, vec![9, 9], []).expect("valid graph");
    let options = Options {
        method: Method::Lp,
        ..Options::default()
    };
    assert_eq!(
        solve(&graph, &options).expect("small").status,
        Status::Empty
    );
}
