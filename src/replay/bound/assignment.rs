//! The least assignment of requests to availabilities, by columns generated as they matter.
//!
//! All pairs of a day are too many to hold. Each round solves the pairs held so far, exactly, and
//! looks through all pairs at the prices of that solution. With v ≥ 0 those prices and
//! `u_i = min(U_i + v_own, min_a c_ia + v_a)` over *all* availabilities, not only those held,
//! Σu − Σv is a bound of the whole problem whatever the round found (weak duality), so any number of
//! rounds gives a true bound. The pairs below their u are held from then on; when there are none the
//! bound is the optimum of the relaxation.
//!
//! Prices of few pairs are wild: riders who are kept from each other by pairs not held yet bid each
//! other up to what a lost one costs. So a round lets a request stay out for a little more than its
//! cheapest pair costs, which keeps all prices near that, and each later round for half as much
//! again (a penalty that stabilises the columns; du Merle et al. 1999). It starts from the prices of
//! the round before. In the end nobody stays out.
//!
//! Work is counted, not timed, and solved on one thread, so the bound is the same on every machine;
//! a solve that is cut because the work is used up ends the rounds, and what it has proven counts
//! like that of any other.

use kheya_solver::{Budget, CertificateError, Graph, GraphError, Options, Solution, SolveError};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::{
    Bound,
    availability::{availabilities, lost_cost},
    car_time::CarTime,
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
    /// Work of all solves together at most, in polls of their budget, each about two microseconds.
    pub solve_polls: u64,
    /// Share of the relaxation's value below which a gap ends the rounds.
    pub gap: f64,
    /// Whether car time may have a price; without one the bound of a shortage is lower.
    pub car_time: bool,
}

impl Default for BoundOptions {
    fn default() -> Self {
        Self {
            candidates: 40,
            rounds: 24,
            solve_polls: 50_000_000,
            gap: 0.001,
            car_time: true,
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
    /// The thread of the solves could not be started.
    #[error("the thread of the bound could not be started: {0}")]
    Thread(#[from] ThreadPoolBuildError),
}

/// What a request without any column costs in the graph, in lost riders: so much that it rather
/// takes its own drop-off. Were it ever to pay, the bound would be lower, and still be one.
const NO_COLUMN: i64 = 64;

/// What a request may stay out for in the first round, in milliseconds above its cheapest pair.
const FIRST_STAY_OUT: i64 = 60_000;

/// Works out the bound of a scenario. `progress` is told the rounds that are done, of how many.
///
/// Takes R pairs × `candidates` × rounds of memory at most, 12 bytes each while they are held and
/// about 40 while they are solved; time is that of looking through the pairs near each request,
/// once a round.
///
/// # Errors
/// [`BoundError`], which would be a defect of ours, costs that no integer holds, or a machine
/// without another thread.
pub fn rider_cost_bound(
    scenario: &Scenario,
    options: &BoundOptions,
    progress: &dyn Fn(usize, usize),
) -> Result<Bound, BoundError> {
    let (nearest, waits) = availabilities(scenario);
    let lost = lost_cost(&scenario.config).get();
    let time = if options.car_time {
        CarTime::found(scenario, &waits, lost)
    } else {
        CarTime::free(scenario)
    };
    let mut pairs = Pairs::new(scenario, &nearest, &time);
    let solves = Solves::within(options.solve_polls)?;
    let mut proven = Proven::default();
    let mut solution: Option<Solution> = None;
    let mut stay_out = FIRST_STAY_OUT;
    for round in 0..=options.rounds {
        progress(round, options.rounds);
        let missing = pairs.missing(solution.as_ref(), options);
        proven.raise(missing.bound, round);
        let all_in = |s: &Solution| s.matched() == scenario.trips.len();
        if let Some(solution) = solution.as_ref().filter(|s| all_in(s)) {
            proven.cap(solution.objective - time.of_all_cars());
        }
        let cut = solution.as_ref().is_some_and(|s| s.gap_abs() != 0);
        let ended = missing.pairs == 0 && solution.as_ref().is_none_or(all_in);
        if ended || cut || proven.gap() <= options.gap || round == options.rounds {
            break;
        }
        pairs.hold(missing.rows);
        solution = Some(pairs.solve(stay_out, solution.as_ref(), &solves)?);
        stay_out = stay_out.saturating_add(stay_out / 2);
    }
    Ok(Bound::new(scenario, &proven))
}

/// The pairs held so far.
struct Pairs<'a> {
    nearest: &'a Nearest<'a>,
    time: &'a CarTime,
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
    fn new(scenario: &Scenario, nearest: &'a Nearest<'a>, time: &'a CarTime) -> Self {
        Self {
            nearest,
            time,
            lost: lost_cost(&scenario.config).get(),
            columns: scenario.trips.len() + scenario.drivers.len(),
            rows: vec![Vec::new(); scenario.trips.len()],
        }
    }

    /// Looks through all pairs at the prices of a solution, or of nothing.
    fn missing(&self, solution: Option<&Solution>, options: &BoundOptions) -> Missing {
        let driver_prices = solution.map_or(&[][..], |s| &s.driver_prices);
        let priced = self.nearest.priced(driver_prices, self.time);
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
            bound: request_prices - driver_prices.iter().sum::<i64>() - self.time.of_all_cars(),
            rows,
        }
    }

    fn hold(&mut self, missing: Vec<Vec<Found>>) {
        for (row, found) in self.rows.iter_mut().zip(missing) {
            row.extend(found.into_iter().map(|pair| (pair.column, pair.cost)));
        }
    }

    /// The least assignment of the pairs held, proven, in which a request may stay out for so much
    /// above its cheapest pair.
    fn solve(
        &self,
        stay_out: i64,
        before: Option<&Solution>,
        solves: &Solves,
    ) -> Result<Solution, BoundError> {
        let own = |trip: usize| std::iter::once((trip as u32, self.lost));
        let (mut offsets, mut columns, mut costs) = (vec![0], Vec::new(), Vec::new());
        for (trip, row) in self.rows.iter().enumerate() {
            for (column, cost) in row.iter().copied().chain(own(trip)) {
                columns.push(column);
                costs.push(cost);
            }
            offsets.push(columns.len() as u32);
        }
        let unmatched = self.rows.iter().map(|row| {
            let least = row.iter().map(|&(_, cost)| cost).min();
            let least = least.map_or(self.lost, |least| least.min(self.lost));
            least
                .saturating_add(stay_out)
                .min(self.lost.saturating_mul(NO_COLUMN))
        });
        let unmatched = unmatched.collect();
        let graph = Graph::from_rows(self.columns, unmatched, offsets, columns, costs)?;
        let solution = solves.solve(&graph, before.map(|solution| &solution.driver_prices[..]))?;
        solution.verify(&graph)?;
        Ok(solution)
    }
}

/// Where the pairs are solved: on one thread, since parts of a graph that are solved side by side
/// take from one budget in no order.
struct Solves {
    thread: ThreadPool,
    /// What is left of the work, for all of them.
    budget: Budget,
}

impl Solves {
    fn within(polls: u64) -> Result<Self, BoundError> {
        Ok(Self {
            thread: ThreadPoolBuilder::new().num_threads(1).build()?,
            budget: Budget::polls(polls),
        })
    }

    fn solve(&self, graph: &Graph, warm_start: Option<&[i64]>) -> Result<Solution, SolveError> {
        let options = Options {
            budget: Some(self.budget.clone()),
            warm_start,
            ..Options::default()
        };
        self.thread.install(|| kheya_solver::solve(graph, &options))
    }
}
