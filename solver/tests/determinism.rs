//! The same matching for any order of the edges and any number of threads.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use kheya_solver::{Graph, Method, Options, Solution, greedy_edge, greedy_oldest, solve};
use proptest::prelude::*;
use random_graphs::geometric::{Geometric, islands};
use random_graphs::{Random, Shape, edges, graphs};

fn with_edges(graph: &Graph, edges: Vec<(u32, u32, i64)>) -> Graph {
    let unmatched = graph.unmatched_costs().to_vec();
    Graph::from_edges(graph.requests(), graph.drivers(), unmatched, edges).expect("as before")
}

fn solved(graph: &Graph, method: Method) -> Solution {
    solve(
        graph,
        &Options {
            method,
            ..Options::default()
        },
    )
    .expect("small enough")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn the_order_of_edges_does_not_matter(graph in graphs(Shape::Small), seed in any::<u64>()) {
        let mut shuffled = edges(&graph);
        Random::new(seed).shuffle(&mut shuffled);
        let shuffled = with_edges(&graph, shuffled);
        for method in Method::ALL.into_iter().filter(|&method| method != Method::Lp) {
            prop_assert_eq!(solved(&graph, method), solved(&shuffled, method), "{}", method);
        }
        prop_assert_eq!(greedy_edge(&graph), greedy_edge(&shuffled));
        prop_assert_eq!(greedy_oldest(&graph), greedy_oldest(&shuffled));
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let mut random = Random::new(5);
    let mut windows = vec![
        Geometric::new(1000, 1000, 30).graph(1),
        Geometric::new(6000, 3000, 30).graph(2),
        Geometric::new(3000, 9000, 20).graph(3),
        islands(40, 120),
        islands(3, 2000),
    ];
    // Ties everywhere: coarse costs.
    let coarse = edges(&windows[0])
        .into_iter()
        .map(|(i, j, cost)| (i, j, cost / 1500))
        .collect();
    windows.push(with_edges(&windows[0], coarse));
    for graph in &windows {
        let expected = solved(graph, Method::Sparse);
        assert_eq!(expected.verify(graph), Ok(()));
        for threads in [1, 2, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.expect("a pool of a few threads");
            let mut shuffled = edges(graph);
            random.shuffle(&mut shuffled);
            let shuffled = with_edges(graph, shuffled);
            assert_eq!(pool.install(|| solved(&shuffled, Method::Sparse)), expected);
        }
    }
}

#[test]
fn components_are_counted() {
    let graph = islands(40, 120);
    let solution = solved(&graph, Method::Sparse);
    assert!(
        solution.components >= 40,
        "{} components",
        solution.components
    );
    let one = Geometric::new(60, 60, 60).graph(1);
    let solution = solved(&one, Method::Sparse);
    assert_eq!((solution.components, solution.largest_component), (1, 60));
    let pairs = Graph::from_edges(5, 9, vec![9; 5], [(0, 1, 1), (2, 1, 1), (3, 8, 1)]);
    let solution = solved(&pairs.expect("valid graph"), Method::Sparse);
    assert_eq!((solution.components, solution.largest_component), (2, 2));
}
