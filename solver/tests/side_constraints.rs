//! Caps and floors: the answer is that of trying everything, and its proof holds and cannot be bent.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

#[cfg(feature = "highs")]
use kheya_solver::LpBackend;
use kheya_solver::{
    Budget, Constraint, ConstraintError, Constraints, Graph, Method, Options, Proof, Solution,
    SolveError, Status, solve,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use random_graphs::constrained::{constrained, try_everything};
use random_graphs::{Random, Shape, edges};

fn solved(graph: &Graph, constraints: &Constraints) -> Solution {
    solved_as(graph, constraints, Method::Auto)
}

fn solved_as(graph: &Graph, constraints: &Constraints, method: Method) -> Solution {
    let options = Options {
        method,
        constraints: Some(constraints),
        ..Options::default()
    };
    solve(graph, &options).expect("small enough for every method")
}

fn lacking(solution: &Solution) -> u32 {
    solution.constraints.iter().map(|c| c.shortfall).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_answer_is_that_of_trying_everything((graph, constraints) in constrained(Shape::Tiny)) {
        let (short, cost) = try_everything(&graph, &constraints);
        let solution = solved(&graph, &constraints);
        prop_assert_eq!(solution.verify_with(&graph, &constraints), Ok(()));
        prop_assert_eq!((lacking(&solution), solution.objective), (short, cost));
        prop_assert!(solution.dual_bound <= cost);
        prop_assert_ne!(solution.status, Status::Feasible);
        let free = solve(&graph, &Options::default()).expect("sparse solves any graph");
        if constraints.hold(&constraints.count(&free.driver_of)) {
            prop_assert_eq!(&solution.driver_of, &free.driver_of);
            prop_assert!(solution.constraints.iter().all(|c| c.multiplier == 0));
        }
    }

    #[test]
    fn greedy_keeps_the_caps((graph, constraints) in constrained(Shape::Tiny)) {
        let solution = solved_as(&graph, &constraints, Method::GreedyEdge);
        prop_assert_eq!(solution.verify_with(&graph, &constraints), Ok(()));
        let exact = solved(&graph, &constraints);
        prop_assert!((lacking(&exact), exact.objective) <= (lacking(&solution), solution.objective));
    }
}

/// Cuts random graphs down to costs that floats tell apart, for programs as oracles.
fn tame(graph: &Graph, seed: u64) -> Graph {
    let mut random = Random::new(seed);
    let mut costs = edges(graph);
    for (.., cost) in &mut costs {
        *cost = random.within(-2000..=4000);
    }
    let unmatched = (0..graph.requests()).map(|_| random.within(-10..=5000));
    let unmatched = unmatched.collect();
    Graph::from_edges(graph.requests(), graph.drivers(), unmatched, costs).expect("small costs")
}

/// The least `cost + penalty · shortfall` of an integer program over all edges.
fn integer_program(graph: &Graph, constraints: &Constraints, penalty: i64) -> i64 {
    use good_lp::{Expression, Solution as _, SolverModel as _, constraint, variable, variables};
    let mut names = variables!();
    let edges = edges(graph);
    let chosen: Vec<_> = edges
        .iter()
        .map(|_| names.add(variable().binary()))
        .collect();
    let mut value = Expression::from(graph.unmatched_costs().iter().sum::<i64>() as f64);
    let mut sides = vec![Expression::default(); graph.requests() + graph.drivers()];
    let mut counts = vec![Expression::default(); constraints.len()];
    for (&(i, j, cost), &chosen) in edges.iter().zip(&chosen) {
        value.add_mul((cost - graph.unmatched_cost(i as usize)) as f64, chosen);
        sides[i as usize].add_mul(1.0, chosen);
        sides[graph.requests() + j as usize].add_mul(1.0, chosen);
        let mut alone = vec![None; graph.requests()];
        alone[i as usize] = Some(j);
        for (count, counted) in counts.iter_mut().zip(constraints.count(&alone)) {
            count.add_mul(f64::from(counted), chosen);
        }
    }
    let mut rows: Vec<_> = sides
        .into_iter()
        .map(|side| constraint!(side <= 1.0))
        .collect();
    for (index, count) in counts.into_iter().enumerate() {
        if let Some(max) = constraints.max(index) {
            rows.push(constraint!(count.clone() <= f64::from(max)));
        }
        if let Some(min) = constraints.min(index) {
            let short = names.add(variable().min(0.0));
            value.add_mul(penalty as f64, short);
            rows.push(constraint!(count + short >= f64::from(min)));
        }
    }
    let mut model = names
        .minimise(value.clone())
        .using(good_lp::solvers::microlp::microlp);
    for row in rows {
        model.add_constraint(row);
    }
    model.solve().expect("never infeasible").eval(value).round() as i64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn an_integer_program_over_all_edges_agrees((graph, constraints) in constrained(Shape::Small), seed in any::<u64>()) {
        let few: Vec<_> = edges(&graph).into_iter().filter(|&(i, j, _)| i < 12 && j < 12).collect();
        let graph = Graph::from_edges(graph.requests(), graph.drivers(), graph.unmatched_costs().to_vec(), few);
        let graph = tame(&graph.expect("a part of a sound graph"), seed);
        let solution = solved(&graph, &constraints);
        prop_assert_eq!(solution.verify_with(&graph, &constraints), Ok(()));
        prop_assert_ne!(solution.status, Status::Feasible);
        let penalty = 1_000_000;
        let value = solution.objective + penalty * i64::from(lacking(&solution));
        prop_assert_eq!(value, integer_program(&graph, &constraints, penalty));
    }

    #[test]
    fn neither_order_nor_threads_matter((graph, constraints) in constrained(Shape::Small), seed in any::<u64>()) {
        let expected = solved(&graph, &constraints);
        prop_assert_eq!(expected.verify_with(&graph, &constraints), Ok(()));
        let mut shuffled = edges(&graph);
        Random::new(seed).shuffle(&mut shuffled);
        let shuffled = Graph::from_edges(graph.requests(), graph.drivers(), graph.unmatched_costs().to_vec(), shuffled);
        let shuffled = shuffled.expect("as before");
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.expect("a pool of a few threads");
            prop_assert_eq!(&pool.install(|| solved(&shuffled, &constraints)), &expected);
        }
        // what the first solve was does not matter to what is proven
        let dense = solved_as(&graph, &constraints, Method::Hungarian);
        prop_assert_eq!(dense.verify_with(&graph, &constraints), Ok(()));
        prop_assert_eq!((lacking(&dense), dense.objective), (lacking(&expected), expected.objective));
    }

    #[test]
    fn a_cut_answer_keeps_the_caps_and_a_true_bound((graph, constraints) in constrained(Shape::Small), seed in any::<u64>()) {
        let graph = tame(&graph, seed);
        let exact = solved(&graph, &constraints);
        let mut polls = 0;
        loop {
            let options = Options {
                budget: Some(Budget::polls(polls)),
                constraints: Some(&constraints),
                ..Options::default()
            };
            let cut = solve(&graph, &options).expect("as without a budget");
            prop_assert_eq!(cut.verify_with(&graph, &constraints), Ok(()), "after {} polls", polls);
            prop_assert!((lacking(&exact), exact.objective) <= (lacking(&cut), cut.objective));
            prop_assert!(cut.dual_bound <= exact.objective, "after {} polls", polls);
            if cut.status == Status::Feasible && lacking(&cut) > 0 {
                // more may be in reach: no multiplier says what a pair is worth
                prop_assert!(cut.constraints.iter().all(|c| c.multiplier == 0), "after {} polls", polls);
            }
            if lacking(&cut) == lacking(&exact) {
                prop_assert!(cut.status == Status::Feasible || cut.objective == exact.objective);
            }
            if cut.status != Status::Feasible {
                prop_assert_eq!((lacking(&cut), cut.objective), (lacking(&exact), exact.objective));
                break;
            }
            polls = polls * 5 / 4 + 1;
        }
    }

    #[cfg(feature = "highs")]
    #[test]
    fn both_back_ends_agree((graph, constraints) in constrained(Shape::Small), seed in any::<u64>()) {
        let graph = tame(&graph, seed);
        let [one, other] = [LpBackend::Microlp, LpBackend::Highs].map(|lp_backend| {
            let constraints = Some(&constraints);
            solve(&graph, &Options { constraints, lp_backend, ..Options::default() }).expect("small enough")
        });
        prop_assert_eq!(one.verify_with(&graph, &constraints), Ok(()));
        prop_assert_eq!(other.verify_with(&graph, &constraints), Ok(()));
        prop_assert_eq!((lacking(&one), one.objective), (lacking(&other), other.objective));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn nothing_of_a_proof_can_be_bent((graph, constraints) in constrained(Shape::Tiny), by in prop_oneof![-3..=3_i64, -9000..=9000_i64]) {
        let solution = solved(&graph, &constraints);
        let refused = |spoil: &dyn Fn(&mut Solution)| {
            let mut spoiled = solution.clone();
            spoil(&mut spoiled);
            spoiled == solution || spoiled.verify_with(&graph, &constraints).is_err()
        };
        for request in 0..graph.requests() {
            prop_assert!(refused(&|s| s.request_prices[request] += by));
            for driver in 0..=graph.drivers() as u32 {
                let mut spoiled = solution.clone();
                spoiled.driver_of[request] = driver.checked_sub(1);
                if spoiled.verify_with(&graph, &constraints).is_ok() {
                    // another answer of the same worth
                    let cost = kheya_solver::objective_of(&graph, &spoiled.driver_of);
                    prop_assert_eq!(cost, solution.objective);
                }
            }
        }
        for driver in 0..graph.drivers() {
            prop_assert!(refused(&|s| s.driver_prices[driver] += by));
        }
        for index in 0..constraints.len() {
            prop_assert!(refused(&|s| s.constraints[index].count += 1));
            prop_assert!(refused(&|s| s.constraints[index].shortfall += 1));
            let mut spoiled = solution.clone();
            spoiled.constraints[index].multiplier += by;
            if by != 0 && spoiled.verify_with(&graph, &constraints).is_ok() {
                // pairs that are all forbidden may cost anything more
                prop_assert_eq!(solution.constraints[index].count, 0);
            }
        }
        prop_assert!(refused(&|s| s.objective += by));
        prop_assert!(refused(&|s| s.dual_bound += by));
        prop_assert!(refused(&|s| s.constraints.truncate(0)));
        for (status, proof) in [
            (Status::Optimal, Proof::Prices),
            (Status::Optimal, Proof::BranchAndBound),
            (Status::Feasible, Proof::Prices),
            (Status::Empty, Proof::Prices),
        ] {
            // an optimum that its prices do not prove may be told as an answer with a gap
            let modest = solution.proof == Proof::BranchAndBound && status == Status::Feasible;
            let bold = solution.status == Status::Feasible && proof == Proof::BranchAndBound;
            prop_assert!(modest || bold || refused(&|s| (s.status, s.proof) = (status, proof)));
        }
    }
}

#[test]
fn every_course_is_taken() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut free, mut priced, mut searched, mut short) = (0, 0, 0, 0);
    for seed in 0..1500 {
        let tree = constrained(Shape::Small).new_tree(&mut runner);
        let (graph, constraints) = tree.expect("a strategy without filters").current();
        let graph = tame(&graph, seed);
        let solution = solved(&graph, &constraints);
        if lacking(&solution) > 0 {
            short += 1;
        } else if solution.method != Method::Lp {
            free += 1;
        } else if solution.proof == Proof::Prices {
            priced += 1;
        } else {
            searched += 1;
        }
    }
    let counts = [free, priced, searched, short];
    assert!(counts.iter().all(|&count| count >= 3), "{counts:?}");
}

#[test]
fn what_constraints_say_is_what_they_do() {
    // two riders at the airport, one elsewhere; the airport may take one car
    let graph = Graph::from_edges(
        3,
        3,
        vec![100; 3],
        [(0, 0, 10), (1, 1, 20), (2, 2, 30), (2, 1, 45)],
    );
    let graph = graph.expect("valid graph");
    let airport = Constraint {
        name: "airport".into(),
        requests: Some(vec![0, 1]),
        max: Some(1),
        ..Constraint::default()
    };
    let constraints = Constraints::new(3, 3, vec![airport]).expect("fits");
    let solution = solved(&graph, &constraints);
    assert_eq!(solution.driver_of, [Some(0), None, Some(2)]);
    assert_eq!(
        (solution.status, solution.method),
        (Status::Optimal, Method::Lp)
    );
    assert_eq!(solution.proof, Proof::Prices);
    // one car more would save the difference of 100 and 20
    assert_eq!(solution.constraints[0].multiplier, 80);

    let van = Constraint {
        name: "van".into(),
        drivers: Some(vec![1]),
        requests: Some(vec![2]),
        min: Some(2),
        ..Constraint::default()
    };
    let constraints = Constraints::new(3, 3, vec![van]).expect("fits");
    let solution = solved(&graph, &constraints);
    assert_eq!(solution.driver_of, [Some(0), None, Some(1)]);
    assert_eq!(solution.constraints[0].shortfall, 1);
    assert_eq!(solution.proof, Proof::BranchAndBound);
    assert_eq!(solution.verify_with(&graph, &constraints), Ok(()));
}

#[test]
fn bad_constraints_are_refused_by_name() {
    let one = |constraint: Constraint| Constraints::new(2, 3, vec![constraint]).err();
    let named = |name: &str| Constraint {
        name: name.into(),
        max: Some(1),
        ..Constraint::default()
    };
    assert_eq!(one(named("")), Some(ConstraintError::Name { index: 0 }));
    assert!(matches!(
        one(named(&"x".repeat(129))),
        Some(ConstraintError::Name { index: 0 })
    ));
    let unbounded = Constraint {
        max: None,
        ..named("a")
    };
    assert!(one(unbounded).is_some_and(|e| e.to_string().contains("\"a\" has neither")));
    let crossed = Constraint {
        min: Some(2),
        ..named("a")
    };
    assert!(
        one(crossed).is_some_and(|e| e.to_string() == "constraint \"a\": min 2 is above max 1")
    );
    let outside = Constraint {
        drivers: Some(vec![0, 3]),
        ..named("a")
    };
    assert!(
        one(outside)
            .is_some_and(|e| e.to_string() == "constraint \"a\": drivers[1] is 3, outside 0..3")
    );
    let outside = Constraint {
        requests: Some(vec![2]),
        ..named("a")
    };
    assert!(one(outside).is_some_and(|e| e.to_string().contains("requests[0] is 2")));
    let twice = Constraints::new(2, 3, vec![named("a"), named("a")]);
    assert!(matches!(
        twice,
        Err(ConstraintError::DuplicateName { index: 1, .. })
    ));
    let many = (0..65).map(|i| named(&i.to_string())).collect();
    assert_eq!(
        Constraints::new(2, 3, many),
        Err(ConstraintError::TooMany { count: 65 })
    );
}

#[test]
fn constraints_of_another_graph_and_costs_out_of_reach_are_refused() {
    let graph = Graph::from_edges(2, 2, vec![1 << 59; 2], [(0, 0, -(1 << 59)), (1, 0, 0)]);
    let graph = graph.expect("just within limits");
    let cap = Constraint {
        name: "cap".into(),
        max: Some(0),
        ..Constraint::default()
    };
    let options = |constraints| Options {
        constraints: Some(constraints),
        ..Options::default()
    };
    let other = Constraints::new(1, 2, vec![cap.clone()]).expect("fits another");
    assert!(matches!(
        solve(&graph, &options(&other)),
        Err(SolveError::OtherSize { .. })
    ));
    let own = Constraints::new(2, 2, vec![cap]).expect("fits");
    assert_eq!(
        solve(&graph, &options(&own)),
        Err(SolveError::CostsTooLargeForConstraints)
    );
}
