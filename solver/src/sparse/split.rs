//! Parts of a graph that share nothing, solved apart on rayon.
//!
//! Dispatch windows are mostly one giant component, and then the graph is solved as it is. Where
//! components are many, small ones are put together into groups worth a task. What is split
//! depends on the graph alone, never on the number of threads, and results are put together in a
//! fixed order.

use rayon::prelude::*;

use super::run;
use super::useful::Useful;
use crate::Graph;
use crate::budget::{Deadline, Meter};
use crate::components::Components;
use crate::pool;
use crate::solve::Outcome;

/// Least number of edges worth a task: some 100 µs of work.
const EDGES_PER_GROUP: usize = 1 << 13;

/// Solves a graph that has edges, and finds its components. Without a budget the outcome is
/// optimal.
pub(crate) fn solve(
    graph: &Graph,
    warm_start: Option<&[i64]>,
    deadline: &Deadline,
) -> (Components, Outcome) {
    let (components, useful) = pool::join(
        || Components::of(graph),
        || Useful::edges(graph, &mut Meter::new(deadline)),
    );
    let most = components.edges.iter().copied().max().unwrap_or(0) as usize;
    if graph.edges() - most < EDGES_PER_GROUP.max(graph.edges() / 8) {
        // What could be done beside the largest component is not worth the copies.
        let outcome = run::solve(graph, useful, warm_start, deadline);
        return (components, outcome);
    }
    let groups = groups(graph, &components);
    let solved: Vec<_> = groups
        .into_par_iter()
        .map(|group| {
            let part = group.graph(graph);
            let warm_start = warm_start.map(|prices| group.prices(prices));
            let outcome = run::solve(&part, None, warm_start.as_deref(), deadline);
            (group, outcome)
        })
        .collect();
    let whole = put_together(graph, &solved);
    (components, whole)
}

/// Requests and drivers solved together, each in index order.
struct Group {
    requests: Vec<u32>,
    drivers: Vec<u32>,
}

/// Puts components together, in order, into groups that share no driver.
fn groups(graph: &Graph, components: &Components) -> Vec<Group> {
    let mut group_of = Vec::with_capacity(components.count());
    let (mut group, mut edges) = (0, 0);
    for &more in &components.edges {
        if edges >= EDGES_PER_GROUP {
            group += 1;
            edges = 0;
        }
        edges += more as usize;
        group_of.push(group);
    }
    let mut groups: Vec<_> = (0..=group)
        .map(|_| Group {
            requests: Vec::new(),
            drivers: Vec::new(),
        })
        .collect();
    let mut group_of_driver = vec![None; graph.drivers()];
    for (request, &component) in components.of_request.iter().enumerate() {
        if component == Components::NONE {
            continue;
        }
        let group = group_of[component as usize];
        groups[group].requests.push(request as u32);
        for &driver in graph.row_slices(request).0 {
            group_of_driver[driver as usize] = Some(group);
        }
    }
    for (driver, group) in group_of_driver.into_iter().enumerate() {
        if let Some(group) = group {
            groups[group].drivers.push(driver as u32);
        }
    }
    groups
}

impl Group {
    /// The group's part of the graph, in the group's own indices.
    fn graph(&self, graph: &Graph) -> Graph {
        let local = |driver: u32| self.drivers.partition_point(|&other| other < driver) as u32;
        graph.part(&self.requests, self.drivers.len(), local)
    }

    fn prices(&self, prices: &[i64]) -> Vec<i64> {
        let price = |&driver: &u32| prices.get(driver as usize).copied().unwrap_or(0);
        self.drivers.iter().map(price).collect()
    }
}

fn put_together(graph: &Graph, solved: &[(Group, Outcome)]) -> Outcome {
    let mut whole = Outcome::nothing(graph);
    // Requests without edges stay unmatched at their unmatched cost.
    let mut request_prices = graph.unmatched_costs().to_vec();
    let mut done = true;
    for (group, part) in solved {
        for (&driver, &price) in group.drivers.iter().zip(&part.driver_prices) {
            whole.driver_prices[driver as usize] = price;
        }
        for (&request, &driver) in group.requests.iter().zip(&part.driver_of) {
            whole.driver_of[request as usize] = driver.map(|driver| group.drivers[driver as usize]);
        }
        match &part.request_prices {
            None => done = false,
            Some(prices) => {
                for (&request, &price) in group.requests.iter().zip(prices) {
                    request_prices[request as usize] = price;
                }
            }
        }
    }
    whole.request_prices = done.then_some(request_prices);
    whole
}
