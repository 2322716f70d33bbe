//! The least assignment of requests to availabilities, by columns generated as they matter.
//!
//! All pairs of a day are too many to hold. Each round solves the pairs held so far, exactly, and
//! looks through all pairs at the prices of that solution. With v ≥ 0 those prices and
//! `u_i = min(U_i + v_own, min_a c_ia + v_a)` over *all* availabilities, not only those held,
//! Σu − Σv is a bound of the whole problem whatever the round found (weak duality), so any number of
//! rounds gives a true bound. The pairs below their u are held from then on; when there are none the
//! bound is the optimum of the relaxation.

use kheya_solver::{CertificateError, Graph, GraphError, Options, Solution, SolveError};

use super::{
    Bound,
    availability::{availabilities, lost_cost},
    nearest::{Found, Nearest, Wanted},
    told::Proven,
};
use crate::replay::Scenario;

/// How hard to look for the bound. Any values give a true one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundOptions {
    /// Pairs of a request that a round adds at most, at least 1.
    pub candidates: usize,
    /// Rounds at most; with 0 every request takes the car that suits it best.
    pub rounds: usize,
    /// Share of the relaxation's value below which a gap ends the rounds.
    pub gap: f64,
}

impl Default for BoundOptions {
    fn default() -> Self {
        Self {
            candidates: 40,
            rounds: 12,
            gap: 0.001,
        }
    }
}

/// Why a bound could not be worked out. None of these is the input's fault.
#[derive(Debug, thiserror::Error)]
pub enum BoundError {
    /// The pairs were refused.
    #[error("the pairs of the bound were refused: {0}")]
    Graph(#[from] GraphError),
    /// The assignment could not be solved.
    #[error("the bound could not be solved: {0}")]
    Solve(#[from] SolveError),
    /// The proof of the assignment did not hold.
    #[error("the certificate of the bound does not hold: {0}")]
    Certificate(#[from] CertificateError),
}

/// What a request without any column costs in the graph, in lost riders: so much that it rather
/// takes its own drop-off. Were it ever to pay, the bound would be lower, and still be one.
const NO_COLUMN: i64 = 64;

/// Works out the bound of a scenario. `progress` is told the rounds that are done, of how many.
///
/// Takes R pairs × `candidates` × rounds of memory at most, 12 bytes each while they are held and
/// about 40 while they are solved; time is that of looking through the pairs near each request,
/// once a round.
///
/// # Errors
/// [`BoundError`], which would be a defect of ours, or costs that no integer holds.
pub fn rider_cost_bound(
    scenario: &Scenario,
    options: &BoundOptions,
    progress: &dyn Fn(usize, usize),
) -> Result<Bound, BoundError> {
    let nearest = availabilities(scenario);
    let mut pairs = Pairs::new(scenario, &nearest);
    let mut proven = Proven::default();
    let mut solution: Option<Solution> = None;
    for round in 0..=options.rounds {
        progress(round, options.rounds);
        let missing = pairs.missing(solution.as_ref(), options);
        proven.raise(missing.bound, round);
        if let Some(solution) = &solution {
            proven.cap(solution.objective);
        }
        if missing.pairs == 0 || proven.gap() <= options.gap || round == options.rounds {
            break;
        }
        pairs.hold(missing.rows);
        solution = Some(pairs.solve()?);
    }
    Ok(Bound::new(scenario, &proven))
}

/// The pairs held so far.
struct Pairs<'a> {
    nearest: &'a Nearest<'a>,
    lost: i64,
    columns: usize,
    /// By trip: (column, cost).
    rows: Vec<Vec<(u32, i64)>>,
}

/// Pairs that are cheaper than the prices of a solution say.
struct Missing {
    rows: Vec<Vec<Found>>,
    pairs: usize,
    /// What the prices prove.
    bound: i64,
}

impl<'a> Pairs<'a> {
    fn new(scenario: &Scenario, nearest: &'a Nearest<'a>) -> Self {
        Self {
            nearest,
            lost: lost_cost(&scenario.config).get(),
            columns: scenario.trips.len() + scenario.drivers.len(),
            rows: vec![Vec::new(); scenario.trips.len()],
        }
    }

    /// Looks through all pairs at the prices of a solution, or of nothing.
    fn missing(&self, solution: Option<&Solution>, options: &BoundOptions) -> Missing {
        let driver_prices = solution.map_or(&[][..], |s| &s.driver_prices);
        let priced = self.nearest.priced(driver_prices);
        // a lost rider costs as much as the dearest pair: both have to be looked at
        let price_of = |trip: usize| solution.map_or(self.lost + 1, |s| s.request_prices[trip]);
        let rows = self.nearest.for_each_trip(|trip, found| {
            let wanted = Wanted {
                below: price_of(trip),
                most: options.candidates.max(1),
            };
            self.nearest.cheapest(trip, &priced, wanted, found);
            found.clone()
        });
        let least = |(trip, found): (usize, &Vec<Found>)| {
            let price = solution.map_or(self.lost, |s| s.request_prices[trip]);
            found.first().map_or(price, |best| best.priced.min(price))
        };
        let request_prices: i64 = rows.iter().enumerate().map(least).sum();
        Missing {
            pairs: rows.iter().map(Vec::len).sum(),
            bound: request_prices - driver_prices.iter().sum::<i64>(),
            rows,
        }
    }

    fn hold(&mut self, missing: Vec<Vec<Found>>) {
        for (row, found) in self.rows.iter_mut().zip(missing) {
            row.extend(found.into_iter().map(|pair| (pair.column, pair.cost)));
        }
    }

    /// The least assignment of the pairs held, proven.
    fn solve(&self) -> Result<Solution, BoundError> {
        let own = |trip: usize| std::iter::once((trip as u32, self.lost));
        let (mut offsets, mut columns, mut costs) = (vec![0], Vec::new(), Vec::new());
        for (trip, row) in self.rows.iter().enumerate() {
            for (column, cost) in row.iter().copied().chain(own(trip)) {
                columns.push(column);
                costs.push(cost);
            }
            offsets.push(columns.len() as u32);
        }
        let unmatched = vec![self.lost * NO_COLUMN; self.rows.len()];
        let graph = Graph::from_rows(self.columns, unmatched, offsets, columns, costs)?;
        let solution = kheya_solver::solve(&graph, &Options::default())?;
        solution.verify(&graph)?;
        Ok(solution)
    }
}
