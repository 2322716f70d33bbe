//! The relaxation of one node: the best bound that multipliers give.
//!
//! The master proposes multipliers, the sparse solver answers with the cheapest matching at shifted
//! costs, which is an exact bound and one more column for the master. It ends when the answer is no
//! news, or when the bound says that the node holds nothing better than what is known. Multipliers
//! start near 0 and are let go further only where the master runs into their end, since far ones make
//! for wild matchings.

use std::rc::Rc;

use super::master::{self, Reach};
use super::problem::{Column, Incumbent, Problem, Rows};
use crate::Graph;
use crate::budget::Deadline;
use crate::sparse;

/// Most rounds of one node. What has not settled by then is branched on as it is.
const MOST_ROUNDS: usize = 300;

/// Rounds without a better bound or a lower ceiling after which a node has settled.
const MOST_IDLE: usize = 12;

/// How much further multipliers may go when they come to an end.
const FURTHER: i64 = 8;

/// Multipliers with the prices that prove their bound, at the scale of the rows.
pub(super) struct Point {
    /// The bound.
    pub(super) value: i128,
    pub(super) multipliers: Vec<i64>,
    pub(super) request_prices: Vec<i64>,
    pub(super) driver_prices: Vec<i64>,
    /// The cheapest matching at these multipliers.
    pub(super) column: Rc<Column>,
}

/// How a relaxation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The bound cannot be raised further.
    Settled,
    /// Nothing here is better than what is known.
    Worse,
    /// The budget is over.
    Cut,
}

/// What a relaxation came to.
pub(super) struct Relaxed {
    pub(super) ended: Ended,
    pub(super) best: Option<Point>,
    /// Every matching met, those given first.
    pub(super) columns: Vec<Rc<Column>>,
}

/// A node to relax.
pub(super) struct Node<'n> {
    pub(super) problem: &'n Problem<'n>,
    pub(super) rows: &'n Rows,
    pub(super) deadline: &'n Deadline,
}

impl Node<'_> {
    /// Finds the best bound, from some multipliers and matchings of the node. Matchings that break
    /// no cap are offered to the incumbent.
    pub(super) fn relax(
        &self,
        start: &[i64],
        columns: Vec<Rc<Column>>,
        incumbent: &mut Incumbent,
    ) -> Relaxed {
        let mut relaxed = Relaxed {
            ended: Ended::Cut,
            best: None,
            columns,
        };
        let mut reach = self.first_reach(start);
        let mut multipliers = start.to_vec();
        let (mut ceiling, mut idle) = (f64::INFINITY, 0);
        for _ in 0..MOST_ROUNDS {
            let warm = relaxed.best.as_ref().map(|point| &*point.driver_prices);
            let Some(point) = self.at(&multipliers, warm) else {
                return relaxed;
            };
            incumbent.offer(self.problem, Column::clone(&point.column));
            let is_new = !relaxed.columns.contains(&point.column);
            if is_new {
                relaxed.columns.push(point.column.clone());
            }
            idle += 1;
            if relaxed
                .best
                .as_ref()
                .is_none_or(|best| point.value > best.value)
            {
                relaxed.best = Some(point);
                idle = 0;
            }
            let best = relaxed.best.as_ref().map_or(i128::MIN, |best| best.value);
            if self.is_worse(best, incumbent) {
                relaxed.ended = Ended::Worse;
                return relaxed;
            }
            let Some(thought) = master::multipliers(self.problem, &relaxed.columns, &reach) else {
                break;
            };
            let scale = self.rows.scale() as f64;
            let left = thought.value * scale - best as f64;
            if thought.value * scale < ceiling - 0.5 {
                (ceiling, idle) = (thought.value * scale, 0);
            }
            let proposed: Vec<i64> = thought
                .multipliers
                .iter()
                .map(|value| (value * scale).round() as i64)
                .collect();
            let settled = left <= 0.5 || idle > MOST_IDLE || (!is_new && proposed == multipliers);
            if settled && !self.go_further(&mut reach, &thought.at_end) {
                break;
            }
            if settled {
                (ceiling, idle) = (f64::INFINITY, 0);
            }
            multipliers = proposed;
        }
        relaxed.ended = Ended::Settled;
        relaxed
    }

    /// Whether a bound of this node says that it holds nothing better than the incumbent.
    pub(super) fn is_worse(&self, bound: i128, incumbent: &Incumbent) -> bool {
        rounded_up(bound, self.rows.scale()) >= incumbent.value
    }

    /// The exact bound at some multipliers; none when the budget is over.
    fn at(&self, multipliers: &[i64], warm: Option<&[i64]>) -> Option<Point> {
        let graph = self.rows.shifted(multipliers)?;
        let (driver_of, request_prices, driver_prices) = cheapest(&graph, warm, self.deadline)?;
        let sum = |prices: &[i64]| prices.iter().map(|&price| i128::from(price)).sum::<i128>();
        let value =
            sum(&request_prices) - sum(&driver_prices) - self.problem.taken_off(multipliers);
        let driver_of = self.rows.whole(driver_of);
        Some(Point {
            value,
            multipliers: multipliers.to_vec(),
            request_prices,
            driver_prices,
            column: Rc::new(Column::new(self.problem, driver_of)),
        })
    }

    /// One swing each at first, or what the start already has.
    fn first_reach(&self, start: &[i64]) -> Reach {
        let scale = self.rows.scale();
        let reach = |(index, &multiplier): (usize, &i64)| {
            let (cap, floor) = self.problem.limits(index);
            let first = |limit: i64, at: i64| limit.min(self.problem.swing.max(at / scale + 1));
            (first(cap, multiplier), first(floor, -multiplier))
        };
        start.iter().enumerate().map(reach).collect()
    }

    /// Lets multipliers that came to their end go further; false if none can.
    fn go_further(&self, reach: &mut Reach, at_end: &[(bool, bool)]) -> bool {
        let mut any = false;
        for (index, (reach, &at_end)) in reach.iter_mut().zip(at_end).enumerate() {
            let limits = self.problem.limits(index);
            let mut extend = |reach: &mut i64, limit: i64, at_end: bool| {
                if at_end && *reach < limit {
                    *reach = reach.saturating_mul(FURTHER).min(limit);
                    any = true;
                }
            };
            extend(&mut reach.0, limits.0, at_end.0);
            extend(&mut reach.1, limits.1, at_end.1);
        }
        any
    }
}

/// A bound at a scale in whole costs: what is worth a whole number is worth at least that much.
pub(super) fn rounded_up(bound: i128, scale: i64) -> i128 {
    let scale = i128::from(scale);
    bound.div_euclid(scale) + i128::from(bound.rem_euclid(scale) > 0)
}

type Priced = (Vec<Option<u32>>, Vec<i64>, Vec<i64>);

/// The cheapest matching of a graph, with both sides of its prices; none when the budget is over.
fn cheapest(graph: &Graph, warm: Option<&[i64]>, deadline: &Deadline) -> Option<Priced> {
    if deadline.search_is_over() {
        return None;
    }
    if graph.edges() == 0 {
        let nobody = vec![None; graph.requests()];
        return Some((
            nobody,
            graph.unmatched_costs().to_vec(),
            vec![0; graph.drivers()],
        ));
    }
    let (_, outcome) = sparse::solve(graph, warm, deadline);
    Some((
        outcome.driver_of,
        outcome.request_prices?,
        outcome.driver_prices,
    ))
}
