//! Versions and sequence numbers: whole numbers below 2^53, so that JSON and Lua carry them unharmed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::UnixMs;

/// Why a number is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not below 2^53")]
pub struct VersionError(u64);

/// Largest value of any version: 2^53 − 1. Microseconds of Unix time reach it in the year 2255.
pub const MAX_VERSION: u64 = (1 << 53) - 1;

macro_rules! version {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(try_from = "u64", into = "u64")]
        pub struct $name(u64);

        impl $name {
            /// From a whole number, saturating at [`MAX_VERSION`].
            pub const fn new(value: u64) -> Self {
                if value > MAX_VERSION {
                    Self(MAX_VERSION)
                } else {
                    Self(value)
                }
            }

            /// The whole number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self::new(self.0 + 1)
            }

            /// The next version that also never falls behind the clock: max(last + 1, microseconds).
            ///
            /// A store that lost its last value still gives a higher one, as long as its clock is
            /// not behind by more than the quarantine.
            #[must_use]
            pub fn rise(self, now: StoreTime) -> Self {
                self.next().max(Self::new(now.micros()))
            }
        }

        impl TryFrom<u64> for $name {
            type Error = VersionError;

            fn try_from(value: u64) -> Result<Self, VersionError> {
                if value > MAX_VERSION {
                    Err(VersionError(value))
                } else {
                    Ok(Self(value))
                }
            }
        }

        impl From<$name> for u64 {
            fn from(version: $name) -> u64 {
                version.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

version!(
    /// The version of a claim (a fencing token). Strictly rising within a region (INV-2).
    Fence
);
version!(
    /// The version of a region's leadership. Rises like a fence.
    Epoch
);
version!(
    /// The life of the store's data: a new one after data loss.
    Generation
);
version!(
    /// A number that a caller draws once and repeats with every try of the same act, so that a
    /// repeat is told from a rival.
    Nonce
);
version!(
    /// The number of a window within a region: 1, 2, 3, … without gaps.
    WindowSeq
);
version!(
    /// The number of a fallback's take-over within a region.
    Take
);
version!(
    /// The number of an event within a region's outbox: 1, 2, 3, …
    EventId
);
version!(
    /// The version of a region's configuration; it is the `ETag`.
    ConfigVersion
);

/// An instant of the store's clock, in Unix microseconds: it decides leases and fences.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StoreTime(u64);

impl StoreTime {
    /// From Unix microseconds, saturating at [`MAX_VERSION`].
    pub const fn from_micros(micros: u64) -> Self {
        if micros > MAX_VERSION {
            Self(MAX_VERSION)
        } else {
            Self(micros)
        }
    }

    /// From Unix milliseconds; instants before 1970 are 1970.
    pub fn from_ms(at: UnixMs) -> Self {
        Self::from_micros(u64::try_from(at.get()).unwrap_or(0).saturating_mul(1000))
    }

    /// Unix microseconds.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Unix milliseconds, rounded down.
    pub const fn ms(self) -> UnixMs {
        UnixMs::new((self.0 / 1000) as i64)
    }
}

/// A finite floating-point number, ordered and hashable; minus zero is zero.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Finite(f64);

/// A number was infinite or not a number.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is not a finite number")]
pub struct NotFinite(f64);

impl Finite {
    /// `value` itself, or 0 when it is infinite or not a number.
    pub fn or_zero(value: f64) -> Self {
        Self::try_from(value).unwrap_or_default()
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Finite {
    type Error = NotFinite;

    fn try_from(value: f64) -> Result<Self, NotFinite> {
        if value.is_finite() {
            // adding zero turns −0 into 0, so that equal numbers have equal bits
            Ok(Self(value + 0.0))
        } else {
            Err(NotFinite(value))
        }
    }
}

impl From<Finite> for f64 {
    fn from(finite: Finite) -> f64 {
        finite.0
    }
}

impl Eq for Finite {}

impl std::hash::Hash for Finite {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_the_clock_or_the_next_number() {
        let now = StoreTime::from_micros(1_796_044_599_485_566);
        assert_eq!(Fence::default().rise(now).get(), 1_796_044_599_485_566);
        assert_eq!(Fence::new(now.micros()).rise(now).get(), now.micros() + 1);
        let ahead = Fence::new(now.micros() + 5);
        assert_eq!(ahead.rise(now), ahead.next());
    }

    #[test]
    fn versions_of_2_to_the_53_are_refused_in_json() {
        assert!(serde_json::from_str::<Fence>("9007199254740991").is_ok());
        assert!(serde_json::from_str::<Fence>("9007199254740992").is_err());
        assert!(serde_json::from_str::<Fence>("-1").is_err());
        assert!(serde_json::from_str::<Finite>("1e400").is_err());
    }
}
