//! The course of a sparse solve: build the sides, choose the one to start from, bid, augment.
//!
//! The scarce side is the one to start from: few nodes, each with many to choose from. Where bids
//! meet contention (a balanced window, a hot spot without cars) searches from one side would go
//! through the same neighbourhood again and again. There an auction first moves prices to about
//! their final height, then both sides are made whole from those prices. The same course from the
//! prices of the previous window is the warm start.
//!
//! Promise: at every moment pairs are tight, edges have reduced cost ≥ 0 and prices are ≥ 0, so a
//! solve that is cut hands over a valid matching and prices that give a bound.

use super::bid::{auction, bid, keep_tight_pairs, usual_step};
use super::choices::Choices;
use super::incumbent;
use super::search::Search;
use super::side::{FREE, Side};
use super::useful::Useful;
use super::weight::Weight;
use crate::Graph;
use crate::budget::{Deadline, Meter};
use crate::solve::Outcome;

/// Bidding that leaves more than one near node in this many unmatched has met contention, which an
/// auction eases better than searches do one by one.
const CONTENDED_SHARE: usize = 20;

/// And so have searches that look at every edge this many times.
const CONTENDED_WORK: usize = 1;

/// Searches one by one look at every edge this many times before phases are tried.
const WORK_A_SPELL: usize = 4;

/// An auction raises prices by this many quarters of the usual step between a node's choices: by
/// more where bidding left many unmatched, as prices there have far to go. Measured on balanced
/// windows: half of the wide raise takes 20–40 % more instructions, half more makes little
/// difference; random sparse graphs want the fine one.
const WIDE_RAISE_QUARTERS: i64 = 16;
const FINE_RAISE_QUARTERS: i64 = 1;

/// Solves a graph as one piece. Without a budget the outcome is optimal.
///
/// Its `useful` edges are counted here when that has not been done yet.
pub(super) fn solve(
    graph: &Graph,
    useful: Option<Useful>,
    warm_start: Option<&[i64]>,
    deadline: &Deadline,
) -> Outcome {
    let Some(useful) = useful.or_else(|| Useful::edges(graph, &mut Meter::new(deadline))) else {
        return Outcome::nothing(graph);
    };
    let savings = graph
        .unmatched_costs()
        .iter()
        .map(|&cost| cost - graph.least_cost());
    let most = savings.max().unwrap_or(0).max(0);
    if most <= i32::LARGEST {
        solve_as::<i32>(graph, &useful, warm_start, most, deadline)
    } else {
        solve_as::<i64>(graph, &useful, warm_start, most, deadline)
    }
}

/// `most` is the most that a pair can save.
fn solve_as<W: Weight>(
    graph: &Graph,
    useful: &Useful,
    warm_start: Option<&[i64]>,
    most: i64,
    deadline: &Deadline,
) -> Outcome {
    let mut meter = Meter::new(deadline);
    let mut course = Course {
        requests: Side::<W>::without_edges(graph.requests()),
        drivers: Side::<W>::without_edges(graph.drivers()),
    };
    let done = match warm_start {
        Some(prices) => course.warm(graph, useful, prices, most, &mut meter),
        None => course.cold(graph, useful, &mut meter),
    };
    if done.is_none() {
        let Course { requests, drivers } = &mut course;
        if requests.edges() > 0 {
            incumbent::improve(requests, drivers, &mut meter);
        } else {
            incumbent::improve(drivers, requests, &mut meter);
        }
    }
    course.outcome(graph, done.is_some())
}

struct Course<W: Weight> {
    requests: Side<W>,
    drivers: Side<W>,
}

impl<W: Weight> Course<W> {
    /// From nothing, from the side that has fewer nodes with edges. Nothing when cut.
    fn cold(&mut self, graph: &Graph, useful: &Useful, meter: &mut Meter<'_>) -> Option<()> {
        let Self { requests, drivers } = self;
        if useful.drivers_are_scarce() {
            *drivers = Side::drivers(graph, &useful.of_drivers, meter)?;
            from_nothing(drivers, requests, meter)
        } else {
            *requests = Side::requests(graph, &useful.of_requests, meter)?;
            from_nothing(requests, drivers, meter)
        }
    }

    /// From driver prices: requests bid at these prices and augment, then free drivers whose price
    /// is above 0 augment from their side until none is left.
    fn warm(
        &mut self,
        graph: &Graph,
        useful: &Useful,
        prices: &[i64],
        most: i64,
        meter: &mut Meter<'_>,
    ) -> Option<()> {
        self.requests = Side::requests(graph, &useful.of_requests, meter)?;
        self.drivers = Side::drivers(graph, &useful.of_drivers, meter)?;
        for (price, &warm) in self.drivers.price.iter_mut().zip(prices) {
            *price = W::narrow(warm.clamp(0, most));
        }
        keep_tight_pairs(&mut self.requests, &mut self.drivers);
        let choices = &mut Choices::new(self.requests.len());
        from_prices(&mut self.requests, &mut self.drivers, choices, meter)
    }

    fn outcome(self, graph: &Graph, done: bool) -> Outcome {
        let Self { requests, drivers } = self;
        let driver_of = requests
            .mate
            .iter()
            .map(|&mate| (mate != FREE).then_some(mate))
            .collect();
        let price = |(request, price): (usize, &W)| graph.unmatched_cost(request) - price.widen();
        Outcome {
            driver_of,
            driver_prices: drivers.price.iter().map(|price| price.widen()).collect(),
            request_prices: done.then(|| requests.price.iter().enumerate().map(price).collect()),
        }
    }
}

/// Solves from far prices 0.
fn from_nothing<W: Weight>(
    near: &mut Side<W>,
    far: &mut Side<W>,
    meter: &mut Meter<'_>,
) -> Option<()> {
    let choices = &mut Choices::new(near.len());
    let open = near.with_edges();
    let mut open = bid(near, far, choices, open, meter)?;
    let mut quarters = WIDE_RAISE_QUARTERS;
    if open.len() * CONTENDED_SHARE <= near.len() {
        open = augment(near, far, open, near.edges() * CONTENDED_WORK, meter)?;
        if open.is_empty() {
            return Some(());
        }
        quarters = FINE_RAISE_QUARTERS;
    }
    if far.edges() == 0 {
        far.take_edges_of(near, meter)?;
    }
    let raise = (usual_step(near) / 4 * quarters).max(1);
    auction(near, far, choices, open, W::narrow(raise), meter)?;
    from_prices(near, far, choices, meter)
}

/// Solves from any far prices ≥ 0 and near prices that are feasible with them: near nodes are made
/// whole, then the free far nodes whose price is above 0.
fn from_prices<W: Weight>(
    near: &mut Side<W>,
    far: &mut Side<W>,
    choices: &mut Choices<W>,
    meter: &mut Meter<'_>,
) -> Option<()> {
    let open = near.to_make_whole();
    let open = bid(near, far, choices, open, meter)?;
    augment(near, far, open, usize::MAX, meter)?;
    let open = far.to_make_whole();
    augment(far, near, open, usize::MAX, meter)?;
    Some(())
}

/// Makes near nodes whole, until that has taken more than `work` units. Returns those that are left,
/// or nothing when the search has to end.
///
/// One by one, unless searches look at every edge again and again and phases take less for each
/// node.
fn augment<W: Weight>(
    near: &mut Side<W>,
    far: &mut Side<W>,
    mut open: Vec<u32>,
    work: usize,
    meter: &mut Meter<'_>,
) -> Option<Vec<u32>> {
    let mut search = Search::new(far.len());
    let spell = near.edges() * WORK_A_SPELL;
    while !open.is_empty() && search.work <= work {
        let (start, mut done) = (search.work, 0);
        let end = start.saturating_add(spell).min(work);
        for &node in &open {
            if search.work > end {
                break;
            }
            if search.augment(near, far, node, meter) {
                return None;
            }
            done += 1;
        }
        open.drain(..done);
        let each = (search.work - start) / done.max(1);
        while !open.is_empty() && search.work <= work {
            let (start, count) = (search.work, open.len());
            open = search.augment_many(near, far, open, meter)?;
            if (search.work - start) / (count - open.len()).max(1) > each {
                break;
            }
        }
    }
    Some(open)
}
