//! How finely request times were recorded.

use crate::domain::{DurationMs, UnixMs};

const MINUTE_MS: i64 = 60_000;

/// The steps that recorders use, from coarse to fine.
const STEPS_MS: [i64; 16] = [
    3_600_000, 1_800_000, 900_000, 600_000, 300_000, MINUTE_MS, 30_000, 15_000, 10_000, 5_000,
    1_000, 500, 100, 50, 10, 1,
];

/// One time in this many may lie off a step, as a slip of the recorder.
const SLIPS_ONE_IN: usize = 1000;

/// The coarsest usual step on which (nearly) all times lie.
pub(crate) fn time_resolution(times: &(impl Iterator<Item = UnixMs> + Clone)) -> DurationMs {
    let allowed = times.clone().count() / SLIPS_ONE_IN;
    let lie_on = |step: &&i64| {
        let mut slips = times.clone().filter(|at| at.get() % **step != 0);
        slips.nth(allowed).is_none()
    };
    DurationMs::new(STEPS_MS.iter().find(lie_on).copied().unwrap_or(1))
}

/// The share of times on a full minute; 0 when there are none.
pub(crate) fn on_minute_share(times: impl Iterator<Item = UnixMs>) -> f64 {
    let (mut all, mut full) = (0_u64, 0_u64);
    for at in times {
        all += 1;
        full += u64::from(at.get() % MINUTE_MS == 0);
    }
    if all == 0 {
        0.0
    } else {
        full as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(times: &[i64]) -> i64 {
        time_resolution(&times.iter().map(|&ms| UnixMs::new(ms))).get()
    }

    #[test]
    fn the_resolution_is_the_coarsest_step_that_all_times_lie_on() {
        assert_eq!(step(&[60_000, 61_000]), 1_000);
        assert_eq!(step(&[60_000, 120_000]), 60_000);
        assert_eq!(step(&[900_000, 0, -900_000]), 900_000);
        assert_eq!(step(&[60_000, 60_001]), 1);
        let mut minutes: Vec<i64> = (1..2000).map(|i| i * 60_000).collect();
        minutes.push(61_000);
        assert_eq!(step(&minutes), 60_000, "one slip in 2,000");
    }

    #[test]
    fn the_share_of_full_minutes_is_counted() {
        let times = [0, 60_000, 60_500, 1].map(UnixMs::new);
        assert!((on_minute_share(times.into_iter()) - 0.5).abs() < 1e-12);
    }
}
