//! The candidate graph: who could serve whom, at what cost.
//!
//! Promise: a [`Graph`] that exists is sound. Every index is inside, there is one edge a pair, and
//! no sum the solver forms can overflow an `i64`, so nothing after construction has to check again.
//!
//! Rows are requests, columns are drivers, stored row by row (CSR) with 12 bytes an edge. The
//! edges of a row stay in the order given; no method depends on that order.

/// Largest number of requests, of drivers and of edges: the last `u32` is kept as "none".
pub const MAX_COUNT: usize = u32::MAX as usize - 1;

/// Largest allowed `(R + D + 1) · max(|c|, |U|)`.
pub const MAX_MAGNITUDE: u128 = 1 << 62;

/// A sparse assignment problem with an unmatched cost for each request.
///
/// Costs are integers in any one unit (the product uses milliseconds), of any sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    drivers: u32,
    unmatched_cost: Vec<i64>,
    row_offsets: Vec<u32>,
    edge_drivers: Vec<u32>,
    edge_costs: Vec<i64>,
    least_cost: i64,
}

/// Why a graph could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// More requests, drivers or edges than an index can name.
    #[error("{count} {what}: at most {MAX_COUNT} are supported")]
    TooMany {
        /// "requests", "drivers" or "edges".
        what: &'static str,
        /// How many were given.
        count: usize,
    },
    /// The unmatched costs are not one a request.
    #[error("{found} unmatched costs for {requests} requests")]
    UnmatchedCosts {
        /// Number of requests.
        requests: usize,
        /// Number of unmatched costs given.
        found: usize,
    },
    /// An edge names a request that does not exist.
    #[error("edge {edge}: request {request} is outside 0..{requests}")]
    RequestOutside {
        /// Position of the edge in the input.
        edge: usize,
        /// The request it names.
        request: u32,
        /// Number of requests.
        requests: usize,
    },
    /// An edge names a driver that does not exist.
    #[error("edge {edge}: driver {driver} is outside 0..{drivers}")]
    DriverOutside {
        /// Position of the edge in the input.
        edge: usize,
        /// The driver it names.
        driver: u32,
        /// Number of drivers.
        drivers: usize,
    },
    /// Row offsets do not start at 0, fall, or do not end at the number of edges; or the edges'
    /// drivers and costs differ in number.
    #[error("row offsets do not describe the edges")]
    Rows,
    /// Sums of costs of this size could overflow.
    #[error(
        "a cost or unmatched cost of magnitude {magnitude} is too large for {requests} requests and {drivers} drivers: (requests + drivers + 1) times it must not exceed 2^62"
    )]
    CostsTooLarge {
        /// Largest |cost| or |unmatched cost|.
        magnitude: u64,
        /// Number of requests.
        requests: usize,
        /// Number of drivers.
        drivers: usize,
    },
}

impl Graph {
    /// Builds a graph from edges `(request, driver, cost)` in any order.
    ///
    /// Of edges of the same pair the cheapest is kept, at the place of the first. Edges of a row
    /// keep the order given. O(R + D + E) time.
    ///
    /// ```
    /// use kheya_solver::Graph;
    /// let graph = Graph::from_edges(2, 1, vec![100, 100], [(0, 0, 7), (1, 0, 3)])?;
    /// assert_eq!((graph.requests(), graph.drivers(), graph.edges()), (2, 1, 2));
    /// # Ok::<(), kheya_solver::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// [`GraphError`] when an index is outside, the unmatched costs are not one a request, a size
    /// is over [`MAX_COUNT`], or costs are so large that sums could overflow.
    pub fn from_edges(
        requests: usize,
        drivers: usize,
        unmatched_cost: Vec<i64>,
        edges: impl IntoIterator<Item = (u32, u32, i64)>,
    ) -> Result<Self, GraphError> {
        check_counts(requests, drivers, &unmatched_cost)?;
        let edges: Vec<(u32, u32, i64)> = edges.into_iter().collect();
        check_count("edges", edges.len())?;

        let mut row_offsets = vec![0_u32; requests + 1];
        for (edge, &(request, ..)) in edges.iter().enumerate() {
            match row_offsets.get_mut(request as usize + 1) {
                Some(count) => *count += 1,
                None => {
                    return Err(GraphError::RequestOutside {
                        edge,
                        request,
                        requests,
                    });
                }
            }
        }
        for request in 0..requests {
            row_offsets[request + 1] += row_offsets[request];
        }
        let mut next = row_offsets.clone();
        let mut edge_drivers = vec![0; edges.len()];
        let mut edge_costs = vec![0; edges.len()];
        for (edge, (request, driver, cost)) in edges.into_iter().enumerate() {
            if driver as usize >= drivers {
                return Err(GraphError::DriverOutside {
                    edge,
                    driver,
                    drivers,
                });
            }
            let place = next[request as usize] as usize;
            next[request as usize] += 1;
            edge_drivers[place] = driver;
            edge_costs[place] = cost;
        }
        Self::from_rows(
            drivers,
            unmatched_cost,
            row_offsets,
            edge_drivers,
            edge_costs,
        )
    }

    /// Builds a graph from rows already in order: the edges of request `i` are
    /// `row_offsets[i]..row_offsets[i + 1]` of `edge_drivers` and `edge_costs`.
    ///
    /// The fast way in for callers that make candidates request by request; the vectors are kept,
    /// not copied, and checked as [`Graph::from_edges`] checks. O(R + D + E) time.
    ///
    /// # Errors
    /// As [`Graph::from_edges`], and [`GraphError::Rows`] when the offsets do not describe the
    /// edges.
    pub fn from_rows(
        drivers: usize,
        unmatched_cost: Vec<i64>,
        row_offsets: Vec<u32>,
        edge_drivers: Vec<u32>,
        edge_costs: Vec<i64>,
    ) -> Result<Self, GraphError> {
        let requests = unmatched_cost.len();
        check_counts(requests, drivers, &unmatched_cost)?;
        check_count("edges", edge_drivers.len())?;
        let described = row_offsets.len() == requests + 1
            && row_offsets[0] == 0
            && row_offsets[requests] as usize == edge_drivers.len()
            && row_offsets.is_sorted()
            && edge_drivers.len() == edge_costs.len();
        if !described {
            return Err(GraphError::Rows);
        }
        if let Some(edge) = edge_drivers
            .iter()
            .position(|&driver| driver as usize >= drivers)
        {
            let driver = edge_drivers[edge];
            return Err(GraphError::DriverOutside {
                edge,
                driver,
                drivers,
            });
        }
        check_magnitude(drivers, &unmatched_cost, &edge_costs)?;

        let least_cost = edge_costs.iter().copied().min().unwrap_or(0);
        let mut graph = Self {
            drivers: drivers as u32,
            unmatched_cost,
            row_offsets,
            edge_drivers,
            edge_costs,
            least_cost,
        };
        graph.keep_cheapest_duplicates();
        Ok(graph)
    }

    /// Number of requests, R.
    pub fn requests(&self) -> usize {
        self.unmatched_cost.len()
    }

    /// Number of drivers, D.
    pub fn drivers(&self) -> usize {
        self.drivers as usize
    }

    /// Number of edges, E (at most one a pair).
    pub fn edges(&self) -> usize {
        self.edge_drivers.len()
    }

    /// The edges `(driver, cost)` of a request, in the order they were given.
    ///
    /// # Panics
    /// When `request` is not below [`Graph::requests`].
    pub fn row(&self, request: usize) -> impl ExactSizeIterator<Item = (u32, i64)> + Clone + '_ {
        let (drivers, costs) = self.row_slices(request);
        drivers.iter().copied().zip(costs.iter().copied())
    }

    /// What leaving a request unmatched costs.
    ///
    /// # Panics
    /// When `request` is not below [`Graph::requests`].
    pub fn unmatched_cost(&self, request: usize) -> i64 {
        self.unmatched_cost[request]
    }

    /// All unmatched costs, one a request.
    pub fn unmatched_costs(&self) -> &[i64] {
        &self.unmatched_cost
    }

    /// The cost of the edge between a request and a driver, if there is one. O(row length).
    pub fn cost(&self, request: usize, driver: u32) -> Option<i64> {
        self.row(request)
            .find(|&(j, _)| j == driver)
            .map(|(_, cost)| cost)
    }

    /// The drivers and the costs of a request's edges.
    pub(crate) fn row_slices(&self, request: usize) -> (&[u32], &[i64]) {
        let edges = self.row_offsets[request] as usize..self.row_offsets[request + 1] as usize;
        (&self.edge_drivers[edges.clone()], &self.edge_costs[edges])
    }

    /// A cost no edge goes below: a bound that needs no pass over the edges.
    pub(crate) fn least_cost(&self) -> i64 {
        self.least_cost
    }

    /// The rows of some requests, with drivers renumbered to `0..drivers` by `local`.
    pub(crate) fn part(
        &self,
        requests: &[u32],
        drivers: usize,
        local: impl Fn(u32) -> u32,
    ) -> Self {
        let mut part = Self {
            drivers: drivers as u32,
            unmatched_cost: Vec::with_capacity(requests.len()),
            row_offsets: Vec::with_capacity(requests.len() + 1),
            edge_drivers: Vec::new(),
            edge_costs: Vec::new(),
            least_cost: self.least_cost,
        };
        part.row_offsets.push(0);
        for &request in requests {
            let (drivers, costs) = self.row_slices(request as usize);
            part.unmatched_cost
                .push(self.unmatched_cost(request as usize));
            part.edge_drivers
                .extend(drivers.iter().map(|&driver| local(driver)));
            part.edge_costs.extend_from_slice(costs);
            part.row_offsets.push(part.edge_drivers.len() as u32);
        }
        part
    }

    fn keep_cheapest_duplicates(&mut self) {
        if self.edges() == 0 {
            return;
        }
        // `seen[j]` is one more than the place of driver j's newest edge; it belongs to the row at
        // hand when it is past the row's start.
        let mut seen = vec![0_u32; self.drivers()];
        let mut kept = 0;
        for request in 0..self.requests() {
            let row = self.row_offsets[request] as usize..self.row_offsets[request + 1] as usize;
            let start = kept;
            self.row_offsets[request] = start as u32;
            for edge in row {
                let (driver, cost) = (self.edge_drivers[edge], self.edge_costs[edge]);
                let first = seen[driver as usize] as usize;
                if first > start {
                    self.edge_costs[first - 1] = self.edge_costs[first - 1].min(cost);
                } else {
                    self.edge_drivers[kept] = driver;
                    self.edge_costs[kept] = cost;
                    kept += 1;
                    seen[driver as usize] = kept as u32;
                }
            }
        }
        let requests = self.requests();
        self.row_offsets[requests] = kept as u32;
        self.edge_drivers.truncate(kept);
        self.edge_costs.truncate(kept);
    }
}

fn check_counts(requests: usize, drivers: usize, unmatched_cost: &[i64]) -> Result<(), GraphError> {
    check_count("requests", requests)?;
    check_count("drivers", drivers)?;
    if unmatched_cost.len() == requests {
        Ok(())
    } else {
        Err(GraphError::UnmatchedCosts {
            requests,
            found: unmatched_cost.len(),
        })
    }
}

fn check_count(what: &'static str, count: usize) -> Result<(), GraphError> {
    if count > MAX_COUNT {
        Err(GraphError::TooMany { what, count })
    } else {
        Ok(())
    }
}

fn check_magnitude(drivers: usize, unmatched: &[i64], costs: &[i64]) -> Result<(), GraphError> {
    let requests = unmatched.len();
    let largest = |values: &[i64]| values.iter().map(|v| v.unsigned_abs()).max().unwrap_or(0);
    let magnitude = largest(unmatched).max(largest(costs));
    if (requests + drivers + 1) as u128 * u128::from(magnitude) > MAX_MAGNITUDE {
        return Err(GraphError::CostsTooLarge {
            magnitude,
            requests,
            drivers,
        });
    }
    Ok(())
}
