//! Linear programming: the exact way under side constraints, and a cross-check without them.
//!
//! Under side constraints the assignment problem is relaxed to its linear program and branched where
//! that is fractional. The program is solved by Dantzig–Wolfe decomposition ("Decomposition principle
//! for linear programs", 1960): without side constraints the assignment polytope is integral, so
//! every point of the relaxation is a mean of matchings. A small *master* program, given to
//! `good_lp`, knows some matchings and looks for the multipliers of the constraints (Kelley's cutting
//! planes, 1960); the exact sparse solver answers each with the cheapest matching at costs shifted by
//! them, until that is no news. A window of hundreds of requests is then a program of a few dozen
//! columns instead of tens of thousands.
//!
//! Floating point only proposes. For any whole multipliers of the right sign the sparse solver's
//! prices are an exact bound, and every answer is counted and priced in whole numbers; so a rounding
//! error can cost time, never truth.
//!
//! Read `assignment` (the program over all edges, without constraints), `problem` (whole numbers and
//! their scale), `master`, `relaxation` (one node), `branch` (the search), `course` (their order).

mod assignment;
mod backend;
mod branch;
mod course;
mod master;
mod problem;
mod relaxation;

pub use assignment::MAX_LP_EDGES;
pub(crate) use assignment::{check_size, solve};
pub use backend::LpBackend;
pub(crate) use course::under_constraints;
