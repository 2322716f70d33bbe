//! Graphs to test with, and the slowest solver.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

pub(crate) mod constrained;
pub(crate) mod families;
pub(crate) mod geometric;

use kheya_solver::Graph;
use proptest::prelude::*;

/// How large random graphs are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Up to 7 a side: every matching can be tried.
    Tiny,
    /// Up to 40 a side.
    Small,
}

/// Random graphs of every kind: sides short, balanced, plenty or empty; few or all pairs; costs
/// with many ties, of both signs or wide apart; unmatched costs alike, different, or below edges.
pub(crate) fn graphs(shape: Shape) -> impl Strategy<Value = Graph> {
    let most = match shape {
        Shape::Tiny => 7,
        Shape::Small => 40_usize,
    };
    let cost = prop_oneof![
        Just(0..=3_i64),
        Just(-5..=5),
        Just(0..=1000),
        Just(-1_000_000_000..=1_000_000_000),
        Just(-4_000_000_000_000..=4_000_000_000_000_i64),
    ];
    let unmatched = prop_oneof![
        Just(None),
        Just(Some(-3..=6_i64)),
        Just(Some(0..=2000)),
        Just(Some(-2_000_000_000..=2_000_000_000)),
    ];
    (
        0..=most,
        0..=most,
        cost,
        unmatched,
        0..=100_u32,
        any::<u64>(),
    )
        .prop_map(|(requests, drivers, costs, unmatched, percent, seed)| {
            let mut random = Random::new(seed);
            let same = random.within(*costs.start()..=costs.end().saturating_mul(2));
            let unmatched_cost = (0..requests)
                .map(|_| unmatched.clone().map_or(same, |range| random.within(range)))
                .collect();
            let mut edges = Vec::new();
            for request in 0..requests as u32 {
                for driver in 0..drivers as u32 {
                    if random.within(0..=99) < i64::from(percent) {
                        edges.push((request, driver, random.within(costs.clone())));
                    }
                }
            }
            Graph::from_edges(requests, drivers, unmatched_cost, edges).expect("within limits")
        })
}

/// The edges of a graph, as they can be given to [`Graph::from_edges`].
pub(crate) fn edges(graph: &Graph) -> Vec<(u32, u32, i64)> {
    let row = |request: usize| {
        graph
            .row(request)
            .map(move |(j, cost)| (request as u32, j, cost))
    };
    (0..graph.requests()).flat_map(row).collect()
}

/// The least cost of any matching, by trying them all.
pub(crate) fn brute_force(graph: &Graph) -> i64 {
    fn from(graph: &Graph, request: usize, taken: u64) -> i64 {
        if request == graph.requests() {
            return 0;
        }
        let unmatched = graph.unmatched_cost(request) + from(graph, request + 1, taken);
        let free = graph
            .row(request)
            .filter(|&(driver, _)| taken & (1 << driver) == 0);
        free.map(|(driver, cost)| cost + from(graph, request + 1, taken | (1 << driver)))
            .fold(unmatched, i64::min)
    }
    from(graph, 0, 0)
}

/// `SplitMix64`: small, seeded, the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn within(&mut self, range: std::ops::RangeInclusive<i64>) -> i64 {
        let (low, high) = range.into_inner();
        low + (self.next() % ((high - low) as u64 + 1)) as i64
    }

    /// A number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.within(0..=last as i64) as usize);
        }
    }
}
