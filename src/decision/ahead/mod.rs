//! Looking ahead: a window decided with the next riders and the next free cars in view.
//!
//! A window decided alone spends the car that the next rider needed. Two additions to the graph of
//! a window, none to the solver; only its own requests are ever given cars, and only free ones:
//!
//! - `plan_ahead_ms`: drivers who will be free within it are candidates too. A request planned onto
//!   one stays pending with the reason `planned`, and the next window decides afresh.
//! - `demand_ahead_ms`: phantoms stand for the next requests and keep cars near them.
//!
//! Guard rails: a request is planned for `max_planned_ms` at most, counted from the first window
//! that planned it, and never when it would expire sooner than that; from then on it gets what the
//! window alone gives it, whatever phantoms and plans would have liked. What looking ahead leaves
//! waiting is counted as planned, so that all of it is bounded and seen.

mod foresight;
mod look;

pub use foresight::{
    DemandSource, Foresight, MAX_PHANTOMS, Phantom, RecentPickups, Waiting, phantoms_of,
};
pub(super) use look::look_ahead;
