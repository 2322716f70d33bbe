//! From a snapshot to candidate edges: radii, filters, ETAs, costs.
//!
//! A candidate is a (request, driver) pair with an ETA; an impossible pair is an absent edge, never
//! a big number. A request without any candidate gets the first reason that applies.

mod ahead;
mod costs;
mod given;
mod search;
mod table;

pub use ahead::{AheadCandidates, SoonFree, ahead_candidates, soon_free};
pub use costs::{pair_cost, phantom_unmatched_cost, planned_cost, unmatched_cost};
pub(crate) use given::given_table;
pub(crate) use search::RowBuffers;
pub use search::{CandidateSearch, availability};
pub use table::{Candidate, CandidateTable, RowReason};
