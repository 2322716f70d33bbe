//! Exact sparse assignment for dispatch windows, and the proof of every answer.
//!
//! Requests are rows, drivers are columns, candidate edges have integer costs of any sign, and each
//! request has a cost of staying unmatched:
//!
//! ```text
//! minimise  Σ c_ij x_ij + Σ U_i s_i      Σ_j x_ij + s_i = 1 for each i,   Σ_i x_ij ≤ 1 for each j
//! ```
//!
//! The objective is cost, not the number of matches. [`solve`] answers with a matching and the
//! prices that prove it, or, when a [`Budget`] ends first, with a valid matching and a true gap.
//!
//! ```
//! use kheya_solver::{Graph, Options, Status, solve};
//!
//! // Two riders want the same car; the second has no other.
//! let graph = Graph::from_edges(2, 2, vec![1000, 1000], [(0, 0, 10), (0, 1, 30), (1, 0, 20)])?;
//! let solution = solve(&graph, &Options::default())?;
//! assert_eq!(solution.driver_of, [Some(1), Some(0)]);
//! assert_eq!((solution.objective, solution.status), (50, Status::Optimal));
//! solution.verify(&graph)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The answer is the same for any order of the edges, number of threads and machine: ties break by
//! index. (A solve cut short by the wall clock is the exception.)
//!
//! The crate is pure: no clock but in `budget`, no I/O, no randomness.

pub mod asn;
mod budget;
mod certificate;
mod closing;
mod components;
mod constraints;
mod explain;
mod graph;
mod greedy;
mod hungarian;
mod least_prices;
mod lp;
mod method;
mod pool;
mod solution;
mod solve;
mod sparse;

pub use budget::Budget;
pub use certificate::CertificateError;
pub use constraints::{
    Constraint, ConstraintAnswer, ConstraintError, Constraints, MAX_CONSTRAINTS, MAX_NAME_BYTES,
    Proof,
};
pub use explain::{ExplainError, Explainer, Explanation, Move, Swap};
pub use graph::{Graph, GraphError, MAX_COUNT, MAX_MAGNITUDE};
pub use greedy::{greedy_edge, greedy_oldest};
pub use hungarian::MAX_DENSE_CELLS;
pub use least_prices::least_driver_prices;
pub use lp::{LpBackend, MAX_LP_EDGES};
pub use method::{Method, UnknownMethod};
pub use solution::{Solution, Status, objective_of};
pub use solve::{Options, SolveError, solve};
