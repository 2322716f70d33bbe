//! Any starting prices give the same objective.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use kheya_solver::{Graph, Options, Status, solve};
use proptest::prelude::*;
use random_graphs::geometric::{Geometric, islands};
use random_graphs::{Shape, graphs};

fn warm(graph: &Graph, prices: &[i64]) -> kheya_solver::Solution {
    let options = Options {
        warm_start: Some(prices),
        ..Options::default()
    };
    solve(graph, &options).expect("sparse solves any graph")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn garbage_prices_give_the_same_objective(
        graph in graphs(Shape::Small),
        prices in prop_oneof![
            prop::collection::vec(-10..=10_i64, 0..60),
            prop::collection::vec(-3000..=3000_i64, 0..60),
            prop::collection::vec(any::<i64>(), 0..60),
        ],
    ) {
        let cold = solve(&graph, &Options::default()).expect("sparse solves any graph");
        let warm = warm(&graph, &prices);
        prop_assert_eq!(warm.verify(&graph), Ok(()));
        prop_assert_eq!((warm.objective, warm.status), (cold.objective, cold.status));
    }
}

#[test]
fn warm_prices_reach_every_part_of_a_split_graph() {
    let graph = islands(24, 100);
    let cold = solve(&graph, &Options::default()).expect("sparse solves any graph");
    for prices in [cold.driver_prices.as_slice(), &[77; 1000], &[]] {
        let warm = warm(&graph, prices);
        assert_eq!(warm.verify(&graph), Ok(()));
        assert_eq!(
            (warm.objective, warm.status),
            (cold.objective, Status::Optimal)
        );
    }
}

#[test]
fn prices_of_a_neighbouring_window_give_the_same_objective() {
    for (requests, drivers) in [(400, 150), (300, 300), (200, 600)] {
        let before = Geometric::new(requests, drivers, 20).graph(1);
        let prices = solve(&before, &Options::default())
            .expect("solves")
            .driver_prices;
        for graph in [&before, &Geometric::new(requests, drivers, 20).graph(2)] {
            let cold = solve(graph, &Options::default()).expect("sparse solves any graph");
            let warm = warm(graph, &prices);
            assert_eq!(warm.verify(graph), Ok(()));
            assert_eq!(
                (warm.objective, warm.status),
                (cold.objective, Status::Optimal)
            );
        }
    }
}
