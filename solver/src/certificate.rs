//! The proof of an answer, checked by something that knows nothing of how it was found.
//!
//! With prices u (requests) and v (drivers) such that `u_i ≤ U_i`, `v_j ≥ 0` and
//! `u_i − v_j ≤ c_ij` on every edge, every matching costs at least Σu − Σv (weak duality of the
//! assignment problem; Kuhn 1955, Munkres 1957). A matching that costs just that is optimal, and
//! then complementary slackness holds: matched pairs are tight, unmatched requests pay their whole
//! unmatched cost, free drivers have price 0.
//!
//! All sums are formed in `i128`. One pass over the edges, O(R + D + E).

use crate::constraints::shift;
use crate::{Constraints, Graph, Proof, Solution, Status};

/// What is wrong with a [`Solution`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// A vector has not one entry a request or driver.
    #[error("{what} has {found} entries instead of {expected}")]
    Shape {
        /// Which vector.
        what: &'static str,
        /// Entries needed.
        expected: usize,
        /// Entries found.
        found: usize,
    },
    /// A request is matched to a driver it has no edge to.
    #[error("request {request} is matched to driver {driver} without an edge")]
    NoEdge {
        /// The request.
        request: usize,
        /// The driver.
        driver: u32,
    },
    /// A driver is matched twice.
    #[error("driver {driver} is matched to more than one request")]
    DriverTwice {
        /// The driver.
        driver: u32,
    },
    /// A request's price exceeds its unmatched cost.
    #[error("the price of request {request} exceeds its unmatched cost")]
    RequestPrice {
        /// The request.
        request: usize,
    },
    /// A driver's price is negative.
    #[error("the price of driver {driver} is negative")]
    DriverPrice {
        /// The driver.
        driver: u32,
    },
    /// An edge costs less than its prices say it must.
    #[error("the edge of request {request} and driver {driver} is cheaper than its prices allow")]
    EdgePrice {
        /// The request.
        request: usize,
        /// The driver.
        driver: u32,
    },
    /// A matched pair whose price difference is not its cost.
    #[error("the matched pair of request {request} and driver {driver} is not tight")]
    PairNotTight {
        /// The request.
        request: usize,
        /// The driver.
        driver: u32,
    },
    /// An unmatched request whose price is not its unmatched cost.
    #[error("request {request} is unmatched below its unmatched cost")]
    UnmatchedBelowCost {
        /// The request.
        request: usize,
    },
    /// A free driver with a price above 0.
    #[error("driver {driver} is free at a price above 0")]
    FreeDriverPriced {
        /// The driver.
        driver: u32,
    },
    /// The objective is not the cost of the matching.
    #[error("objective {stated}, but the matching costs {actual}")]
    Objective {
        /// What the solution says.
        stated: i64,
        /// What the matching costs.
        actual: i128,
    },
    /// The dual bound is not Σu − Σv.
    #[error("dual bound {stated}, but the prices give {actual}")]
    DualBound {
        /// What the solution says.
        stated: i64,
        /// Σu − Σv.
        actual: i128,
    },
    /// A constraint does not count what the solution says.
    #[error("constraint {index} counts {actual} pairs, not {stated}")]
    ConstraintCount {
        /// Place in the constraints.
        index: usize,
        /// What the solution says.
        stated: u32,
        /// What the matching gives.
        actual: u32,
    },
    /// More pairs than a cap allows.
    #[error("constraint {index} counts {count} pairs, above its cap")]
    OverCap {
        /// Place in the constraints.
        index: usize,
        /// Pairs counted.
        count: u32,
    },
    /// A floor lacks more or fewer pairs than the solution says.
    #[error("the floor of constraint {index} lacks {actual} pairs, not {stated}")]
    Shortfall {
        /// Place in the constraints.
        index: usize,
        /// What the solution says.
        stated: u32,
        /// What the matching gives.
        actual: u32,
    },
    /// A multiplier of the wrong sign, or one above or below 0 where its constraint does not bind.
    #[error("constraint {index} cannot have the multiplier {multiplier}")]
    Multiplier {
        /// Place in the constraints.
        index: usize,
        /// The multiplier.
        multiplier: i64,
    },
    /// The status claims more or less than the figures prove.
    #[error("status {status} does not fit objective {objective} and dual bound {dual_bound}")]
    Status {
        /// What the solution says.
        status: Status,
        /// Its objective.
        objective: i64,
        /// Its dual bound.
        dual_bound: i64,
    },
}

impl Solution {
    /// Checks the whole certificate against the graph, independently of the solver, in one pass.
    ///
    /// For every status: the matching is valid, the objective is its cost, the prices are dual
    /// feasible and the dual bound is theirs. For `optimal` and `empty` also complementary
    /// slackness, so that one price or pair changed makes it fail. O(R + D + E).
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn verify(&self, graph: &Graph) -> Result<(), CertificateError> {
        self.verify_with(graph, &Constraints::default())
    }

    /// As [`Solution::verify`], of a graph that was solved under side constraints: also that caps
    /// hold, that floors lack what the solution says, and that the bound follows from prices and
    /// multipliers. For an answer whose proof is [`Proof::BranchAndBound`] the prices prove the bound
    /// alone.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn verify_with(
        &self,
        graph: &Graph,
        constraints: &Constraints,
    ) -> Result<(), CertificateError> {
        check_shape("constraints", constraints.len(), self.constraints.len())?;
        check_shape("driver_of", graph.requests(), self.driver_of.len())?;
        check_shape(
            "request_prices",
            graph.requests(),
            self.request_prices.len(),
        )?;
        check_shape("driver_prices", graph.drivers(), self.driver_prices.len())?;

        let multipliers: Vec<i64> = self.constraints.iter().map(|c| c.multiplier).collect();
        let mut taken = vec![false; graph.drivers()];
        let mut objective = 0_i128;
        for request in 0..graph.requests() {
            let shift = |driver| i128::from(shift(constraints.word(request, driver), &multipliers));
            objective += self.verify_request(graph, request, shift)?;
            if let Some(driver) = self.driver_of[request]
                && std::mem::replace(&mut taken[driver as usize], true)
            {
                return Err(CertificateError::DriverTwice { driver });
            }
        }
        for (driver, (&price, &taken)) in self.driver_prices.iter().zip(&taken).enumerate() {
            let driver = driver as u32;
            if price < 0 {
                return Err(CertificateError::DriverPrice { driver });
            }
            if self.is_tight() && !taken && price != 0 {
                return Err(CertificateError::FreeDriverPriced { driver });
            }
        }
        let bounds = self.verify_constraints(constraints)?;
        self.verify_figures(graph, objective, bounds)
    }

    /// Checks one request's price, pair and edges; returns what the request costs. `shift` is what
    /// multipliers add to an edge.
    fn verify_request(
        &self,
        graph: &Graph,
        request: usize,
        shift: impl Fn(u32) -> i128,
    ) -> Result<i128, CertificateError> {
        let price = i128::from(self.request_prices[request]);
        let unmatched_cost = i128::from(graph.unmatched_cost(request));
        if price > unmatched_cost {
            return Err(CertificateError::RequestPrice { request });
        }
        let matched = self.driver_of[request];
        let mut paid = None;
        for (driver, cost) in graph.row(request) {
            let cost = i128::from(cost);
            let slack =
                cost + shift(driver) + i128::from(self.driver_prices[driver as usize]) - price;
            if slack < 0 {
                return Err(CertificateError::EdgePrice { request, driver });
            }
            if matched == Some(driver) {
                if self.is_tight() && slack != 0 {
                    return Err(CertificateError::PairNotTight { request, driver });
                }
                paid = Some(cost);
            }
        }
        match (matched, paid) {
            (Some(driver), None) => Err(CertificateError::NoEdge { request, driver }),
            (Some(_), Some(cost)) => Ok(cost),
            (None, _) if self.is_tight() && price != unmatched_cost => {
                Err(CertificateError::UnmatchedBelowCost { request })
            }
            (None, _) => Ok(unmatched_cost),
        }
    }

    /// Checks the sums; `bounds` is what the multipliers take off the bound.
    fn verify_figures(
        &self,
        graph: &Graph,
        objective: i128,
        bounds: i128,
    ) -> Result<(), CertificateError> {
        if i128::from(self.objective) != objective {
            return Err(CertificateError::Objective {
                stated: self.objective,
                actual: objective,
            });
        }
        let sum = |prices: &[i64]| prices.iter().map(|&price| i128::from(price)).sum::<i128>();
        let dual_bound = sum(&self.request_prices) - sum(&self.driver_prices) - bounds;
        if i128::from(self.dual_bound) != dual_bound {
            let (stated, actual) = (self.dual_bound, dual_bound);
            return Err(CertificateError::DualBound { stated, actual });
        }
        let proven = objective == dual_bound;
        // prices say nothing of how few pairs floors could lack
        let lacking = self.constraints.iter().any(|c| c.shortfall > 0);
        let fits = match (self.status, self.proof) {
            (Status::Optimal, Proof::Prices) => proven && !lacking && graph.edges() > 0,
            (Status::Optimal, Proof::BranchAndBound) => {
                (!proven || lacking) && !self.constraints.is_empty() && graph.edges() > 0
            }
            (Status::Feasible, Proof::Prices) => (!proven || lacking) && graph.edges() > 0,
            (Status::Empty, Proof::Prices) => proven && graph.edges() == 0,
            (Status::Feasible | Status::Empty, Proof::BranchAndBound) => false,
        };
        if fits {
            return Ok(());
        }
        let Self {
            status,
            objective,
            dual_bound,
            ..
        } = *self;
        Err(CertificateError::Status {
            status,
            objective,
            dual_bound,
        })
    }
}

fn check_shape(what: &'static str, expected: usize, found: usize) -> Result<(), CertificateError> {
    if expected == found {
        Ok(())
    } else {
        Err(CertificateError::Shape {
            what,
            expected,
            found,
        })
    }
}
