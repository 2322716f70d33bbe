//! Expected demand: how many riders ask, where and when in the week, learned from recorded demand.
//!
//! [`DemandCounts`] is what was seen: requests by H3 cell and quarter of an hour of the week, and how
//! long each quarter was watched. It is what a model file holds. [`DemandModel`] makes rates of it,
//! and of the rates the requests that the next minutes are expected to bring, as phantoms for a
//! window that looks ahead.
//!
//! Promise: the same file gives the same phantoms at the same instant, on every machine.

mod counts;
mod file;
mod model;
mod spread;
mod week;

pub use counts::{DemandCounts, Span};
pub use file::ModelFileError;
pub use model::DemandModel;
pub use week::{SLOT, SLOTS, WeekClock, WeekSlot};

#[cfg(test)]
mod tests;
