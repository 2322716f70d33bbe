//! One side of the graph as the sparse solver sees it, and how it is built.
//!
//! The solver maximises what pairs save: an edge has weight `w_ij = U_i − c_ij`, and edges that
//! save nothing (`c_ij ≥ U_i`) are left out. In that form requests and drivers are alike: each node
//! has a price ≥ 0 (a request `U_i − u_i`, a driver `v_j`), the two prices of an edge sum to at
//! least its weight, and an unmatched node of either side has price 0 at the optimum. So one search
//! serves both sides, and "start from the drivers" is the same code with the sides exchanged.

use std::ops::{ControlFlow, Range};

use super::useful::sum_up;
use super::weight::Weight;
use crate::Graph;
use crate::budget::Meter;
use crate::pool;

/// A node that is not matched.
pub(crate) const FREE: u32 = u32::MAX;

/// Edges one rayon task works on at most: some 500 µs of work.
const EDGES_PER_TASK: usize = 1 << 16;

/// Units of work for an edge of a row that is filled in and put in order.
const ROW_UNITS: usize = 6;

/// Rows of this length are put in order at once, longer ones part by part.
const SHORT_ROW: usize = 48;

/// In rows of this length a sample tells where a part ends.
const LONG_ROW: usize = 256;

/// Size of the sample, and the rank in it of the edge that ends a row's first part, and its second.
const SAMPLE: usize = 32;
const FIRST_RANK: usize = 2;
const SECOND_RANK: usize = 8;

/// Fewest edges put in order at a time.
const FEWEST_ORDERED: usize = 8;

/// The nodes of one side: their edges, prices and mates.
///
/// The edges of a node are read heaviest first, then by the other node's index. Most are never
/// looked at, so a row is put in order only as far as it has been read.
pub(crate) struct Side<W: Weight> {
    offsets: Vec<u32>,
    edges: Vec<W::Packed>,
    /// For each node how many of its edges, from the first, are in their final place.
    ordered: Vec<u32>,
    pub(crate) price: Vec<W>,
    pub(crate) mate: Vec<u32>,
}

impl<W: Weight> Side<W> {
    /// A side of this many nodes at price 0 that is only reached, never searched from.
    pub(crate) fn without_edges(nodes: usize) -> Self {
        Self {
            offsets: vec![0; nodes + 1],
            edges: Vec::new(),
            ordered: vec![0; nodes],
            price: vec![W::ZERO; nodes],
            mate: vec![FREE; nodes],
        }
    }

    /// The requests of a graph with their useful edges, the first of each row in order; nothing when
    /// the search has to end.
    pub(crate) fn requests(graph: &Graph, offsets: &[u32], meter: &mut Meter<'_>) -> Option<Self> {
        let mut side = Self::without_edges(graph.requests());
        let useful = offsets.last().map_or(0, |&edges| edges as usize);
        side.edges = vec![W::ZERO.edge(0); useful];
        side.offsets = offsets.to_vec();
        side.for_each_row(meter, &|request, edges, ordered| {
            let (drivers, costs) = graph.row_slices(request);
            let unmatched_cost = graph.unmatched_cost(request);
            let put = |edge: &mut W::Packed, driver: u32, cost: i64| {
                *edge = W::narrow(unmatched_cost - cost).edge(driver);
            };
            let row = drivers.iter().zip(costs);
            if edges.len() == drivers.len() {
                for (edge, (&driver, &cost)) in edges.iter_mut().zip(row) {
                    put(edge, driver, cost);
                }
            } else {
                let useful = row.filter(|&(_, &cost)| cost < unmatched_cost);
                for (edge, (&driver, &cost)) in edges.iter_mut().zip(useful) {
                    put(edge, driver, cost);
                }
            }
            *ordered = order_more(edges, 0) as u32;
        })?;
        Some(side)
    }

    /// The drivers of a graph with their useful edges, the first of each row in order; nothing when
    /// the search has to end.
    pub(crate) fn drivers(graph: &Graph, offsets: &[u32], meter: &mut Meter<'_>) -> Option<Self> {
        let mut side = Self::without_edges(graph.drivers());
        let row = |request: u32| {
            let unmatched_cost = graph.unmatched_cost(request as usize);
            let edges = graph.row(request as usize);
            edges.map(move |(driver, cost)| (unmatched_cost - cost, driver))
        };
        let packed = |(saving, driver)| (W::narrow(saving), driver);
        if offsets
            .last()
            .is_some_and(|&useful| useful as usize == graph.edges())
        {
            side.fill(offsets, graph.requests(), meter, |request| {
                row(request).map(packed)
            })?;
        } else {
            side.fill(offsets, graph.requests(), meter, |request| {
                row(request).filter(|&(saving, _)| saving > 0).map(packed)
            })?;
        }
        side.for_each_row(meter, &|_, edges, ordered| {
            *ordered = order_more(edges, 0) as u32;
        })?;
        Some(side)
    }

    /// Works on each row (its node, its edges, how many of them are in order); nothing when the
    /// search has to end.
    fn for_each_row(
        &mut self,
        meter: &mut Meter<'_>,
        work: &(impl Fn(usize, &mut [W::Packed], &mut u32) + Sync),
    ) -> Option<()> {
        for_each_row(
            0,
            &self.offsets,
            &mut self.edges,
            &mut self.ordered,
            meter,
            work,
        )
    }

    /// Takes the edges of the other side, so that this side can be searched from; prices and pairs
    /// stay. Nothing when the search has to end.
    pub(crate) fn take_edges_of(&mut self, other: &Self, meter: &mut Meter<'_>) -> Option<()> {
        let mut offsets = vec![0_u32; self.len() + 1];
        for &edge in &other.edges {
            offsets[W::of_edge(edge).1 as usize + 1] += 1;
        }
        sum_up(&mut offsets);
        self.fill(&offsets, other.len(), meter, |node| {
            other.row(node).iter().map(|&edge| W::of_edge(edge))
        })
    }

    /// Fills in the edges, read row by row of the `others` nodes of the other side.
    fn fill<R: Iterator<Item = (W, u32)>>(
        &mut self,
        offsets: &[u32],
        others: usize,
        meter: &mut Meter<'_>,
        row: impl Fn(u32) -> R,
    ) -> Option<()> {
        let edges = offsets.last().map_or(0, |&edges| edges as usize);
        self.edges = vec![W::ZERO.edge(0); edges];
        let mut next = offsets.to_vec();
        for other in 0..others as u32 {
            let mut read = 1;
            for (weight, node) in row(other) {
                let place = &mut next[node as usize];
                self.edges[*place as usize] = weight.edge(other);
                *place += 1;
                read += 1;
            }
            if meter.search_is_over_after(read) {
                return None;
            }
        }
        self.offsets = offsets.to_vec();
        Some(())
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.mate.len()
    }

    /// Number of edges.
    pub(crate) fn edges(&self) -> usize {
        self.edges.len()
    }

    /// Nodes that have an edge, in index order.
    pub(crate) fn with_edges(&self) -> Vec<u32> {
        let has_edge = |&node: &u32| !self.place(node).is_empty();
        (0..self.len() as u32).filter(has_edge).collect()
    }

    /// Nodes that are unmatched at a price above 0, in index order.
    pub(crate) fn to_make_whole(&self) -> Vec<u32> {
        let open =
            |&node: &u32| self.mate[node as usize] == FREE && self.price[node as usize] > W::ZERO;
        (0..self.len() as u32).filter(open).collect()
    }

    /// The edges of a node in no particular order.
    #[inline]
    pub(crate) fn row(&self, node: u32) -> &[W::Packed] {
        &self.edges[self.place(node)]
    }

    /// Looks at the edges of a node, heaviest first, until `look` is satisfied or there are no more.
    #[inline]
    pub(crate) fn look(&mut self, node: u32, mut look: impl FnMut(W::Packed) -> ControlFlow<()>) {
        let place = self.place(node);
        let row = &mut self.edges[place];
        let ordered = &mut self.ordered[node as usize];
        let mut from = 0;
        loop {
            for &edge in &row[from..*ordered as usize] {
                if look(edge).is_break() {
                    return;
                }
            }
            from = *ordered as usize;
            if from == row.len() {
                return;
            }
            *ordered = order_more(row, from) as u32;
        }
    }

    /// The edge of a node that has `before` heavier ones, if there is one.
    pub(crate) fn nth_heaviest(&mut self, node: u32, before: usize) -> Option<(W, u32)> {
        let place = self.place(node);
        let row = &mut self.edges[place];
        if before >= row.len() {
            return None;
        }
        let ordered = &mut self.ordered[node as usize];
        while before >= *ordered as usize {
            *ordered = order_more(row, *ordered as usize) as u32;
        }
        Some(W::of_edge(row[before]))
    }

    #[inline]
    fn place(&self, node: u32) -> Range<usize> {
        let node = node as usize;
        self.offsets[node] as usize..self.offsets[node + 1] as usize
    }
}

/// `first` is the node of the first row, and `edges` start with its first edge.
fn for_each_row<E: Send>(
    first: usize,
    offsets: &[u32],
    edges: &mut [E],
    ordered: &mut [u32],
    meter: &mut Meter<'_>,
    work: &(impl Fn(usize, &mut [E], &mut u32) + Sync),
) -> Option<()> {
    if edges.len() > EDGES_PER_TASK && ordered.len() > 1 {
        let middle = ordered.len() / 2;
        let (left, right) = edges.split_at_mut((offsets[middle] - offsets[0]) as usize);
        let (ordered, more) = ordered.split_at_mut(middle);
        let mut other = meter.another();
        let done = pool::join(
            || for_each_row(first, &offsets[..=middle], left, ordered, meter, work),
            || {
                for_each_row(
                    first + middle,
                    &offsets[middle..],
                    right,
                    more,
                    &mut other,
                    work,
                )
            },
        );
        return done.0.and(done.1);
    }
    for ((node, row), ordered) in (first..).zip(offsets.windows(2)).zip(ordered) {
        let row = (row[0] - offsets[0]) as usize..(row[1] - offsets[0]) as usize;
        if meter.search_is_over_after(row.len() * ROW_UNITS + 1) {
            return None;
        }
        work(node, &mut edges[row], ordered);
    }
    Some(())
}

/// Puts more of a row in order: the heaviest few per cent, then a quarter, then all of it; all of it
/// at once when it is short. Returns how much is in order then.
#[cold]
fn order_more<E: Ord + Copy>(row: &mut [E], ordered: usize) -> usize {
    let rest = &mut row[ordered..];
    if rest.len() <= SHORT_ROW.max(4 * ordered) {
        rest.sort_unstable();
        return row.len();
    }
    let mut more = 0;
    if rest.len() >= LONG_ROW {
        // An even sample tells about where the first few per cent end.
        let mut sample = [rest[0]; SAMPLE];
        for (place, edge) in sample.iter_mut().enumerate() {
            *edge = rest[place * rest.len() / SAMPLE];
        }
        sample.sort_unstable();
        let end = sample[if ordered == 0 {
            FIRST_RANK
        } else {
            SECOND_RANK
        }];
        for place in 0..rest.len() {
            let before_end = rest[place] < end;
            rest.swap(place, more);
            more += usize::from(before_end);
        }
    }
    if more < FEWEST_ORDERED {
        more = FEWEST_ORDERED;
        rest.select_nth_unstable(more);
    }
    rest[..more].sort_unstable();
    ordered + more
}
