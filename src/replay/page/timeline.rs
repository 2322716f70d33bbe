//! Request time in bins of a round length, and where a clock's ticks lie on it.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::domain::{DurationMs, UnixMs};

const MINUTE_MS: i64 = 60_000;

/// Lengths that people divide a day into, in minutes; then whole weeks.
const STEPS_MIN: [i64; 14] = [
    1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080,
];

/// More bins than this would draw noise.
const MOST_BINS: i64 = 128;
/// A bin with fewer requests on average would too.
const REQUESTS_A_BIN: i64 = 30;
/// A curve of fewer bins says nothing.
const FEWEST_BINS: i64 = 6;

/// A span of request time in bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeline {
    from: UnixMs,
    step: DurationMs,
    bins: usize,
    /// First and last time.
    span: (UnixMs, UnixMs),
}

impl Timeline {
    /// Bins for `requests` requests between `from` and `to`, both included.
    pub(super) fn of(from: UnixMs, to: UnixMs, requests: usize) -> Self {
        let span_ms = (to - from).get().max(0) + 1;
        let most = (requests as i64 / REQUESTS_A_BIN).clamp(FEWEST_BINS, MOST_BINS);
        let fits = |step_min: &i64| span_ms.div_euclid(step_min * MINUTE_MS) < most;
        let week = STEPS_MIN[STEPS_MIN.len() - 1];
        let step_min = STEPS_MIN.into_iter().find(fits).unwrap_or_else(|| {
            // demand of over two years: as many weeks as it takes
            week * (span_ms / (week * MINUTE_MS * most) + 1)
        });
        let step_ms = step_min * MINUTE_MS;
        // bins lie on the clock
        let first = from.get().div_euclid(step_ms) * step_ms;
        let bins = (from.get() + span_ms - first + step_ms - 1).div_euclid(step_ms);
        Self {
            from: UnixMs::new(first),
            step: DurationMs::new(step_ms),
            bins: bins.max(1) as usize,
            span: (from, to.max(from)),
        }
    }

    /// Number of bins, at least 1.
    pub(super) const fn bins(&self) -> usize {
        self.bins
    }

    /// The bin of a time; the nearest one for a time outside.
    pub(super) fn bin_of(&self, at: UnixMs) -> usize {
        let bin = (at - self.from).get().div_euclid(self.step.get());
        bin.clamp(0, self.bins as i64 - 1) as usize
    }

    /// Where a bin begins.
    pub(super) fn start(&self, bin: usize) -> UnixMs {
        self.from + DurationMs::new(self.step.get() * bin as i64)
    }

    /// The share of a bin that lies between the first and the last time.
    pub(super) fn covered(&self, bin: usize) -> f64 {
        let (from, to) = (self.start(bin), self.start(bin + 1));
        let inside = to.min(self.span.1) - from.max(self.span.0);
        inside.get().max(0) as f64 / self.step.get() as f64
    }

    /// The middle of a bin, in bins from the start.
    pub(super) fn middle(bin: usize) -> f64 {
        bin as f64 + 0.5
    }

    /// The length of a bin in words.
    pub(super) fn step_text(&self) -> String {
        let minutes = self.step.get() / MINUTE_MS;
        match minutes {
            1 => "minute".into(),
            60 => "hour".into(),
            1440 => "day".into(),
            10_080 => "week".into(),
            _ if minutes % 10_080 == 0 => format!("{} weeks", minutes / 10_080),
            _ if minutes % 1440 == 0 => format!("{} days", minutes / 1440),
            _ if minutes % 60 == 0 => format!("{} hours", minutes / 60),
            _ => format!("{minutes} minutes"),
        }
    }

    /// About `count` ticks on round times of the wall clock: where, in bins from the start, and what
    /// they say.
    pub(super) fn ticks(&self, tz: &TimeZone, count: i64) -> Vec<(f64, String)> {
        let end = self.start(self.bins);
        let span_ms = (end - self.from).get();
        let wanted = span_ms / count.max(1);
        let step_ms = STEPS_MIN
            .into_iter()
            .map(|minutes| minutes * MINUTE_MS)
            .find(|step_ms| *step_ms >= wanted)
            .unwrap_or(wanted / (1440 * MINUTE_MS) * 1440 * MINUTE_MS + 1440 * MINUTE_MS);
        let in_days = step_ms >= 1440 * MINUTE_MS;
        let several_days = span_ms > 36 * 60 * MINUTE_MS;
        let offset_ms = Timestamp::from_millisecond(self.from.get())
            .map_or(0, |at| i64::from(tz.to_offset(at).seconds()) * 1000);
        let local = self.from.get() + offset_ms;
        let mut at_ms = (local + step_ms - 1).div_euclid(step_ms) * step_ms - offset_ms;
        let mut ticks = Vec::new();
        while at_ms <= end.get() {
            let bins = (at_ms - self.from.get()) as f64 / self.step.get() as f64;
            if let Some(at) = wall(UnixMs::new(at_ms), tz) {
                let names_day = in_days || (several_days && at.hour() == 0);
                let pattern = if names_day { "%-d %b" } else { "%H:%M" };
                ticks.push((bins, at.strftime(pattern).to_string()));
            }
            at_ms += step_ms;
        }
        ticks
    }

    /// The wall-clock time at which a bin begins.
    pub(super) fn clock(&self, bin: usize, tz: &TimeZone) -> String {
        let days = (self.start(self.bins) - self.from).get() > 1440 * MINUTE_MS;
        let pattern = if days { "%Y-%m-%d %H:%M" } else { "%H:%M" };
        wall(self.start(bin), tz).map_or_else(String::new, |at| at.strftime(pattern).to_string())
    }
}

/// An instant on the wall clock.
pub(super) fn wall(at: UnixMs, tz: &TimeZone) -> Option<DateTime> {
    let at = Timestamp::from_millisecond(at.get()).ok()?;
    Some(tz.to_datetime(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 60 * MINUTE_MS;

    fn timeline(span_ms: i64, requests: usize) -> Timeline {
        Timeline::of(UnixMs::new(7), UnixMs::new(7 + span_ms), requests)
    }

    #[test]
    fn bins_are_few_round_and_full() {
        for (span_ms, requests, step, bins) in [
            (105 * MINUTE_MS, 52_502, "minute", 106),
            (24 * HOUR_MS, 400_000, "15 minutes", 97),
            (31 * 24 * HOUR_MS, 56_551, "6 hours", 125),
            (HOUR_MS, 300, "10 minutes", 7),
            (0, 1, "minute", 1),
            (0, 0, "minute", 1),
            (20_000 * 24 * HOUR_MS, 1_000_000, "23 weeks", 125),
        ] {
            let timeline = timeline(span_ms, requests);
            assert_eq!(
                (timeline.step_text().as_str(), timeline.bins()),
                (step, bins)
            );
            let last = UnixMs::new(7 + span_ms);
            assert!(timeline.bin_of(last) < bins);
            assert!(timeline.start(timeline.bin_of(last)) <= last);
        }
    }

    #[test]
    fn ticks_lie_on_round_times_of_the_wall_clock() {
        let timeline = timeline(24 * HOUR_MS, 400_000);
        let said = |tz: &str| -> Vec<String> {
            let ticks = timeline.ticks(&TimeZone::get(tz).unwrap(), 5);
            ticks.into_iter().map(|tick| tick.1).collect()
        };
        assert_eq!(said("UTC"), ["00:00", "06:00", "12:00", "18:00", "00:00"]);
        assert_eq!(said("Asia/Kolkata"), ["06:00", "12:00", "18:00", "00:00"]);
    }
}
