//! Particular graphs that solvers get wrong.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use kheya_solver::{
    Graph, GraphError, MAX_DENSE_CELLS, MAX_MAGNITUDE, Method, Options, Solution, SolveError,
    Status, solve,
};
use random_graphs::Random;
use random_graphs::geometric::Geometric;

const EXACT: [Method; 3] = [Method::Auto, Method::Sparse, Method::Hungarian];

fn graph(requests: usize, drivers: usize, unmatched: i64, edges: &[(u32, u32, i64)]) -> Graph {
    let unmatched = vec![unmatched; requests];
    Graph::from_edges(requests, drivers, unmatched, edges.iter().copied()).expect("valid graph")
}

/// Solves with every exact method, checks the proofs and that all agree.
fn solve_all(graph: &Graph) -> Solution {
    let [auto, sparse, hungarian] = EXACT.map(|method| {
        let options = Options {
            method,
            ..Options::default()
        };
        let solution = solve(graph, &options).expect("small enough for every method");
        assert_eq!(solution.verify(graph), Ok(()), "{method}");
        solution
    });
    assert_eq!(
        (auto.objective, sparse.objective),
        (hungarian.objective, hungarian.objective)
    );
    sparse
}

fn cost_and_matched(graph: &Graph) -> (i64, usize) {
    let solution = solve_all(graph);
    (solution.objective, solution.matched())
}

#[test]
fn sides_may_be_empty() {
    for (requests, drivers) in [(0, 0), (3, 0), (0, 3), (2, 2)] {
        let solution = solve_all(&graph(requests, drivers, 1_000_000, &[]));
        assert_eq!(solution.status, Status::Empty);
        assert_eq!(
            (solution.objective, solution.matched()),
            (requests as i64 * 1_000_000, 0)
        );
        assert_eq!((solution.components, solution.gap()), (0, 0.0));
    }
}

#[test]
fn requests_without_drivers_and_drivers_without_requests_stay_alone() {
    assert_eq!(
        cost_and_matched(&graph(3, 3, 1_000_000, &[(0, 2, 4), (2, 1, 4)])),
        (1_000_008, 2)
    );
    assert_eq!(
        cost_and_matched(&graph(2, 2, 1_000_000, &[(0, 0, 1), (1, 0, 2)])),
        (1_000_001, 1)
    );
    let edges = [(0, 1, 161), (1, 1, 1), (2, 1, 157), (3, 0, 37), (3, 2, 5)];
    assert_eq!(
        cost_and_matched(&graph(4, 3, 1_000_000, &edges)),
        (2_000_006, 2)
    );
}

#[test]
fn small_windows_have_their_known_optima() {
    let dense = |costs: &[&[i64]]| {
        let rows = costs.iter().enumerate();
        let edges = rows.flat_map(|(i, row)| {
            row.iter()
                .enumerate()
                .map(move |(j, &cost)| (i as u32, j as u32, cost))
        });
        graph(
            costs.len(),
            costs[0].len(),
            1_000_000,
            &edges.collect::<Vec<_>>(),
        )
    };
    let plenty = dense(&[&[90, 76, 75, 80], &[35, 85, 55, 65], &[125, 95, 90, 105]]);
    assert_eq!(cost_and_matched(&plenty), (201, 3));
    let short = dense(&[&[7, 4, 9], &[3, 8, 2], &[6, 1, 5], &[9, 9, 1], &[2, 7, 8]]);
    assert_eq!(cost_and_matched(&short), (2_000_004, 3));
}

#[test]
fn cost_zero_is_an_edge_and_duplicates_keep_the_cheaper() {
    assert_eq!(
        cost_and_matched(&graph(2, 2, 1_000_000, &[(0, 0, 0), (1, 0, 0), (1, 1, 7)])),
        (7, 2)
    );
    for edges in [[(0, 0, 9), (0, 0, 4)], [(0, 0, 4), (0, 0, 9)]] {
        let graph = graph(1, 1, 1_000_000, &edges);
        assert_eq!(graph.edges(), 1);
        assert_eq!(graph.row(0).collect::<Vec<_>>(), [(0, 4)]);
        assert_eq!(cost_and_matched(&graph), (4, 1));
    }
}

#[test]
fn duplicates_keep_the_place_of_the_first() {
    let edges = [
        (1, 2, 5),
        (0, 1, 8),
        (1, 0, 3),
        (1, 2, 4),
        (0, 1, 9),
        (1, 1, 1),
        (1, 0, 7),
    ];
    let graph = graph(2, 3, 10, &edges);
    assert_eq!(graph.row(0).collect::<Vec<_>>(), [(1, 8)]);
    assert_eq!(graph.row(1).collect::<Vec<_>>(), [(2, 4), (0, 3), (1, 1)]);
}

#[test]
fn cost_counts_not_the_number_of_matches() {
    // 850 + 850 loses to 10 + 900.
    let edges = [(0, 0, 10), (0, 1, 850), (1, 0, 850)];
    let solution = solve_all(&graph(2, 2, 900, &edges));
    assert_eq!(
        (solution.objective, solution.driver_of),
        (910, vec![Some(0), None])
    );
}

#[test]
fn an_edge_no_better_than_staying_unmatched_is_not_used() {
    let solution = solve_all(&graph(2, 2, 5, &[(0, 0, 5), (1, 1, 6), (1, 0, 5)]));
    assert_eq!((solution.objective, solution.matched()), (10, 0));
    assert_eq!(solution.status, Status::Optimal);
}

#[test]
fn negative_costs_and_unmatched_costs_are_costs() {
    let unmatched = vec![-5, -20, 3];
    let edges = [
        (0, 0, -10),
        (1, 0, -30),
        (1, 1, -21),
        (2, 1, -1),
        (0, 1, -6),
    ];
    let graph = Graph::from_edges(3, 2, unmatched, edges).expect("valid graph");
    // request 1 takes driver 0 (−30), request 2 driver 1 (−1), request 0 stays (−5)
    assert_eq!(cost_and_matched(&graph), (-36, 2));
}

#[test]
fn costs_at_the_limit_are_solved_and_beyond_it_refused() {
    let limit = (MAX_MAGNITUDE / 5) as i64;
    for (a, b, c, unmatched) in [
        (-limit, limit, -limit, limit),
        (limit, -limit, -limit, limit),
        (-limit, -limit, -limit, limit),
        (limit, limit - 1, limit - 2, limit),
        (-limit, 1 - limit, -limit, -limit),
    ] {
        let edges = [(0, 0, a), (0, 1, b), (1, 0, c), (1, 1, a)];
        let graph = graph(2, 2, unmatched, &edges);
        assert_eq!(
            solve_all(&graph).objective,
            random_graphs::brute_force(&graph)
        );
    }
    let one = (MAX_MAGNITUDE / 3) as i64;
    let extreme = graph(1, 1, one, &[(0, 0, -one)]);
    assert_eq!(solve_all(&extreme).objective, -one);

    for (unmatched, cost) in [
        (limit + 1, 0),
        (0, -limit - 1),
        (i64::MAX, 1),
        (i64::MIN, 1),
        (0, i64::MIN),
    ] {
        let refused = Graph::from_edges(2, 2, vec![0, unmatched], [(0, 0, cost)]);
        assert!(matches!(
            refused,
            Err(GraphError::CostsTooLarge {
                requests: 2,
                drivers: 2,
                ..
            })
        ));
    }
}

#[test]
fn what_is_no_graph_is_refused() {
    let request = Graph::from_edges(1, 1, vec![1], [(0, 0, 1), (1, 0, 1)]);
    assert_eq!(
        request,
        Err(GraphError::RequestOutside {
            edge: 1,
            request: 1,
            requests: 1
        })
    );
    let request = Graph::from_edges(1, 1, vec![1], [(u32::MAX, 0, 1)]);
    assert_eq!(
        request,
        Err(GraphError::RequestOutside {
            edge: 0,
            request: u32::MAX,
            requests: 1
        })
    );
    let driver = Graph::from_edges(1, 1, vec![1], [(0, 1, 1)]);
    assert_eq!(
        driver,
        Err(GraphError::DriverOutside {
            edge: 0,
            driver: 1,
            drivers: 1
        })
    );
    let unmatched = Graph::from_edges(2, 1, vec![1], []);
    assert_eq!(
        unmatched,
        Err(GraphError::UnmatchedCosts {
            requests: 2,
            found: 1
        })
    );
    let many = Graph::from_edges(usize::MAX, 1, vec![1], []);
    assert_eq!(
        many,
        Err(GraphError::TooMany {
            what: "requests",
            count: usize::MAX
        })
    );
    for offsets in [vec![], vec![0], vec![1, 1], vec![0, 2], vec![0, 1, 1]] {
        let rows = Graph::from_rows(1, vec![1], offsets, vec![0], vec![1]);
        assert_eq!(rows, Err(GraphError::Rows));
    }
    let falling = Graph::from_rows(1, vec![1; 2], vec![0, 2, 1], vec![0], vec![1]);
    assert_eq!(falling, Err(GraphError::Rows));
    let uneven = Graph::from_rows(1, vec![1], vec![0, 1], vec![0], vec![]);
    assert_eq!(uneven, Err(GraphError::Rows));
}

#[test]
fn rows_in_order_give_the_same_graph_as_edges() {
    let graph = graph(3, 4, 50, &[(2, 1, 7), (0, 3, 2), (2, 0, 1), (0, 3, 1)]);
    let rows = Graph::from_rows(
        4,
        vec![50; 3],
        vec![0, 2, 2, 4],
        vec![3, 3, 1, 0],
        vec![2, 1, 7, 1],
    );
    assert_eq!(rows, Ok(graph));
}

#[test]
fn the_dense_method_refuses_what_is_too_large() {
    let side = MAX_DENSE_CELLS.isqrt() + 1;
    let graph = graph(side, 1, 10, &[(0, 0, 1)]);
    let options = Options {
        method: Method::Hungarian,
        ..Options::default()
    };
    let refused = solve(&graph, &options);
    assert!(matches!(
        refused,
        Err(SolveError::TooLargeForDense { drivers: 1, .. })
    ));
    assert!(
        refused
            .expect_err("refused")
            .to_string()
            .contains("use sparse")
    );
}

/// Machol & Wien's matrix, `c_ij = i · j`: each augmenting path of the Hungarian method is as long
/// as can be.
#[test]
fn the_worst_case_of_hungarian_codes_is_solved() {
    for size in [1, 2, 30, 120_u32] {
        let pairs = (1..=size).flat_map(|i| (1..=size).map(move |j| (i, j)));
        let edges: Vec<_> = pairs
            .map(|(i, j)| (i - 1, j - 1, i64::from(i * j)))
            .collect();
        let graph = graph(size as usize, size as usize, 1_000_000, &edges);
        let expected: i64 = (1..=i64::from(size))
            .map(|i| i * (i64::from(size) + 1 - i))
            .sum();
        assert_eq!(cost_and_matched(&graph), (expected, size as usize));
    }
}

/// A chain in which the last request moves all the others on.
#[test]
fn a_long_chain_moves_as_one() {
    let length = 400_u32;
    for order in [false, true] {
        let place = |index: u32| if order { length - 1 - index } else { index };
        let mut edges: Vec<_> = (0..length)
            .flat_map(|i| [(place(i), i, 1), (place(i), i + 1, 1 + i64::from(i % 3))])
            .collect();
        edges.push((length, 0, 1));
        let graph = graph(length as usize + 1, length as usize + 1, 100_000, &edges);
        let expected = 1 + (0..i64::from(length)).map(|i| 1 + i % 3).sum::<i64>();
        assert_eq!(cost_and_matched(&graph), (expected, length as usize + 1));
    }
}

/// Bidders of equal means for one driver fewer: where auctions take very long.
#[test]
fn a_price_war_ends() {
    let size = 60_u32;
    let pairs = (0..=size).flat_map(|i| (0..size).map(move |j| (i, j, i64::from(i == j))));
    let graph = graph(
        size as usize + 1,
        size as usize,
        1_000_000_000,
        &pairs.collect::<Vec<_>>(),
    );
    assert_eq!(cost_and_matched(&graph), (1_000_000_000, size as usize));
}

#[test]
fn everyone_wants_the_same_driver() {
    let edges: Vec<_> = (0..300).map(|i| (i, 7, i64::from(500 - i))).collect();
    let solution = solve_all(&graph(300, 9, 1000, &edges));
    assert_eq!((solution.matched(), solution.driver_of[299]), (1, Some(7)));
}

#[test]
fn sparse_agrees_with_hungarian_on_geometric_windows() {
    let mut random = Random::new(11);
    for (requests, drivers) in [(300, 120), (200, 200), (120, 400), (250, 240)] {
        for seed in 0..3 {
            let window = Geometric::new(requests, drivers, 15).graph(seed);
            solve_all(&window);
            // and with unmatched costs among the edge costs
            let dearest = window.unmatched_cost(0);
            let unmatched = (0..requests)
                .map(|_| random.within(0..=dearest / 2))
                .collect();
            let row = |i: usize| window.row(i).map(move |(j, cost)| (i as u32, j, cost));
            let edges: Vec<_> = (0..requests).flat_map(row).collect();
            solve_all(
                &Graph::from_edges(requests, drivers, unmatched, edges).expect("valid graph"),
            );
        }
    }
}
