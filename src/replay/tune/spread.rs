//! Request times spread inside the steps in which they were recorded.
//!
//! Rounded times come in heaps: a window that closes on a heap looks better than it is, and the
//! shorter the windows the more. A time stands for the step that begins with it, and is drawn
//! anywhere in that step.

use crate::{
    domain::{Draw, DurationMs},
    replay::input::{Demand, InputReport},
};

const MINUTE_MS: i64 = 60_000;

/// So many times more on full minutes than chance would put there, and some recorder knew minutes
/// only.
const FAR_MORE: f64 = 3.0;
/// Below this share on full minutes it does not matter.
const OF_ACCOUNT: f64 = 0.05;

/// The steps that times are spread over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeSpread {
    /// Step of all times.
    step: DurationMs,
    /// Whether a time on a full minute stands for the whole minute.
    minutes: bool,
}

impl TimeSpread {
    /// The steps of an input: the resolution of all its times, and a minute for those on full
    /// minutes where far more lie there than the resolution explains.
    pub(super) fn of(input: &InputReport) -> Self {
        let step = input.time_resolution;
        let chance = step.get() as f64 / MINUTE_MS as f64;
        let minutes =
            step.get() < MINUTE_MS && input.on_minute_share > (FAR_MORE * chance).max(OF_ACCOUNT);
        Self { step, minutes }
    }

    /// Whether some times stand for a whole minute though all are finer.
    pub(super) const fn minutes(self) -> bool {
        self.minutes
    }

    /// The demand with every time drawn inside its step, in the order of time.
    pub(super) fn spread(self, demand: &Demand, seed: u64) -> Demand {
        let mut spread = demand.clone();
        for trip in &mut spread.trips {
            let on_minute = trip.requested_at.get() % MINUTE_MS == 0;
            let step_ms = if self.minutes && on_minute {
                MINUTE_MS
            } else {
                self.step.get()
            };
            let draw = Draw::new(seed, "request time").text(trip.request_id.as_str());
            let later = draw.below(step_ms.max(1) as usize) as i64;
            trip.requested_at = trip.requested_at + DurationMs::new(later);
        }
        spread
            .trips
            .sort_by(|a, b| (a.requested_at, &a.request_id).cmp(&(b.requested_at, &b.request_id)));
        spread
    }
}
