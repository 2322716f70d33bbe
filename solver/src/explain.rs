//! Why a request got the driver it got: what giving it another one would do, and cost.
//!
//! Promise: for each candidate d of a request r
//!
//! ```text
//! swap_cost(r, d) = c_rd + OPT(G without r and d) − OPT(G)   ≥ 0
//! ```
//!
//! exactly what a re-solve with the pair forced would find, and the moves that reach it. None of
//! them is re-solved: the optimum with the pair (r, d) differs from the optimum at hand by cycles
//! of its residual graph, of which only the one through (r, d) is needed, since every other costs
//! nothing or more (Ahuja, Magnanti & Orlin 1993, "Network Flows", ch. 3 and 9). So the swap cost is
//! `c_rd` plus the shortest path from d back to r. One search backwards from r finds that path for
//! every candidate at once, with the reduced costs of the optimal prices, none of which is negative
//! (Dijkstra 1959; Edmonds & Karp 1972).
//!
//! The path is a chain: the request that holds d moves to another driver, the request that holds
//! that one moves on, and so on, until one takes the driver r gives up, or a free one, or goes
//! without. A driver given up may also serve someone who has none, or let others move.
//!
//! Reduced costs are formed in `i128`, like the sums of the certificate, and lengths saturate: one
//! that does is no part of a shortest chain, since no swap costs more than the graph's own bound on
//! sums.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{CertificateError, Graph, Solution, Status};

/// Why a solution cannot be explained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// The solve was cut short, or its method is not exact: what a swap costs is told from the
    /// optimum alone.
    #[error("the solution is not optimal (gap {gap_abs}): only an optimum can be explained")]
    NotOptimal {
        /// How much cheaper another matching could be.
        gap_abs: i64,
    },
    /// The solution is not one of this graph.
    #[error("the solution's certificate does not hold: {0}")]
    Certificate(#[from] CertificateError),
    /// There is no such request.
    #[error("request {request} is outside 0..{requests}")]
    RequestOutside {
        /// The request asked for.
        request: usize,
        /// Number of requests.
        requests: usize,
    },
}

/// What a request got, and what each of its other candidates would cost everybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The request.
    pub request: u32,
    /// The driver it got.
    pub driver: Option<u32>,
    /// What it pays: the cost of the pair, or its unmatched cost.
    pub cost: i64,
    /// The other candidates by (cost, driver).
    pub swaps: Vec<Swap>,
}

/// A candidate that a request did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// The candidate.
    pub driver: u32,
    /// Cost of the pair.
    pub cost: i64,
    /// The request that has the driver.
    pub held_by: Option<u32>,
    /// How much more everybody together would pay with this pair: never negative.
    pub swap_cost: i64,
    /// The reduced cost of the edge, `c_rd − u_r + v_d`: a lower bound of the swap cost that needs
    /// no search.
    pub at_least: i64,
    /// Who moves, the request itself first, then in the order of the chain. After these moves the
    /// matching is the best one with the pair.
    pub moves: Vec<Move>,
    /// The driver that is then free, of those that have a request now.
    pub left_idle: Option<u32>,
}

/// A request that changes its driver; `None` is being unmatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The request.
    pub request: u32,
    /// The driver it has.
    pub from: Option<u32>,
    /// The driver it would get.
    pub to: Option<u32>,
}

impl Explanation {
    /// The candidates that cost less than what the request got; all of them if it got none.
    pub fn cheaper(&self) -> impl Iterator<Item = &Swap> {
        let limit = self.driver.map(|_| self.cost);
        let within = move |swap: &&Swap| limit.is_none_or(|limit| swap.cost < limit);
        self.swaps.iter().filter(within)
    }
}

/// A proven optimum, ready to be asked about.
pub struct Explainer<'a> {
    graph: &'a Graph,
    solution: &'a Solution,
    columns: Columns,
    /// The request of each driver, or [`NONE`].
    request_of: Vec<u32>,
    /// For each request the cheapest way to give up its driver without asking anybody: a free driver,
    /// or [`NONE`] for going without; and how much dearer that is.
    way_out: Vec<(u64, u32)>,
    /// All requests that have a driver, the cheapest way out first.
    by_way_out: Vec<u32>,
}

/// No request, or no driver.
const NONE: u32 = u32::MAX;

/// Where a step of a chain leads: the length from there to the request, then the number of moves,
/// so that of equally cheap chains the shortest is told.
type Reach = (u64, u32);

/// Further than any chain.
const UNREACHED: Reach = (u64::MAX, u32::MAX);

impl<'a> Explainer<'a> {
    /// Checks that the solution is an optimum of the graph, lists the requests of each driver and
    /// sorts requests by how easily they give theirs up. O(D + E + R log R) time, O(R + D + E) memory.
    ///
    /// # Errors
    /// [`ExplainError::NotOptimal`], or [`ExplainError::Certificate`] when the solution does not
    /// prove what it says.
    pub fn new(graph: &'a Graph, solution: &'a Solution) -> Result<Self, ExplainError> {
        solution.verify(graph)?;
        if solution.status == Status::Feasible {
            let gap_abs = solution.gap_abs();
            return Err(ExplainError::NotOptimal { gap_abs });
        }
        let mut request_of = vec![NONE; graph.drivers()];
        for (request, driver) in (0_u32..).zip(&solution.driver_of) {
            if let Some(driver) = driver {
                request_of[*driver as usize] = request;
            }
        }
        let mut explainer = Self {
            graph,
            solution,
            columns: Columns::of(graph),
            request_of,
            way_out: Vec::new(),
            by_way_out: (0..graph.requests() as u32)
                .filter(|&request| solution.driver_of[request as usize].is_some())
                .collect(),
        };
        let requests = 0..graph.requests();
        explainer.way_out = requests
            .map(|request| explainer.way_out_of(request))
            .collect();
        let way_out = &explainer.way_out;
        let dearer = |&request: &u32| (way_out[request as usize].0, request);
        explainer.by_way_out.sort_unstable_by_key(dearer);
        Ok(explainer)
    }

    /// Explains one request: one search for all its candidates, O(E + R log R) at worst, and
    /// seldom far from the request.
    ///
    /// ```
    /// use kheya_solver::{Explainer, Graph, Options, solve};
    ///
    /// // Both riders are nearest to car 0; rider 1 has no other.
    /// let graph = Graph::from_edges(2, 2, vec![1000, 1000], [(0, 0, 10), (0, 1, 30), (1, 0, 20)])?;
    /// let solution = solve(&graph, &Options::default())?;
    /// let told = Explainer::new(&graph, &solution)?.explain(0)?;
    /// assert_eq!((told.driver, told.cost), (Some(1), 30));
    /// // With car 0 for rider 0, rider 1 goes without: 10 + 1000 instead of 30 + 20.
    /// assert_eq!((told.swaps[0].held_by, told.swaps[0].swap_cost), (Some(1), 960));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ExplainError::RequestOutside`].
    pub fn explain(&self, request: usize) -> Result<Explanation, ExplainError> {
        let requests = self.graph.requests();
        if request >= requests {
            return Err(ExplainError::RequestOutside { request, requests });
        }
        let driver = self.solution.driver_of[request];
        let search = Search::back_from(self, request);
        let row = self.graph.row(request);
        let mut swaps: Vec<Swap> = row
            .clone()
            .filter(|&(other, _)| Some(other) != driver)
            .map(|(other, cost)| search.swap(other, cost))
            .collect();
        swaps.sort_unstable_by_key(|swap| (swap.cost, swap.driver));
        let paid = driver.and_then(|driver| self.graph.cost(request, driver));
        Ok(Explanation {
            request: request as u32,
            driver,
            cost: paid.unwrap_or_else(|| self.graph.unmatched_cost(request)),
            swaps,
        })
    }

    /// The reduced cost of an edge, ≥ 0.
    fn slack(&self, request: usize, driver: u32, cost: i64) -> u64 {
        let price = i128::from(self.solution.request_prices[request]);
        let driver_price = i128::from(self.solution.driver_prices[driver as usize]);
        saturated(i128::from(cost) + driver_price - price)
    }

    /// The price of a driver, ≥ 0.
    fn driver_price(&self, driver: u32) -> u64 {
        saturated(self.solution.driver_prices[driver as usize].into())
    }

    fn way_out_of(&self, request: usize) -> (u64, u32) {
        let row = self.graph.row(request);
        let free = row.filter(|&(driver, _)| self.request_of[driver as usize] == NONE);
        let free = free.map(|(driver, cost)| (self.slack(request, driver, cost), driver));
        let unmatched_cost = i128::from(self.graph.unmatched_cost(request));
        let dearer = unmatched_cost - i128::from(self.solution.request_prices[request]);
        free.fold((saturated(dearer), NONE), Ord::min)
    }
}

fn saturated(length: i128) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The shortest chains that end where a request gives up what it has.
///
/// Nodes are the requests, each standing for its driver too, and one more for "nobody": the place
/// of free drivers and of the choice to go without.
struct Search<'e> {
    explainer: &'e Explainer<'e>,
    request: usize,
    reach: Vec<Reach>,
    /// For each request on a chain the driver it moves to, [`NONE`] for going without.
    to: Vec<u32>,
    /// Past "nobody": the request that gives up its driver, or that gets one after all.
    after_nobody: u32,
    heap: BinaryHeap<Reverse<(Reach, u32)>>,
    /// No chain that is asked for is longer.
    longest: u64,
}

impl<'e> Search<'e> {
    /// Searches backwards from `request` until the chain of each of its candidates is known.
    fn back_from(explainer: &'e Explainer<'e>, request: usize) -> Self {
        let requests = explainer.graph.requests();
        let mut search = Self {
            explainer,
            request,
            reach: vec![UNREACHED; requests + 1],
            to: vec![NONE; requests],
            after_nobody: NONE,
            heap: BinaryHeap::new(),
            longest: 0,
        };
        let row = explainer.graph.row(request);
        let mut wanted: Vec<usize> = row.map(|(driver, _)| search.node_of(driver)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let bounds = wanted.iter().map(|&node| search.at_most(node));
        search.longest = bounds.max().unwrap_or(0);
        let mut missing = wanted.len();
        search.improve(request, (0, 0));
        while missing > 0
            && let Some(Reverse((reach, node))) = search.heap.pop()
        {
            let node = node as usize;
            if reach > search.reach[node] {
                continue;
            }
            missing -= usize::from(wanted.binary_search(&node).is_ok());
            if node == requests {
                search.settle_nobody(reach);
            } else {
                search.settle_request(node, reach);
            }
        }
        search
    }

    fn nobody(&self) -> usize {
        self.explainer.graph.requests()
    }

    /// The node that stands for a driver.
    fn node_of(&self, driver: u32) -> usize {
        match self.explainer.request_of[driver as usize] {
            NONE => self.nobody(),
            request => request as usize,
        }
    }

    /// A length that the chain from a node does not exceed: straight to the driver that the request
    /// gives up, or the way out while that driver is left idle.
    fn at_most(&self, node: usize) -> u64 {
        let explainer = self.explainer;
        let given_up = explainer.solution.driver_of[self.request];
        let idle = given_up.map_or(0, |driver| explainer.driver_price(driver));
        if node == self.nobody() {
            return idle;
        }
        let straight = given_up.and_then(|driver| {
            let cost = explainer.graph.cost(node, driver)?;
            Some(explainer.slack(node, driver, cost))
        });
        let out = explainer.way_out[node].0.saturating_add(idle);
        straight.map_or(out, |straight| straight.min(out))
    }

    /// Everyone who could take the driver of `request`; or nobody could, and it is left idle. A
    /// request without a driver is reached when somebody else goes without or a free driver is
    /// taken.
    fn settle_request(&mut self, request: usize, (length, moves): Reach) {
        let explainer = self.explainer;
        let price = match explainer.solution.driver_of[request] {
            Some(driver) => {
                for (other, cost) in explainer.columns.of_driver(driver) {
                    let slack = explainer.slack(other as usize, driver, cost);
                    let reach = (length.saturating_add(slack), moves + 1);
                    if self.improve(other as usize, reach) {
                        self.to[other as usize] = driver;
                    }
                }
                explainer.driver_price(driver)
            }
            None => 0,
        };
        if self.improve(self.nobody(), (length.saturating_add(price), moves)) {
            self.after_nobody = request as u32;
        }
    }

    /// Everyone's way out, the cheapest first.
    fn settle_nobody(&mut self, (length, moves): Reach) {
        let explainer = self.explainer;
        for &request in &explainer.by_way_out {
            let (dearer, driver) = explainer.way_out[request as usize];
            let length = length.saturating_add(dearer);
            if length > self.longest {
                break;
            }
            if self.improve(request as usize, (length, moves + 1)) {
                self.to[request as usize] = driver;
            }
        }
    }

    /// Notes a shorter chain from a node; false when it is none.
    fn improve(&mut self, node: usize, reach: Reach) -> bool {
        let shorter = reach < self.reach[node] && reach.0 <= self.longest;
        if shorter {
            self.reach[node] = reach;
            self.heap.push(Reverse((reach, node as u32)));
        }
        shorter
    }

    /// What giving `driver` to the request does.
    fn swap(&self, driver: u32, cost: i64) -> Swap {
        let at_least = self.explainer.slack(self.request, driver, cost);
        let held_by = self.explainer.request_of[driver as usize];
        let from = |request: u32| self.explainer.solution.driver_of[request as usize];
        let mut moves = vec![Move {
            request: self.request as u32,
            from: from(self.request as u32),
            to: Some(driver),
        }];
        let mut left_idle = None;
        let start = self.node_of(driver);
        let mut node = start;
        while node != self.request {
            if node == self.nobody() {
                node = self.after_nobody as usize;
                left_idle = from(self.after_nobody);
                continue;
            }
            let to = self.to[node];
            moves.push(Move {
                request: node as u32,
                from: from(node as u32),
                to: (to != NONE).then_some(to),
            });
            node = if to == NONE {
                self.nobody()
            } else {
                self.node_of(to)
            };
        }
        Swap {
            driver,
            cost,
            held_by: (held_by != NONE).then_some(held_by),
            // A cycle of at most R + D + 1 edges: within the graph's own bound on sums.
            swap_cost: at_least.saturating_add(self.reach[start].0) as i64,
            at_least: at_least as i64,
            moves,
            left_idle,
        }
    }
}

/// The edges of a graph driver by driver.
struct Columns {
    offsets: Vec<u32>,
    requests: Vec<u32>,
    costs: Vec<i64>,
}

impl Columns {
    fn of(graph: &Graph) -> Self {
        let mut offsets = vec![0_u32; graph.drivers() + 1];
        for request in 0..graph.requests() {
            for (driver, _) in graph.row(request) {
                offsets[driver as usize + 1] += 1;
            }
        }
        for driver in 0..graph.drivers() {
            offsets[driver + 1] += offsets[driver];
        }
        let mut next = offsets.clone();
        let (mut requests, mut costs) = (vec![0; graph.edges()], vec![0; graph.edges()]);
        for request in 0..graph.requests() {
            for (driver, cost) in graph.row(request) {
                let place = next[driver as usize] as usize;
                next[driver as usize] += 1;
                requests[place] = request as u32;
                costs[place] = cost;
            }
        }
        Self {
            offsets,
            requests,
            costs,
        }
    }

    /// The edges `(request, cost)` of a driver, by request.
    fn of_driver(&self, driver: u32) -> impl Iterator<Item = (u32, i64)> + '_ {
        let driver = driver as usize;
        let edges = self.offsets[driver] as usize..self.offsets[driver + 1] as usize;
        let requests = self.requests[edges.clone()].iter().copied();
        requests.zip(self.costs[edges].iter().copied())
    }
}
