//! What a solve takes of memory: at most 60 bytes an edge at its peak, the graph with it.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod random_graphs;

use kheya_solver::{Explainer, Graph, Options, solve};
use peak_alloc::PeakAlloc;
use random_graphs::{edges, families::Family};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const EDGES: usize = 300_000;
const MOST_BYTES_AN_EDGE: f64 = 60.0;

/// What `work` gives, and the most that was allocated meanwhile beyond what was before, in bytes an
/// edge.
fn peak<T>(edges: usize, work: impl FnOnce() -> T) -> (T, f64) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let done = work();
    let most = ALLOCATED.peak_usage() - before;
    (done, most as f64 / edges as f64)
}

// One test: tests of a file run side by side, and would count each other's memory.
#[test]
fn building_solving_and_explaining_keep_within_their_bytes_an_edge() {
    for family in [
        Family::Plenty,
        Family::Balanced,
        Family::Short,
        Family::Sparse,
        Family::Dense,
    ] {
        let name = family.name();
        let made = family.graph(EDGES, 1);
        let (count, drivers) = (made.edges(), made.drivers());
        let (unmatched, pairs) = (made.unmatched_costs().to_vec(), edges(&made));
        drop(made);

        let (graph, building) = peak(count, || {
            Graph::from_edges(unmatched.len(), drivers, unmatched, pairs)
        });
        let graph = graph.expect("as before");
        // the edges that came in stand in a list of 16 bytes each
        let own = 8.0 * (graph.requests() + drivers) as f64 / count as f64 + 12.0;
        assert!(
            building < own + 30.0,
            "{name}: building takes {building:.1}"
        );

        let (solution, solving) = peak(count, || solve(&graph, &Options::default()));
        let solution = solution.expect("sparse solves any graph");
        let most = solving + own;
        println!(
            "{name:<9} building {building:5.1}, solving {solving:5.1}, with the graph {most:5.1}"
        );
        assert!(solving > 1.0, "{name}: nothing was counted");
        assert!(most < MOST_BYTES_AN_EDGE, "{name}: solving takes {most:.1}");

        let (told, explaining) = peak(count, || {
            let explainer = Explainer::new(&graph, &solution).expect("an optimum");
            explainer.explain(0).expect("a request")
        });
        assert!(!told.swaps.is_empty());
        assert!(
            explaining < 40.0,
            "{name}: explaining takes {explaining:.1}"
        );
    }
}
