//! Choosing a window: the same demand replayed under many settings, and what the differences say.
//!
//! A sweep runs every setting with every seed. A seed brings its own fleet (where it is sampled),
//! its own spread of the request times inside the steps they were recorded in, and its own phase of
//! the windows; the settings share it, so that they are compared on the same luck. The scored
//! requests fall into blocks of time; per block and seed the settings differ by so many seconds of
//! rider cost, and the blocks are resampled to say how sure that is.

mod cases;
mod compare;
mod fragment;
mod grid;
mod human;
mod interval;
mod recommend;
mod report;
mod rules;
mod score;
mod spread;
mod sweep;

pub use cases::{Axis, PlanError, Rules, TuneFleet, TunePlan};
pub use fragment::config_fragment;
pub use human::human;
pub use interval::{DrawnFrom, Estimate, holm_intervals, paired_estimates};
pub(in crate::replay) use report::source_in_words;
pub use report::{
    BlockRow, Comparison, FleetRecommendation, HourReport, HourRow, MethodReport, Recommendation,
    RuleReport, Setting, SweepRow, TuneReport, Verdict,
};
pub use sweep::Sweep;
