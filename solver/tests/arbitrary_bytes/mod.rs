//! What must hold for any bytes: for a graph read from them, and for them as an `.asn` text.
//!
//! Shared by the seeded mutations of `tests/mutated_bytes.rs` and the fuzz targets of `fuzz/`.
#![allow(dead_code, reason = "each user needs a part")]
#![allow(clippy::panic, reason = "a finding is a panic")]

use kheya_solver::{Budget, Explainer, Graph, Method, Options, Solution, Status, asn, solve};

/// Most requests, and most drivers, of a graph read from bytes.
const MOST_NODES: usize = 24;

/// A reader of bytes that never ends: past the last there are zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(self.next()) % count.max(1)
    }

    /// A cost: mostly small, so that ties are many, but up to the largest magnitudes there are.
    fn cost(&mut self) -> i64 {
        let value = i64::from(self.next() as i8);
        match self.next() % 8 {
            0..=3 => value % 8,
            4 | 5 => value,
            6 => value << (self.next() % 40),
            _ => value << (self.next() % 56),
        }
    }
}

/// Reads a graph, builds it edge by edge and row by row, and solves it by every method. Tells the
/// number of graphs that were solved.
pub(crate) fn check_graph(bytes: &[u8]) -> usize {
    let mut bytes = Bytes(bytes);
    let flaws = bytes.next();
    let requests = bytes.below(MOST_NODES + 1);
    let drivers = bytes.below(MOST_NODES + 1);
    let unmatched: Vec<i64> = (0..requests).map(|_| bytes.cost()).collect();
    let mut rows: Vec<Vec<(u32, i64)>> = vec![Vec::new(); requests];
    for row in &mut rows {
        for _ in 0..bytes.below(12) {
            // now and then a driver that is not there
            let outside = usize::from(flaws == 1 && bytes.next() == 0);
            row.push((bytes.below(drivers + outside) as u32, bytes.cost()));
        }
    }
    let edges: Vec<(u32, u32, i64)> = (0_u32..)
        .zip(&rows)
        .flat_map(|(i, row)| row.iter().map(move |&(j, cost)| (i, j, cost)))
        .collect();
    let mut offsets = vec![0_u32];
    for row in &rows {
        offsets.push(offsets[offsets.len() - 1] + row.len() as u32);
    }
    if flaws == 2 {
        let place = bytes.below(offsets.len());
        offsets[place] ^= u32::from(bytes.next());
    }
    let columns = edges.iter().map(|edge| edge.1).collect();
    let costs = edges.iter().map(|edge| edge.2).collect();
    let by_rows = Graph::from_rows(drivers, unmatched.clone(), offsets, columns, costs);
    let by_edges = Graph::from_edges(requests, drivers, unmatched, edges);
    if flaws != 2 {
        assert_eq!(by_rows, by_edges, "the same graph, or the same refusal");
    }
    let graphs = [by_rows, by_edges].into_iter().flatten();
    graphs
        .map(|graph| check_solves(&graph, u64::from(bytes.next())))
        .count()
}

/// Every method answers, its proof holds, and those that say optimal agree.
fn check_solves(graph: &Graph, polls: u64) {
    let solved = |options: &Options<'_>| -> Solution {
        let solution = solve(graph, options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(solution.verify(graph), Ok(()), "{options:?}");
        solution
    };
    let best = solved(&Options::default());
    assert_ne!(best.status, Status::Feasible);
    for method in Method::ALL {
        let options = Options {
            method,
            ..Options::default()
        };
        let other = solved(&options);
        assert!(best.objective <= other.objective);
        assert!(other.dual_bound <= best.objective);
        // Greedy proves nothing, and the linear program computes in floats: a gap is then told.
        let proves = !matches!(method, Method::GreedyEdge | Method::Lp);
        if proves || other.status != Status::Feasible {
            assert_eq!(other.objective, best.objective, "{method}");
        }
    }
    let cut = solved(&Options {
        budget: Some(Budget::polls(polls)),
        ..Options::default()
    });
    assert!(cut.dual_bound <= best.objective && best.objective <= cut.objective);
    let warm: Vec<i64> = best.driver_prices.iter().map(|price| price ^ 5).collect();
    let warm = solved(&Options {
        warm_start: Some(&warm),
        ..Options::default()
    });
    assert_eq!(warm.objective, best.objective);
    let explainer = Explainer::new(graph, &best).unwrap_or_else(|error| panic!("{error}"));
    for request in 0..graph.requests() {
        let told = explainer.explain(request);
        let told = told.unwrap_or_else(|error| panic!("{error}"));
        let sound =
            |swap: &kheya_solver::Swap| 0 <= swap.at_least && swap.at_least <= swap.swap_cost;
        assert!(told.swaps.iter().all(sound), "{told:?}");
    }
}

/// Reads bytes as an `.asn` text: they are refused with the file's name, or say the same again when
/// written. Tells the number of instances that were solved.
pub(crate) fn check_asn(bytes: &[u8]) -> usize {
    match asn::read(bytes, "fuzz.asn") {
        Err(refusal) => {
            let told = refusal.to_string();
            assert!(told.starts_with("fuzz.asn"), "{told}");
            assert!(told.len() < 6000, "a refusal is short");
            0
        }
        // what a few bytes declare may be large; what they say is not
        Ok(graph) if graph.requests() + graph.drivers() < 5000 => {
            let solution = solve(&graph, &Options::default());
            let solution = solution.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(solution.verify(&graph), Ok(()));
            if graph.unmatched_costs().is_empty() {
                return 1;
            }
            let mut written = Vec::new();
            let done = asn::write(&graph, &mut written);
            done.unwrap_or_else(|error| panic!("{error}"));
            let again = asn::read(written.as_slice(), "written");
            assert_eq!(again.unwrap_or_else(|error| panic!("{error}")), graph);
            1
        }
        Ok(_) => 0,
    }
}
