//! Replay: recorded demand decided again, offline, to see what a rule or a window is worth.

pub mod input;
pub mod page;
pub mod tune;

mod ahead;
mod behaviour;
mod bound;
pub(crate) mod draw;
mod fleet;
mod kpis;
mod learn;
mod outcome;
mod output;
mod policy;
mod report;
mod scenario;
mod trip_end;
mod world;
mod wrapped;

pub use ahead::AheadKpis;
pub use behaviour::{Acceptance, Behaviour, BehaviourError, Patience};
pub use bound::{AboveBound, Bound, BoundError, BoundOptions, RELAXATION, rider_cost_bound};
pub use fleet::sample_fleet;
pub use kpis::{Gain, Kpis, SolveTimes, Spread, quantile};
pub use learn::LearnReport;
pub use outcome::{Outcome, Run, WindowGains, WindowRow};
pub use output::{OutputError, write_demand_model, write_outputs, write_tune_outputs};
pub use policy::{Policy, UnknownPolicy};
pub use report::{ReplayReport, human};
pub use scenario::{Scenario, ScenarioDriver, ScenarioTrip};
pub use trip_end::{BadTripEndError, TripEndError};
pub use world::run;
