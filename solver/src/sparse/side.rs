//! One side of the graph as the sparse solver sees it, and how it is built.
//!
//! The solver maximises what pairs save: an edge has weight `w_ij = U_i − c_ij`, and edges that
//! save nothing (`c_ij ≥ U_i`) are left out. In that form requests and drivers are alike: each node
//! has a price ≥ 0 (a request `U_i − u_i`, a driver `v_j`), the two prices of an edge sum to at
//! least its weight, and an unmatched node of either side has price 0 at the optimum. So one search
//! serves both sides, and "start from the drivers" is the same code with the sides exchanged.

use super::weight::Weight;
use crate::Graph;
use crate::budget::Meter;

/// A node that is not matched.
pub(crate) const FREE: u32 = u32::MAX;

/// Units of work for sorting one edge.
const SORT_UNITS: usize = 6;

/// Edges one rayon task sorts: some 200 µs of work.
const EDGES_PER_TASK: usize = 1 << 14;

/// The nodes of one side: their edges (heaviest first, then by the other node's index), prices and
/// mates.
pub(crate) struct Side<W: Weight> {
    offsets: Vec<u32>,
    edges: Vec<W::Packed>,
    pub(crate) price: Vec<W>,
    pub(crate) mate: Vec<u32>,
}

impl<W: Weight> Side<W> {
    /// A side of this many nodes at price 0 that is only reached, never searched from.
    pub(crate) fn without_edges(nodes: usize) -> Self {
        Self {
            offsets: vec![0; nodes + 1],
            edges: Vec::new(),
            price: vec![W::ZERO; nodes],
            mate: vec![FREE; nodes],
        }
    }

    /// The requests of a graph with their useful edges, in order; nothing when the search has to
    /// end. Prices start at each node's largest weight.
    pub(crate) fn requests(graph: &Graph, meter: &mut Meter<'_>) -> Option<Self> {
        let mut offsets = Vec::with_capacity(graph.requests() + 1);
        let mut edges = Vec::with_capacity(graph.edges());
        offsets.push(0);
        for request in 0..graph.requests() {
            let unmatched_cost = graph.unmatched_cost(request);
            let (drivers, costs) = graph.row_slices(request);
            if meter.search_is_over_after(drivers.len() + 1) {
                return None;
            }
            let useful = drivers
                .iter()
                .zip(costs)
                .filter(|&(_, &cost)| cost < unmatched_cost);
            edges.extend(
                useful.map(|(&driver, &cost)| W::narrow(unmatched_cost - cost).edge(driver)),
            );
            offsets.push(edges.len() as u32);
        }
        Self::sorted(offsets, edges, meter)
    }

    /// The same edges seen from the other side, which has `nodes` nodes.
    pub(crate) fn transposed(&self, nodes: usize, meter: &mut Meter<'_>) -> Option<Self> {
        let mut offsets = vec![0_u32; nodes + 1];
        for &edge in &self.edges {
            offsets[W::of_edge(edge).1 as usize + 1] += 1;
        }
        for node in 0..nodes {
            offsets[node + 1] += offsets[node];
        }
        let mut next = offsets.clone();
        let mut edges = self.edges.clone();
        for node in 0..self.len() {
            let row = self.row(node as u32);
            if meter.search_is_over_after(row.len() + 1) {
                return None;
            }
            for &edge in row {
                let (weight, other) = W::of_edge(edge);
                let place = &mut next[other as usize];
                edges[*place as usize] = weight.edge(node as u32);
                *place += 1;
            }
        }
        Self::sorted(offsets, edges, meter)
    }

    fn sorted(offsets: Vec<u32>, mut edges: Vec<W::Packed>, meter: &mut Meter<'_>) -> Option<Self> {
        sort_rows::<W>(&offsets, &mut edges, meter)?;
        let price = |row: &[u32]| match edges.get(row[0] as usize..row[1] as usize) {
            Some(&[heaviest, ..]) => W::of_edge(heaviest).0,
            _ => W::ZERO,
        };
        let price: Vec<_> = offsets.windows(2).map(price).collect();
        let mate = vec![FREE; price.len()];
        Some(Self {
            offsets,
            edges,
            price,
            mate,
        })
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.mate.len()
    }

    /// Number of edges.
    pub(crate) fn edges(&self) -> usize {
        self.edges.len()
    }

    /// Takes the edges of the other side, so that this side can be searched from; prices and pairs
    /// stay. Nothing when the search has to end.
    pub(crate) fn take_edges_of(&mut self, other: &Self, meter: &mut Meter<'_>) -> Option<()> {
        let Self { offsets, edges, .. } = other.transposed(self.len(), meter)?;
        (self.offsets, self.edges) = (offsets, edges);
        Some(())
    }

    /// Number of nodes that have an edge.
    pub(crate) fn with_edges(&self) -> usize {
        self.offsets
            .windows(2)
            .filter(|pair| pair[0] != pair[1])
            .count()
    }

    /// Number of nodes of the other side, which has `nodes` nodes, that have an edge.
    pub(crate) fn others_with_edges(&self, nodes: usize) -> usize {
        let mut met = vec![false; nodes];
        for &edge in &self.edges {
            met[W::of_edge(edge).1 as usize] = true;
        }
        met.into_iter().filter(|&met| met).count()
    }

    /// Nodes that are unmatched at a price above 0, in index order.
    pub(crate) fn to_make_whole(&self) -> Vec<u32> {
        let open =
            |&node: &u32| self.mate[node as usize] == FREE && self.price[node as usize] > W::ZERO;
        (0..self.len() as u32).filter(open).collect()
    }

    /// The edges of a node, heaviest first.
    #[inline]
    pub(crate) fn row(&self, node: u32) -> &[W::Packed] {
        let node = node as usize;
        &self.edges[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }
}

/// Sorts the edges of each row, large parts on rayon; nothing when the search has to end.
///
/// `edges` starts with the edge at `offsets[0]`.
fn sort_rows<W: Weight>(
    offsets: &[u32],
    edges: &mut [W::Packed],
    meter: &mut Meter<'_>,
) -> Option<()> {
    let rows = offsets.len() - 1;
    if edges.len() > EDGES_PER_TASK && rows > 1 {
        let middle = rows / 2;
        let (left, right) = edges.split_at_mut((offsets[middle] - offsets[0]) as usize);
        let mut other = meter.another();
        let sorted = rayon::join(
            || sort_rows::<W>(&offsets[..=middle], left, meter),
            || sort_rows::<W>(&offsets[middle..], right, &mut other),
        );
        return sorted.0.and(sorted.1);
    }
    let start = offsets[0];
    for row in offsets.windows(2) {
        let row = &mut edges[(row[0] - start) as usize..(row[1] - start) as usize];
        if meter.search_is_over_after(row.len() * SORT_UNITS + 1) {
            return None;
        }
        row.sort_unstable();
    }
    Some(())
}
