//! What can be checked of constraints: that they hold as the solution says, and that its multipliers
//! are ones that a bound may be made of.
//!
//! With multipliers m (≥ 0 for a cap alone, ≤ 0 for a floor alone) and prices that are dual feasible
//! for the costs `c_ij + Σ m_k` over the constraints that count the pair, every matching that keeps
//! the constraints costs at least `Σu − Σv − Σ m_k b_k`, where `b_k` is the cap for m ≥ 0 and the
//! floor for m < 0 (Lagrangian relaxation; Geoffrion 1974). A floor that was not met counts at the
//! height that was reached: the bound is then one on the cost of answers that reach as much.

use super::{ConstraintAnswer, Constraints, Proof};
use crate::{CertificateError, Solution, Status};

impl Solution {
    /// Whether the prices alone have to prove the answer, so that slackness must hold.
    pub(crate) fn is_tight(&self) -> bool {
        self.status != Status::Feasible && self.proof == Proof::Prices
    }

    /// Checks counts, caps, shortfalls and multipliers; returns `Σ m_k b_k`.
    pub(crate) fn verify_constraints(
        &self,
        constraints: &Constraints,
    ) -> Result<i128, CertificateError> {
        let counts = constraints.count(&self.driver_of);
        let mut sum = 0;
        for (index, (answer, &count)) in self.constraints.iter().zip(&counts).enumerate() {
            let (max, min) = (constraints.max(index), constraints.min(index));
            if answer.count != count {
                return Err(CertificateError::ConstraintCount {
                    index,
                    stated: answer.count,
                    actual: count,
                });
            }
            if max.is_some_and(|max| count > max) {
                return Err(CertificateError::OverCap { index, count });
            }
            let shortfall = constraints.shortfall(index, count);
            if answer.shortfall != shortfall {
                return Err(CertificateError::Shortfall {
                    index,
                    stated: answer.shortfall,
                    actual: shortfall,
                });
            }
            let multiplier = answer.multiplier;
            let fits = match (max, min) {
                (None, None) => multiplier == 0,
                (Some(_), None) => multiplier >= 0,
                (None, Some(_)) => multiplier <= 0,
                (Some(_), Some(_)) => true,
            };
            let bound = bound_of(constraints, index, answer);
            let idle = multiplier != 0 && i128::from(count) != bound;
            if !fits || (self.is_tight() && idle) {
                return Err(CertificateError::Multiplier { index, multiplier });
            }
            sum += i128::from(multiplier) * bound;
        }
        Ok(sum)
    }
}

/// The count that a constraint's multiplier speaks of: its cap, or its floor as far as it was met.
fn bound_of(constraints: &Constraints, index: usize, answer: &ConstraintAnswer) -> i128 {
    let bound = if answer.multiplier >= 0 {
        constraints.max(index)
    } else {
        constraints.min(index)
    };
    let short = if answer.multiplier < 0 {
        answer.shortfall
    } else {
        0
    };
    i128::from(bound.unwrap_or(0)) - i128::from(short)
}
