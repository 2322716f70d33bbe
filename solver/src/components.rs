//! Connected components of a graph: parts that can be solved apart from each other.
//!
//! Union-find with path halving, linking to the lower root (Tarjan & van Leeuwen 1984), in one pass
//! over the edges.

use crate::Graph;

/// The components of a graph, requests and drivers without edges left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Components {
    /// For each request its component, numbered by their first request; [`Components::NONE`] for a
    /// request without edges.
    pub(crate) of_request: Vec<u32>,
    /// Number of requests of each component.
    pub(crate) requests: Vec<u32>,
    /// Number of edges of each component.
    pub(crate) edges: Vec<u32>,
}

impl Components {
    /// The component of a request without edges.
    pub(crate) const NONE: u32 = u32::MAX;

    /// Finds the components. Near O(R + D + E).
    pub(crate) fn of(graph: &Graph) -> Self {
        let roots = join(graph);
        let mut number = vec![Self::NONE; graph.requests()];
        let mut found = Self {
            of_request: vec![Self::NONE; graph.requests()],
            requests: Vec::new(),
            edges: Vec::new(),
        };
        for (request, &root) in roots.iter().enumerate() {
            let length = graph.row_slices(request).0.len() as u32;
            if length == 0 {
                continue;
            }
            let root = root as usize;
            if number[root] == Self::NONE {
                number[root] = found.requests.len() as u32;
                found.requests.push(0);
                found.edges.push(0);
            }
            let component = number[root];
            found.of_request[request] = component;
            found.requests[component as usize] += 1;
            found.edges[component as usize] += length;
        }
        found
    }

    /// Number of components.
    pub(crate) fn count(&self) -> usize {
        self.requests.len()
    }

    /// Number of requests in the component that has most of them; 0 without edges.
    pub(crate) fn largest(&self) -> usize {
        self.requests.iter().copied().max().unwrap_or(0) as usize
    }
}

/// For each request the lowest request of its component.
///
/// A driver points to a request it has met, so the forest has requests only.
fn join(graph: &Graph) -> Vec<u32> {
    let mut parent: Vec<u32> = (0..graph.requests() as u32).collect();
    let mut met = vec![Components::NONE; graph.drivers()];
    for request in 0..graph.requests() {
        let mut root = request as u32;
        for &driver in graph.row_slices(request).0 {
            let other = met[driver as usize];
            if other == Components::NONE {
                met[driver as usize] = root;
            } else if other != root {
                let other = find(&mut parent, other);
                let (low, high) = (root.min(other), root.max(other));
                parent[high as usize] = low;
                met[driver as usize] = low;
                root = low;
            }
        }
    }
    for request in 0..graph.requests() {
        // Parents have lower numbers and are final by now.
        parent[request] = parent[parent[request] as usize];
    }
    parent
}

fn find(parent: &mut [u32], mut node: u32) -> u32 {
    while parent[node as usize] != node {
        let above = parent[parent[node as usize] as usize];
        parent[node as usize] = above;
        node = above;
    }
    node
}
