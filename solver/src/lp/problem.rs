//! The problem under constraints in whole numbers: costs at a scale, limits, what a lacking pair
//! costs, and what any matching is worth.
//!
//! Floors are soft at a price: each pair a floor lacks costs more than all costs of the window
//! together could differ, so the least value has the least shortfall in all and, among those, the
//! least cost. Whether floors can be met is thus decided by the same search, and an answer comes out
//! either way.
//!
//! The search works with costs times a scale, because the best multipliers need not be whole: at a
//! scale of 1,024 what rounding them loses is less than one unit of cost, and bounds round up to it.

use crate::constraints::shift;
use crate::solve::SolveError;
use crate::{ConstraintAnswer, Constraints, Graph, LpBackend, MAX_MAGNITUDE};

/// Finest scale of the search.
const FINEST_SCALE: i64 = 1 << 10;

/// What every step of the search has to know.
pub(super) struct Problem<'a> {
    pub(super) graph: &'a Graph,
    pub(super) constraints: &'a Constraints,
    pub(super) backend: LpBackend,
    /// For each constraint its floor, as far as it is asked for.
    pub(super) floors: Vec<u32>,
    /// What a pair that a floor lacks costs, at scale 1.
    pub(super) penalty: i64,
    /// The most that costs of one request differ, at least 1: what multipliers are measured by.
    pub(super) swing: i64,
    /// The largest multiplier of a cap that can be of use, at scale 1.
    most: i64,
    /// The finest scale at which sums stay within limits.
    pub(super) finest: i64,
}

impl<'a> Problem<'a> {
    /// # Errors
    /// [`SolveError::CostsTooLargeForConstraints`] when sums could overflow.
    pub(super) fn new(
        graph: &'a Graph,
        constraints: &'a Constraints,
        backend: LpBackend,
    ) -> Result<Self, SolveError> {
        let (mut swing, mut all, mut largest) = (1_i128, 1_i128, 0_i128);
        for request in 0..graph.requests() {
            let unmatched_cost = i128::from(graph.unmatched_cost(request));
            let (mut low, mut high) = (unmatched_cost, unmatched_cost);
            for (_, cost) in graph.row(request) {
                low = low.min(cost.into());
                high = high.max(cost.into());
            }
            swing = swing.max(high - low);
            all += high - low;
            largest = largest.max(high.abs()).max(low.abs());
        }
        let floors: Vec<u32> = (0..constraints.len())
            .map(|index| constraints.min(index).unwrap_or(0))
            .collect();
        let floored = floors.iter().filter(|&&floor| floor > 0).count() as i128;
        let caps = (0..constraints.len()).filter(|&index| constraints.max(index).is_some());
        // one pair more saves at most what it may itself, and what floors that count it would pay
        let most = swing + floored * all;
        let shifted = largest + caps.count() as i128 * most + floored * all;
        let nodes = (graph.requests() + graph.drivers() + 1) as i128;
        let mut finest = FINEST_SCALE;
        while finest > 0 && nodes * shifted * i128::from(finest) > MAX_MAGNITUDE as i128 {
            finest /= 2;
        }
        if finest == 0 {
            return Err(SolveError::CostsTooLargeForConstraints);
        }
        Ok(Self {
            graph,
            constraints,
            backend,
            floors,
            // all three are below the magnitude that was just checked
            penalty: all as i64,
            swing: swing as i64,
            most: most as i64,
            finest,
        })
    }

    /// The same problem on a part of the edges.
    pub(super) fn on<'b>(&self, graph: &'b Graph) -> Problem<'b>
    where
        'a: 'b,
    {
        Problem {
            graph,
            constraints: self.constraints,
            backend: self.backend,
            floors: self.floors.clone(),
            ..*self
        }
    }

    /// The same problem that asks for no more than some counts reach.
    pub(super) fn reached(&self, counts: &[u32]) -> Problem<'a> {
        let floors = self.floors.iter().zip(counts);
        Problem {
            floors: floors.map(|(&floor, &count)| floor.min(count)).collect(),
            ..self.on(self.graph)
        }
    }

    /// The largest multiplier of a constraint, as a cap and as a floor, at scale 1; 0 for none.
    pub(super) fn limits(&self, index: usize) -> (i64, i64) {
        let cap = self.constraints.max(index).map_or(0, |_| self.most);
        let floor = if self.floors[index] > 0 {
            self.penalty
        } else {
            0
        };
        (cap, floor)
    }

    /// What multipliers take off the bound: caps times theirs, and floors times theirs.
    pub(super) fn taken_off(&self, multipliers: &[i64]) -> i128 {
        let each = multipliers.iter().enumerate().map(|(index, &multiplier)| {
            let bound = if multiplier >= 0 {
                self.constraints.max(index).unwrap_or(0)
            } else {
                self.floors[index]
            };
            i128::from(multiplier) * i128::from(bound)
        });
        each.sum()
    }

    /// Pairs that floors lack in all.
    pub(super) fn lacking(&self, counts: &[u32]) -> i128 {
        let each = self.floors.iter().zip(counts);
        each.map(|(&floor, &count)| i128::from(floor.saturating_sub(count)))
            .sum()
    }

    /// Whether no cap is broken.
    pub(super) fn within_caps(&self, counts: &[u32]) -> bool {
        let mut counts = counts.iter().enumerate();
        counts.all(|(index, &count)| self.constraints.max(index).is_none_or(|max| count <= max))
    }
}

/// A matching with its cost and counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) driver_of: Vec<Option<u32>>,
    pub(super) cost: i64,
    pub(super) counts: Vec<u32>,
}

impl Column {
    pub(super) fn new(problem: &Problem<'_>, driver_of: Vec<Option<u32>>) -> Self {
        Self {
            cost: crate::objective_of(problem.graph, &driver_of),
            counts: problem.constraints.count(&driver_of),
            driver_of,
        }
    }

    /// Cost and what floors lack, at scale 1.
    pub(super) fn value(&self, problem: &Problem<'_>) -> i128 {
        i128::from(self.cost) + i128::from(problem.penalty) * problem.lacking(&self.counts)
    }

    /// What a solution says of the constraints.
    pub(super) fn answers(
        &self,
        problem: &Problem<'_>,
        multipliers: &[i64],
    ) -> Vec<ConstraintAnswer> {
        let counts = self.counts.iter().zip(multipliers).enumerate();
        counts
            .map(|(index, (&count, &multiplier))| ConstraintAnswer {
                count,
                shortfall: problem.constraints.shortfall(index, count),
                multiplier,
            })
            .collect()
    }
}

/// The best matching found that breaks no cap.
pub(super) struct Incumbent {
    pub(super) best: Column,
    pub(super) value: i128,
}

impl Incumbent {
    pub(super) fn new(problem: &Problem<'_>, best: Column) -> Self {
        let value = best.value(problem);
        Self { best, value }
    }

    /// Takes a matching over if it breaks no cap and is worth less. The first of equals stays.
    pub(super) fn offer(&mut self, problem: &Problem<'_>, column: Column) {
        if problem.within_caps(&column.counts) && column.value(problem) < self.value {
            *self = Self::new(problem, column);
        }
    }
}

/// Pairs that a node of the search has settled.
#[derive(Debug, Clone, Default)]
pub(super) struct Settled {
    pub(super) taken: Vec<(u32, u32)>,
    pub(super) barred: Vec<(u32, u32)>,
}

impl Settled {
    /// Whether a matching has all that is taken and nothing that is barred.
    pub(super) fn admits(&self, driver_of: &[Option<u32>]) -> bool {
        let has = |&(request, driver): &(u32, u32)| driver_of[request as usize] == Some(driver);
        self.taken.iter().all(has) && !self.barred.iter().any(has)
    }
}

/// The assignment problem of a node at a scale, ready to be shifted by multipliers. A pair that is
/// taken is a request without edges whose unmatched cost is that of the pair.
pub(super) struct Rows {
    scale: i64,
    drivers: usize,
    unmatched: Vec<(i64, u64)>,
    offsets: Vec<u32>,
    edge_drivers: Vec<u32>,
    edge_costs: Vec<(i64, u64)>,
    taken: Vec<(u32, u32)>,
}

impl Rows {
    pub(super) fn new(problem: &Problem<'_>, settled: &Settled, scale: i64) -> Self {
        let (graph, constraints) = (problem.graph, problem.constraints);
        let mut own = vec![None; graph.requests()];
        let mut gone = vec![false; graph.drivers()];
        for &(request, driver) in &settled.taken {
            own[request as usize] = Some(driver);
            gone[driver as usize] = true;
        }
        let mut barred = settled.barred.clone();
        barred.sort_unstable();
        let mut rows = Self {
            scale,
            drivers: graph.drivers(),
            unmatched: Vec::with_capacity(graph.requests()),
            offsets: vec![0],
            edge_drivers: Vec::with_capacity(graph.edges()),
            edge_costs: Vec::with_capacity(graph.edges()),
            taken: settled.taken.clone(),
        };
        for (request, own) in own.iter().enumerate() {
            let pair = own.and_then(|driver| Some((driver, graph.cost(request, driver)?)));
            rows.unmatched.push(match pair {
                Some((driver, cost)) => (cost * scale, constraints.word(request, driver)),
                None => (graph.unmatched_cost(request) * scale, 0),
            });
            let open = graph.row(request).filter(|&(driver, _)| {
                pair.is_none()
                    && !gone[driver as usize]
                    && barred.binary_search(&(request as u32, driver)).is_err()
            });
            for (driver, cost) in open {
                rows.edge_drivers.push(driver);
                rows.edge_costs
                    .push((cost * scale, constraints.word(request, driver)));
            }
            rows.offsets.push(rows.edge_drivers.len() as u32);
        }
        rows
    }

    /// The graph at these multipliers; nothing where they are too large to add up.
    pub(super) fn shifted(&self, multipliers: &[i64]) -> Option<Graph> {
        let cost = |&(cost, word): &(i64, u64)| cost.saturating_add(shift(word, multipliers));
        let unmatched = self.unmatched.iter().map(cost).collect();
        let costs = self.edge_costs.iter().map(cost).collect();
        let (offsets, drivers) = (self.offsets.clone(), self.edge_drivers.clone());
        Graph::from_rows(self.drivers, unmatched, offsets, drivers, costs).ok()
    }

    /// The whole matching that a matching of the shifted graph stands for.
    pub(super) fn whole(&self, mut driver_of: Vec<Option<u32>>) -> Vec<Option<u32>> {
        for &(request, driver) in &self.taken {
            driver_of[request as usize] = Some(driver);
        }
        driver_of
    }

    /// The first edge that is still open.
    pub(super) fn first_open(&self) -> Option<(u32, u32)> {
        let driver = *self.edge_drivers.first()?;
        let request = self.offsets.iter().position(|&end| end > 0)? - 1;
        Some((request as u32, driver))
    }

    pub(super) fn scale(&self) -> i64 {
        self.scale
    }
}
