//! Side constraints: named caps and floors over sets of pairs.
//!
//! Read `set` (what a constraint is, and the checked whole of them), `fill` (a valid answer by the
//! greedy rule), `answer` (what a solution says of them), `proof` (what of that can be checked).

mod answer;
mod fill;
mod proof;
mod set;

pub use answer::{ConstraintAnswer, Proof};
pub(crate) use fill::fill;
pub(crate) use set::shift;
pub use set::{Constraint, ConstraintError, Constraints, MAX_CONSTRAINTS, MAX_NAME_BYTES};
