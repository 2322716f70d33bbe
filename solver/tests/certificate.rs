//! `verify()` accepts what the solver proves and refuses everything spoiled.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use kheya_solver::CertificateError as E;
use kheya_solver::{Budget, Graph, Method, Options, Solution, Status, least_driver_prices, solve};
use proptest::prelude::*;
use random_graphs::{Shape, graphs};

fn optimal(graph: &Graph) -> Solution {
    solve(graph, &Options::default()).expect("sparse solves any graph")
}

fn refused(graph: &Graph, solution: &Solution, spoil: impl Fn(&mut Solution)) -> bool {
    let mut spoiled = solution.clone();
    spoil(&mut spoiled);
    spoiled == *solution || spoiled.verify(graph).is_err()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn one_price_changed_is_refused(graph in graphs(Shape::Tiny), by in prop_oneof![-3..=3_i64, -9000..=9000_i64]) {
        let solution = optimal(&graph);
        for request in 0..graph.requests() {
            prop_assert!(refused(&graph, &solution, |s| s.request_prices[request] += by));
            // also with the bound made to fit
            let bent = refused(&graph, &solution, |s| {
                s.request_prices[request] += by;
                s.dual_bound += by;
});
prop_assert!(bent);
        }
        for driver in 0..graph.drivers() {
            prop_assert!(refused(&graph, &solution, |s| s.driver_prices[driver] += by));
            let bent = refused(&graph, &solution, |s| {
                s.driver_prices[driver] += by;
                s.dual_bound -= by;
});
prop_assert!(bent);
        }
    }

    #[test]
    fn one_pair_changed_is_refused(graph in graphs(Shape::Tiny)) {
        let solution = optimal(&graph);
        for request in 0..graph.requests() {
            for driver in (0..=graph.drivers() as u32).map(|j| (j > 0).then(|| j - 1)) {
                // Another pair may cost the same: what verifies then is another optimum.
                let mut spoiled = solution.clone();
                spoiled.driver_of[request] = driver;
                if spoiled.verify(&graph).is_ok() {
                    prop_assert_eq!(kheya_solver::objective_of(&graph, &spoiled.driver_of), solution.objective);
                }
            }
        }
    }

    #[test]
    fn figures_changed_are_refused(graph in graphs(Shape::Tiny), by in 1..=5_i64) {
        let solution = optimal(&graph);
        prop_assert!(refused(&graph, &solution, |s| s.objective += by));
        prop_assert!(refused(&graph, &solution, |s| s.objective -= by));
        prop_assert!(refused(&graph, &solution, |s| s.dual_bound += by));
        prop_assert!(refused(&graph, &solution, |s| s.dual_bound -= by));
        for status in [Status::Optimal, Status::Feasible, Status::Empty] {
            prop_assert!(refused(&graph, &solution, |s| s.status = status));
        }
        prop_assert!(refused(&graph, &solution, |s| s.driver_of.push(None)));
        prop_assert!(refused(&graph, &solution, |s| s.request_prices.push(0)));
        prop_assert!(refused(&graph, &solution, |s| s.driver_prices.push(0)));
    }

    #[test]
    fn a_cut_answer_cannot_claim_a_better_bound(graph in graphs(Shape::Small), polls in 0..20_u64) {
        let options = Options { budget: Some(Budget::polls(polls)), ..Options::default() };
        let solution = solve(&graph, &options).expect("sparse solves any graph");
        prop_assert!(refused(&graph, &solution, |s| s.dual_bound += 1));
        if graph.requests() > 0 {
            let bent = refused(&graph, &solution, |s| {
                s.request_prices[0] += 1 + s.gap_abs();
                s.dual_bound += 1 + solution.gap_abs();
});
prop_assert!(bent);
        }
    }

    #[test]
    fn a_least_price_is_what_one_more_such_driver_saves(graph in graphs(Shape::Tiny), method in 0..2) {
        let method = if method == 0 { Method::Sparse } else { Method::Hungarian };
        let options = Options { method, ..Options::default() };
        let solution = solve(&graph, &options).expect("small enough");
        let least = least_driver_prices(&graph, &solution);
        for (driver, &price) in least.iter().enumerate() {
            let twin = graph.drivers() as u32;
            let edges = (0..graph.requests()).flat_map(|request| {
                let row = graph.row(request).flat_map(move |(j, cost)| {
                    let own = Some((request as u32, j, cost));
                    let twin = (j as usize == driver).then_some((request as u32, twin, cost));
                    own.into_iter().chain(twin)
                });
                row.collect::<Vec<_>>()
            });
            let unmatched = graph.unmatched_costs().to_vec();
            let more = Graph::from_edges(graph.requests(), graph.drivers() + 1, unmatched, edges);
            let more = optimal(&more.expect("one driver more is within limits"));
            prop_assert_eq!(price, solution.objective - more.objective);
        }
    }

    #[test]
    fn least_prices_prove_the_matching_and_do_not_depend_on_the_method(graph in graphs(Shape::Small)) {
        let solution = optimal(&graph);
        let least = least_driver_prices(&graph, &solution);
        let dense = Options { method: Method::Hungarian, ..Options::default() };
        let dense = solve(&graph, &dense).expect("small enough");
        prop_assert_eq!(&least, &least_driver_prices(&graph, &dense));

        let mut proof = solution.clone();
        for request in 0..graph.requests() {
            let offers = graph.row(request).map(|(j, cost)| cost + least[j as usize]);
            proof.request_prices[request] = offers.fold(graph.unmatched_cost(request), i64::min);
        }
        proof.driver_prices = least;
        prop_assert_eq!(proof.verify(&graph), Ok(()));
    }
}

#[test]
fn every_kind_of_spoil_is_named() {
    let graph = Graph::from_edges(3, 2, vec![10, 10, 10], [(0, 0, 4), (1, 0, 6), (1, 1, 9)])
        .expect("valid graph");
    let good = optimal(&graph);
    assert_eq!(good.verify(&graph), Ok(()));
    assert_eq!(good.driver_of, [Some(0), Some(1), None]);
    let verdict = |spoil: &dyn Fn(&mut Solution)| {
        let mut spoiled = good.clone();
        spoil(&mut spoiled);
        spoiled.verify(&graph)
    };
    assert!(matches!(
        verdict(&|s| s.driver_of[2] = Some(1)),
        Err(E::NoEdge {
            request: 2,
            driver: 1
        })
    ));
    assert!(matches!(
        verdict(&|s| s.driver_of[2] = Some(7)),
        Err(E::NoEdge {
            request: 2,
            driver: 7
        })
    ));
    assert!(verdict(&|s| s.driver_prices[1] = -1).is_err());
    assert!(matches!(
        verdict(&|s| s.request_prices[2] = 11),
        Err(E::RequestPrice { request: 2 })
    ));
    assert!(matches!(
        verdict(&|s| s.request_prices[2] = 9),
        Err(E::UnmatchedBelowCost { request: 2 })
    ));
    assert!(matches!(
        verdict(&|s| s.objective = 22),
        Err(E::Objective {
            stated: 22,
            actual: 23
        })
    ));
    assert!(matches!(
        verdict(&|s| s.driver_of.clear()),
        Err(E::Shape {
            expected: 3,
            found: 0,
            ..
        })
    ));
    let twice = Graph::from_edges(2, 1, vec![10, 10], [(0, 0, 4), (1, 0, 4)]).expect("valid graph");
    let mut spoiled = optimal(&twice);
    spoiled.driver_of = vec![Some(0), Some(0)];
    assert_eq!(spoiled.verify(&twice), Err(E::DriverTwice { driver: 0 }));
}
