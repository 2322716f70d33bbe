//! Branch and bound: where the best mean of matchings is no matching, a pair that some of them have
//! and some have not is taken in one branch and barred in the other.
//!
//! The branch of the least bound comes first, of equal ones the deeper, then the later. A reduced
//! cost that lifts the bound to what is known takes an edge out for good, so that the search soon
//! runs on little more than the edges of good matchings.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use super::master;
use super::problem::{Column, Incumbent, Problem, Rows, Settled};
use super::relaxation::{Ended, Node, Point, Relaxed, rounded_up};
use crate::Graph;
use crate::budget::Deadline;
use crate::constraints::{fill, shift};

/// Most branches of one search, each with its matchings: minutes, and some hundred megabytes, at
/// worst. A search that comes to this end is cut short even without a budget.
const MOST_BRANCHES: usize = 20_000;

/// Matchings that a branch takes over, the newest that fit.
const MOST_INHERITED: usize = 64;

/// Weights nearer to 0 or 1 than this are taken for whole.
const WHOLE: f64 = 1e-6;

struct Branch {
    settled: Settled,
    start: Vec<i64>,
    columns: Vec<Rc<Column>>,
}

/// The search of one problem, at one scale.
pub(super) struct Search<'s> {
    pub(super) problem: &'s Problem<'s>,
    pub(super) deadline: &'s Deadline,
    pub(super) scale: i64,
}

/// Order in the heap: least bound, then deepest, then newest.
type Place = (Reverse<i128>, usize, usize);

impl Search<'_> {
    /// Looks through everything that could be better than the incumbent; false when it was cut short.
    pub(super) fn run(
        &self,
        start: &[i64],
        columns: Vec<Rc<Column>>,
        incumbent: &mut Incumbent,
    ) -> bool {
        let whole = Settled::default();
        let rows = Rows::new(self.problem, &whole, self.scale);
        let node = Node {
            problem: self.problem,
            rows: &rows,
            deadline: self.deadline,
        };
        let root = node.relax(start, columns, incumbent);
        let Some(best) = &root.best else {
            return false;
        };
        match root.ended {
            Ended::Cut => return false,
            Ended::Worse => return true,
            Ended::Settled => self.refill(self.problem.graph, &best.column, incumbent),
        }
        let mut known = incumbent.value;
        let mut graph = self.without_hopeless_edges(best, known);

        let mut open: BinaryHeap<(Place, Slot)> = BinaryHeap::new();
        let mut serial = 0;
        let bound = best.value;
        let problem = self.problem.on(&graph);
        for branch in branches(&problem, &rows, &whole, &root) {
            push(&mut open, &mut serial, bound, branch);
        }
        while let Some(((Reverse(bound), ..), Slot(branch))) = open.pop() {
            if rounded_up(bound, self.scale) >= incumbent.value {
                return true;
            }
            if serial > MOST_BRANCHES {
                return false;
            }
            if incumbent.value < known {
                known = incumbent.value;
                graph = self.without_hopeless_edges(best, known);
            }
            let problem = self.problem.on(&graph);
            if !is_possible(&problem, &branch.settled) {
                continue;
            }
            let rows = Rows::new(&problem, &branch.settled, self.scale);
            let node = Node {
                problem: &problem,
                rows: &rows,
                deadline: self.deadline,
            };
            let columns = with_the_least(&problem, &branch);
            let relaxed = node.relax(&branch.start, columns, incumbent);
            if relaxed.ended == Ended::Cut {
                return false;
            }
            let Some(point) = &relaxed.best else {
                return false;
            };
            self.refill(&graph, &point.column, incumbent);
            let bound = bound.max(point.value);
            if relaxed.ended == Ended::Worse || node.is_worse(bound, incumbent) {
                continue;
            }
            for child in branches(&problem, &rows, &branch.settled, &relaxed) {
                push(&mut open, &mut serial, bound, child);
            }
        }
        true
    }

    /// Makes a valid answer of a node's matching, and offers it.
    fn refill(&self, graph: &Graph, column: &Column, incumbent: &mut Incumbent) {
        let problem = self.problem.on(graph);
        let filled = fill(graph, problem.constraints, &column.driver_of);
        incumbent.offer(&problem, Column::new(&problem, filled));
    }

    /// The graph without edges that no answer better than `known` uses: at the root's prices a pair
    /// lifts the bound by its reduced cost.
    fn without_hopeless_edges(&self, root: &Point, known: i128) -> Graph {
        let Problem {
            graph, constraints, ..
        } = self.problem;
        let hopeful = |request: usize, driver: u32, cost: i64| {
            let shift = shift(constraints.word(request, driver), &root.multipliers);
            let reduced = i128::from(cost) * i128::from(self.scale)
                + i128::from(shift)
                + i128::from(root.driver_prices[driver as usize])
                - i128::from(root.request_prices[request]);
            rounded_up(root.value + reduced, self.scale) < known
        };
        let edges = (0..graph.requests()).flat_map(|request| {
            let row = graph.row(request);
            let kept = row.filter(move |&(driver, cost)| hopeful(request, driver, cost));
            kept.map(move |(driver, cost)| (request as u32, driver, cost))
        });
        let unmatched = graph.unmatched_costs().to_vec();
        // a part of a sound graph is sound
        Graph::from_edges(graph.requests(), graph.drivers(), unmatched, edges)
            .unwrap_or_else(|_| (*graph).clone())
    }
}

/// Whether what is taken is still there and breaks no cap.
fn is_possible(problem: &Problem<'_>, settled: &Settled) -> bool {
    let there =
        |&(request, driver): &(u32, u32)| problem.graph.cost(request as usize, driver).is_some();
    settled.taken.iter().all(there)
        && problem.within_caps(&problem.constraints.count(&least(problem, settled)))
}

/// A branch's matchings, before them the one that has what is taken and nothing else: it keeps
/// every cap, so the master always has an answer.
fn with_the_least(problem: &Problem<'_>, branch: &Branch) -> Vec<Rc<Column>> {
    let least = Rc::new(Column::new(problem, least(problem, &branch.settled)));
    let others = branch.columns.iter().filter(|column| **column != least);
    std::iter::once(least.clone())
        .chain(others.cloned())
        .collect()
}

/// The two branches of a node that settled; none where nothing is left to settle.
fn branches(
    problem: &Problem<'_>,
    rows: &Rows,
    settled: &Settled,
    relaxed: &Relaxed,
) -> Vec<Branch> {
    let Some(pair) = pair_to_settle(problem, rows, settled, relaxed) else {
        return Vec::new();
    };
    let start = relaxed
        .best
        .as_ref()
        .map_or(Vec::new(), |best| best.multipliers.clone());
    let (mut taken, mut barred) = (settled.clone(), settled.clone());
    taken.taken.push(pair);
    barred.barred.push(pair);
    [taken, barred]
        .map(|settled| {
            let fits = relaxed.columns.iter().rev();
            let fits = fits.filter(|column| settled.admits(&column.driver_of));
            let mut columns: Vec<_> = fits.take(MOST_INHERITED).cloned().collect();
            columns.reverse();
            Branch {
                columns,
                start: start.clone(),
                settled,
            }
        })
        .into()
}

/// The pair whose share in the best mean is nearest to one half; where the mean is a matching,
/// any pair that is not settled.
fn pair_to_settle(
    problem: &Problem<'_>,
    rows: &Rows,
    settled: &Settled,
    relaxed: &Relaxed,
) -> Option<(u32, u32)> {
    let weights = master::weights(problem, &relaxed.columns).unwrap_or_default();
    let mut shares: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for (column, weight) in relaxed.columns.iter().zip(weights) {
        if weight > WHOLE {
            for (request, driver) in column.driver_of.iter().enumerate() {
                if let Some(driver) = driver {
                    *shares.entry((request as u32, *driver)).or_default() += weight;
                }
            }
        }
    }
    let open = |pair: &(u32, u32)| {
        !settled.taken.contains(pair) && problem.graph.cost(pair.0 as usize, pair.1).is_some()
    };
    let half = |share: f64| (share - 0.5).abs();
    let parted = shares
        .iter()
        .filter(|&(pair, &share)| half(share) < 0.5 - WHOLE && open(pair))
        .min_by(|a, b| half(*a.1).total_cmp(&half(*b.1)).then(a.0.cmp(b.0)));
    match parted {
        Some((&pair, _)) => Some(pair),
        None => shares
            .keys()
            .copied()
            .find(open)
            .or_else(|| rows.first_open()),
    }
}

/// The matching of what is taken alone.
fn least(problem: &Problem<'_>, settled: &Settled) -> Vec<Option<u32>> {
    let mut driver_of = vec![None; problem.graph.requests()];
    for &(request, driver) in &settled.taken {
        driver_of[request as usize] = Some(driver);
    }
    driver_of
}

fn push(open: &mut BinaryHeap<(Place, Slot)>, serial: &mut usize, bound: i128, branch: Branch) {
    *serial += 1;
    let depth = branch.settled.taken.len() + branch.settled.barred.len();
    open.push(((Reverse(bound), depth, *serial), Slot(branch)));
}

/// A branch in the heap, where places alone decide the order and no two are the same.
struct Slot(Branch);

impl PartialEq for Slot {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Slot {}

impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slot {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
