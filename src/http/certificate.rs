//! The proof of a solved window, as the API publishes it.

use kheya_solver::{Constraints, Graph, Method, Options};

use super::{
    model::solve::{Certificate, DriverPrice, Multiplier, RequestPrice},
    problem::Problem,
};
use crate::{
    candidates::{Candidate, CandidateTable},
    decision::{ConstraintFacts, WindowSnapshot},
    domain::CostMs,
};

/// Prices that prove a lower bound of the window's cost: rows in id order, as the decision's own. The
/// multipliers are those that the decision came to; the least prices at them are unique.
pub(super) fn certificate(
    snapshot: &WindowSnapshot,
    table: &CandidateTable,
    facts: &[ConstraintFacts],
    options: &Options<'_>,
) -> Result<Certificate, Problem> {
    let mut rows: Vec<u32> = (0..table.rows() as u32).collect();
    let request = |row: u32| &snapshot.requests()[row as usize].request.id;
    rows.sort_by(|&a, &b| request(a).cmp(request(b)));
    let multipliers: Vec<i64> = facts.iter().map(|fact| fact.multiplier.get()).collect();
    let graph = shifted(snapshot, table, &rows, &multipliers)?;
    // a rule that is not exact proves nothing
    let options = Options {
        method: Method::Auto,
        constraints: None,
        ..options.clone()
    };
    let proof = kheya_solver::solve(&graph, &options).map_err(|error| Problem::internal(&error))?;
    // the least optimal driver prices are unique: what is published does not depend on the method
    let driver_prices = kheya_solver::least_driver_prices(&graph, &proof);
    let price = |row: usize| {
        let pairs = graph
            .row(row)
            .map(|(driver, cost)| cost + driver_prices[driver as usize]);
        pairs.fold(graph.unmatched_cost(row), i64::min)
    };
    let request_prices: Vec<i64> = (0..graph.requests()).map(price).collect();
    let bound = request_prices.iter().sum::<i64>() - driver_prices.iter().sum::<i64>();
    let seconds = |ms: i64| CostMs::new(ms).as_seconds();
    Ok(Certificate {
        dual_bound_s: seconds(bound - taken_off(snapshot, facts)),
        request_prices: rows
            .iter()
            .zip(request_prices)
            .map(|(&row, price)| RequestPrice {
                request_id: request(row).to_string(),
                price_s: seconds(price),
            })
            .collect(),
        driver_prices: snapshot
            .drivers()
            .iter()
            .zip(driver_prices)
            .filter(|(_, price)| *price != 0)
            .map(|(driver, price)| DriverPrice {
                driver_id: driver.id.to_string(),
                price_s: seconds(price),
            })
            .collect(),
        multipliers: facts
            .iter()
            .map(|fact| Multiplier {
                name: fact.name.clone(),
                multiplier_s: fact.multiplier.as_seconds(),
            })
            .collect(),
    })
}

/// The graph of the window at costs shifted by the multipliers, requests in the order of `rows`.
fn shifted(
    snapshot: &WindowSnapshot,
    table: &CandidateTable,
    rows: &[u32],
    multipliers: &[i64],
) -> Result<Graph, Problem> {
    let constraints = snapshot.constraints_in_indices();
    let (mut offsets, mut drivers, mut costs) = (vec![0], Vec::new(), Vec::new());
    for &row in rows {
        let limit = table.unmatched_cost(row as usize);
        // a pair that costs more may become worth taking where a floor counts it
        let matters = |c: &&Candidate| c.cost < limit || !constraints.is_empty();
        for candidate in table.row(row as usize).iter().filter(matters) {
            drivers.push(candidate.driver);
            costs.push(candidate.cost.get());
        }
        offsets.push(drivers.len() as u32);
    }
    let unmatched = rows
        .iter()
        .map(|&row| table.unmatched_cost(row as usize).get());
    let unmatched = unmatched.collect();
    let graph = Graph::from_rows(snapshot.drivers().len(), unmatched, offsets, drivers, costs);
    let graph = graph.map_err(|error| Problem::internal(&error))?;
    if constraints.is_empty() {
        return Ok(graph);
    }
    let columns: Vec<u32> = (0..snapshot.drivers().len() as u32).collect();
    let constraints: Constraints = constraints.part(rows, &columns);
    let shifted = constraints.shifted(&graph, multipliers);
    shifted.map_err(|error| Problem::internal(&error))
}

/// What the multipliers take off the bound.
fn taken_off(snapshot: &WindowSnapshot, facts: &[ConstraintFacts]) -> i64 {
    let each = facts
        .iter()
        .zip(snapshot.constraints())
        .map(|(fact, side)| {
            let bound = if fact.multiplier.get() >= 0 {
                fact.max.unwrap_or(0).saturating_sub(side.standing)
            } else {
                let floor = fact.min.unwrap_or(0).saturating_sub(side.standing);
                floor.saturating_sub(fact.shortfall)
            };
            fact.multiplier.get() * i64::from(bound)
        });
    each.sum()
}
