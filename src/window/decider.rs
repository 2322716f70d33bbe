//! Who decides a window: a seam, so that tests can put a solver there that sleeps or fails.

use std::time::Duration;

use kheya_solver::{Budget, Method, Options};

use crate::{
    decision::{Batch, DecisionError, Phase, WindowSnapshot, decide_batch},
    eta::StraightLine,
};

/// Decides windows, on a thread that may block.
pub trait Decider: Send + Sync {
    /// Decides a window within a budget; `ended` is told as each phase ends.
    ///
    /// # Errors
    /// [`DecisionError`]: the fallback decides then.
    fn decide(
        &self,
        snapshot: &WindowSnapshot,
        method: Method,
        budget: Duration,
        ended: &mut dyn FnMut(Phase),
    ) -> Result<Batch, DecisionError>;
}

/// Decides with straight-line ETAs.
#[derive(Debug, Clone, Copy, Default)]
pub struct StraightLineDecider;

impl Decider for StraightLineDecider {
    fn decide(
        &self,
        snapshot: &WindowSnapshot,
        method: Method,
        budget: Duration,
        ended: &mut dyn FnMut(Phase),
    ) -> Result<Batch, DecisionError> {
        let options = Options {
            method,
            budget: Some(Budget::wall(budget)),
            ..Options::default()
        };
        decide_batch(
            snapshot,
            &StraightLine::of(snapshot.config()),
            &options,
            ended,
        )
    }
}
