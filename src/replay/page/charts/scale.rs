//! From values to places on paper, and ticks on round values.

use super::super::figures::whole;

/// A linear scale from values to coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// Puts the values `from..to` on the coordinates `start..end`. An empty span of values, or one
    /// that is no number, becomes a span of one.
    pub(in super::super) fn new(from: f64, to: f64, start: f64, end: f64) -> Self {
        let from = if from.is_finite() { from } else { 0.0 };
        let to = if to.is_finite() && to > from {
            to
        } else {
            from + 1.0
        };
        Self {
            from,
            to,
            start,
            end,
        }
    }

    /// Where a value lies; values outside lie at the ends.
    pub(in super::super) fn at(&self, value: f64) -> f64 {
        let share = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.start + share * (self.end - self.start)
    }

    /// The coordinates the values lie between.
    pub(in super::super) const fn ends(&self) -> (f64, f64) {
        (self.start, self.end)
    }

    /// The step between round values.
    fn step(&self, count: usize) -> f64 {
        round_step((self.to - self.from) / count.max(1) as f64)
    }

    /// [`Self::ticks`] with their texts, in as many decimals as tell neighbours apart.
    pub(in super::super) fn labelled_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let step = self.step(count);
        let decimals = (0..6).find(|n| {
            let scaled = step * libm::pow(10.0, f64::from(*n));
            (scaled - scaled.round()).abs() < 1e-6 * scaled
        });
        let decimals = decimals.unwrap_or(6) as usize;
        let ticks = self.ticks(count).into_iter();
        ticks.map(|tick| (tick, decimal(tick, decimals))).collect()
    }

    /// Round values inside the scale, about `count` of them.
    pub(in super::super) fn ticks(&self, count: usize) -> Vec<f64> {
        let step = self.step(count);
        let first = (self.from / step - 1e-9).ceil();
        let last = (self.to / step + 1e-9).floor();
        let ticks = (last - first).clamp(0.0, 50.0) as i64;
        (0..=ticks)
            .map(|n| (first + n as f64) * step)
            .map(|tick| if tick.abs() < step * 1e-6 { 0.0 } else { tick })
            .collect()
    }
}

/// A number with so many decimals and its thousands grouped.
fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let integer = integer.parse().map_or_else(|_| integer.to_owned(), whole);
    let sign = if value < 0.0 { "−" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{integer}{point}{fraction}")
}

/// The round number (1, 2, 2.5 or 5 times a power of ten) at or above a step.
pub(in super::super) fn round_step(step: f64) -> f64 {
    if !(step > 0.0 && step.is_finite()) {
        return 1.0;
    }
    let power = libm::pow(10.0, libm::log10(step).floor());
    let digits = step / power;
    let round = [1.0, 2.0, 2.5, 5.0, 10.0];
    let chosen = round.into_iter().find(|r| digits <= r * (1.0 + 1e-9));
    chosen.unwrap_or(10.0) * power
}

/// The least round value at or above `value` that about `count` round steps lead to.
pub(in super::super) fn round_up(value: f64, count: usize) -> f64 {
    if !(value > 0.0 && value.is_finite()) {
        return 1.0;
    }
    round_span(0.0, value, count).1
}

/// The greatest round value at or below `value`, in the steps that lead from it to `to`.
pub(in super::super) fn round_span(from: f64, to: f64, count: usize) -> (f64, f64) {
    if !(from.is_finite() && to.is_finite()) || to < from {
        return (0.0, 1.0);
    }
    let mut span = (to - from).max(from.abs() * 1e-3).max(1e-6);
    // rounding widens the span, which may call for longer steps: ticks then end at its ends
    loop {
        let step = round_step(span / count.max(1) as f64);
        let low = (from / step + 1e-9).floor() * step;
        let high = ((to / step - 1e-9).ceil() * step).max(low + step);
        if round_step((high - low) / count.max(1) as f64) <= step * (1.0 + 1e-9) {
            return (low, high);
        }
        span = high - low;
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "round numbers are exact")]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (from, to, ticks) in [
            (0.0, 100.0, vec![0.0, 25.0, 50.0, 75.0, 100.0]),
            (0.0, 1500.0, vec![0.0, 500.0, 1000.0, 1500.0]),
            (0.0, 0.0, vec![0.0, 0.25, 0.5, 0.75, 1.0]),
        ] {
            assert_eq!(Scale::new(from, to, 0.0, 1.0).ticks(4), ticks);
        }
        assert_eq!(round_up(1043.0, 4), 1500.0);
        assert_eq!(round_up(0.0, 4), 1.0);
        assert_eq!(round_span(32.1, 37.4, 4), (32.0, 38.0));
        assert_eq!(round_span(-57.0, 40.0, 4), (-100.0, 50.0));
        assert_eq!(round_span(5.0, 5.0, 4).0, 5.0);
    }

    #[test]
    fn neighbouring_ticks_have_different_texts() {
        let texts = |from, to| -> Vec<String> {
            let ticks = Scale::new(from, to, 0.0, 1.0).labelled_ticks(4);
            ticks.into_iter().map(|tick| tick.1).collect()
        };
        assert_eq!(texts(0.0, 1.0), ["0.00", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(
            texts(1786.0, 1788.0),
            ["1,786.0", "1,786.5", "1,787.0", "1,787.5", "1,788.0"]
        );
        assert_eq!(texts(-2.0, 2.0), ["−2", "−1", "0", "1", "2"]);
    }

    #[test]
    fn a_scale_has_a_place_for_everything() {
        let scale = Scale::new(f64::NAN, f64::INFINITY, 10.0, 20.0);
        assert_eq!((scale.at(0.0), scale.at(1.0)), (10.0, 20.0));
        assert_eq!(Scale::new(0.0, 2.0, 20.0, 0.0).at(5.0), 0.0);
    }
}
