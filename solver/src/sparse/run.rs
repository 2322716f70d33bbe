//! The course of a sparse solve: build the sides, choose the one to start from, bid, augment.
//!
//! Promise: at every moment pairs are tight, edges have reduced cost ≥ 0 and prices are ≥ 0, so a
//! solve that is cut hands over a valid matching and prices that give a bound.

use super::bid::bid;
use super::incumbent;
use super::search::Search;
use super::side::{FREE, Side};
use super::weight::Weight;
use crate::Graph;
use crate::budget::{Deadline, Meter};
use crate::solve::Outcome;

/// Solves a graph as one piece. Without a budget the outcome is optimal.
pub(super) fn solve(graph: &Graph, warm_start: Option<&[i64]>, deadline: &Deadline) -> Outcome {
    let savings = graph
        .unmatched_costs()
        .iter()
        .map(|&cost| cost - graph.least_cost());
    if savings.max().unwrap_or(0) <= i32::LARGEST {
        solve_as::<i32>(graph, warm_start, deadline)
    } else {
        solve_as::<i64>(graph, warm_start, deadline)
    }
}

fn solve_as<W: Weight>(graph: &Graph, warm_start: Option<&[i64]>, deadline: &Deadline) -> Outcome {
    let mut meter = Meter::new(deadline);
    let Some(requests) = Side::<W>::requests(graph, &mut meter) else {
        return Outcome::nothing(graph);
    };
    let mut course = Course {
        requests,
        drivers: Side::without_edges(graph.drivers()),
    };
    let done = match warm_start {
        Some(prices) => course.warm(prices, &mut meter),
        None => course.cold(&mut meter),
    };
    if done.is_none() {
        incumbent::improve(&mut course.requests, graph.drivers(), &mut meter);
    }
    course.outcome(graph, done.is_some())
}

struct Course<W: Weight> {
    requests: Side<W>,
    drivers: Side<W>,
}

impl<W: Weight> Course<W> {
    /// From nothing, from the side that has fewer nodes with edges. Nothing when cut.
    fn cold(&mut self, meter: &mut Meter<'_>) -> Option<()> {
        if self.requests.with_edges() <= self.requests.others_with_edges(self.drivers.len()) {
            return settle(&mut self.requests, &mut self.drivers, meter);
        }
        self.drivers = self.requests.transposed(self.drivers.len(), meter)?;
        self.requests.price.fill(W::ZERO);
        settle(&mut self.drivers, &mut self.requests, meter)
    }

    /// From driver prices: requests bid at these prices and augment, then free drivers whose price
    /// is above 0 augment from their side until none is left.
    fn warm(&mut self, prices: &[i64], meter: &mut Meter<'_>) -> Option<()> {
        self.drivers = self.requests.transposed(self.drivers.len(), meter)?;
        for (driver, price) in self.drivers.price.iter_mut().enumerate() {
            // `price` is the driver's largest weight: no driver is worth more.
            let warm = prices.get(driver).copied().unwrap_or(0);
            *price = W::narrow(warm.clamp(0, price.widen()));
        }
        settle(&mut self.requests, &mut self.drivers, meter)?;
        let open = self.drivers.to_make_whole();
        augment_all(&mut self.drivers, &mut self.requests, open, meter)
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

/// Makes every near node whole.
fn settle<W: Weight>(near: &mut Side<W>, far: &mut Side<W>, meter: &mut Meter<'_>) -> Option<()> {
    let open = near.to_make_whole();
    let open = bid(near, far, open, meter)?;
    augment_all(near, far, open, meter)
}

fn augment_all<W: Weight>(
    near: &mut Side<W>,
    far: &mut Side<W>,
    open: Vec<u32>,
    meter: &mut Meter<'_>,
) -> Option<()> {
    let mut search = Search::new(far.len());
    for node in open {
        if search.augment(near, far, node, meter) {
            return None;
        }
    }
    Some(())
}
