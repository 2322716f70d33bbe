//! Instants, durations and costs in whole milliseconds.

use std::{
    fmt,
    ops::{Add, AddAssign, Sub},
};

use serde::{Deserialize, Serialize};

/// An instant: Unix time in milliseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UnixMs(i64);

/// A duration in milliseconds; it may be negative where it is a difference of two instants.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct DurationMs(i64);

/// A cost inside the solver: a time in whole milliseconds, any sign.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CostMs(i64);

/// Largest number of milliseconds any of the units may hold: 2^53, about 285,000 years, so that it
/// passes through JSON unharmed and sums of two never overflow.
const MAX_MS: i64 = 1 << 53;

/// Rounds to the nearest integer, halves away from zero; values outside ±2^53 and NaN saturate
/// (NaN to 0), as the solver's own overflow check then sees them.
pub fn round_half_away(value: f64) -> i64 {
    (value.round() as i64).clamp(-MAX_MS, MAX_MS)
}

macro_rules! millis {
    ($name:ident) => {
        impl $name {
            /// From whole milliseconds, saturating at ±2^53.
            pub const fn new(ms: i64) -> Self {
                if ms > MAX_MS {
                    Self(MAX_MS)
                } else if ms < -MAX_MS {
                    Self(-MAX_MS)
                } else {
                    Self(ms)
                }
            }

            /// Whole milliseconds.
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

millis!(UnixMs);
millis!(DurationMs);
millis!(CostMs);

impl DurationMs {
    /// The empty duration.
    pub const ZERO: Self = Self(0);

    /// From seconds, rounded half away from zero.
    pub fn from_seconds(seconds: f64) -> Self {
        Self(round_half_away(seconds * 1000.0))
    }

    /// In seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// As flags take it: a whole number of the largest unit that fits, up to hours.
    pub fn in_units(self) -> String {
        let units = [(3_600_000, "h"), (60_000, "min"), (1000, "s")];
        let fits = |&(ms, _): &(i64, _)| self.0 != 0 && self.0 % ms == 0;
        let (ms, unit) = units.into_iter().find(fits).unwrap_or((1, "ms"));
        format!("{}{unit}", self.0 / ms)
    }
}

impl CostMs {
    /// From seconds, rounded half away from zero.
    pub fn from_seconds(seconds: f64) -> Self {
        Self(round_half_away(seconds * 1000.0))
    }

    /// In seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl Add<DurationMs> for UnixMs {
    type Output = UnixMs;

    fn add(self, later: DurationMs) -> UnixMs {
        UnixMs::new(self.0.saturating_add(later.0))
    }
}

impl Sub<DurationMs> for UnixMs {
    type Output = UnixMs;

    fn sub(self, earlier: DurationMs) -> UnixMs {
        UnixMs::new(self.0.saturating_sub(earlier.0))
    }
}

impl Sub for UnixMs {
    type Output = DurationMs;

    fn sub(self, earlier: UnixMs) -> DurationMs {
        DurationMs::new(self.0.saturating_sub(earlier.0))
    }
}

impl Add for DurationMs {
    type Output = DurationMs;

    fn add(self, other: DurationMs) -> DurationMs {
        DurationMs::new(self.0.saturating_add(other.0))
    }
}

impl AddAssign for DurationMs {
    fn add_assign(&mut self, other: DurationMs) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_half_away_from_zero() {
        for (value, want) in [
            (0.5, 1),
            (-0.5, -1),
            (2.5, 3),
            (-2.5, -3),
            (1.49, 1),
            (f64::NAN, 0),
        ] {
            assert_eq!(round_half_away(value), want, "{value}");
        }
    }

    #[test]
    fn a_duration_is_told_in_the_largest_unit_that_fits() {
        for (ms, want) in [
            (99 * 3_600_000, "99h"),
            (600_000, "10min"),
            (90_000, "90s"),
            (1500, "1500ms"),
            (0, "0ms"),
        ] {
            assert_eq!(DurationMs::new(ms).in_units(), want);
        }
    }

    #[test]
    fn sums_of_extremes_saturate() {
        assert_eq!(
            UnixMs::new(i64::MAX) + DurationMs::new(i64::MAX),
            UnixMs::new(MAX_MS)
        );
    }
}
