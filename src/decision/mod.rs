//! The decision: a frozen window in, assignments and a reason for everyone else out.
//!
//! Pure: no clock, no store, no thread-pool handle. The live service and the replay call the same
//! functions. [`decide_batch`] is the product; [`decide_oldest_first`] is the fallback, and with
//! [`decide_edge_first`] one of the rules that every gain is measured against.

mod ahead;
mod batch;
mod constraint;
mod explain;
mod greedy;
mod outcome;
mod repair;
mod snapshot;
mod warm_start;
mod window_file;

pub use ahead::{
    DemandSource, Foresight, MAX_PHANTOMS, Phantom, RecentPickups, Waiting, phantoms_of,
};
pub use batch::{Batch, DecisionError, Phase, decide_alone, decide_batch};
pub use constraint::{
    ConstraintFacts, MAX_BOUND, SideConstraint, check_constraints, claimed_constraints, kept_apart,
};
pub use explain::{
    ExplainRequestError, ExplainedCandidate, ExplainedMove, RequestExplanation, explain_request,
};
pub use greedy::{decide_edge_first, decide_oldest_first};
pub use outcome::{
    AheadFacts, Assignment, Excluded, Exclusion, Reason, SolveFacts, Unmatched, WindowDecision,
};
pub use repair::{Repaired, repair};
pub use snapshot::{
    CoolDown, DriverSnapshot, Held, MAX_CLIENT_SECONDS, PendingRequest, Presence, RequestSnapshot,
    SnapshotEdge, SnapshotError, TripEnd, WindowSnapshot, by_age,
};
pub use warm_start::{MAX_WARM_PRICE_MS, WarmStart};
pub use window_file::{
    SolveOptions, WINDOW_FORMAT, WindowFileError, read_window, snapshot_hash, write_window,
};
