//! How well the ends of trips are known.
//!
//! A replay knows when a trip ends, and a live region does not: a plan made on the truth would be
//! worth more than it can be. So the time that is left of a trip is taken for e^(σz) times what it
//! is, z drawn once a trip from a standard normal: its median is right, two of three trips lie
//! within a factor of e^σ, and the error shrinks as the trip nears its end, as that of a live map
//! does. Every figure of a plan names its σ.

use std::{fmt, str::FromStr};

use crate::domain::Draw;

/// Standard deviation σ of the logarithm of the remaining time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TripEndError(f64);

/// Not an error that a trip's end may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be a number from 0 to {MOST}")]
pub struct BadTripEndError;

/// Beyond this the remaining time is known to a factor of 20 at best.
const MOST: f64 = 3.0;

impl Default for TripEndError {
    fn default() -> Self {
        Self(0.3)
    }
}

impl TripEndError {
    /// σ.
    pub const fn sigma(self) -> f64 {
        self.0
    }

    /// What the remaining time of a driver's trip is taken for, over what it is.
    pub(super) fn of(self, seed: u64, request_id: &str, driver_id: &str) -> f64 {
        let draw = Draw::new(seed, "trip end").text(request_id).text(driver_id);
        // Box–Muller
        let (u, v) = (draw.number(0).unit_f64(), draw.number(1).unit_f64());
        let radius = (-2.0 * libm::log(1.0 - u)).sqrt();
        libm::exp(self.0 * radius * libm::cos(std::f64::consts::TAU * v))
    }
}

impl FromStr for TripEndError {
    type Err = BadTripEndError;

    fn from_str(text: &str) -> Result<Self, BadTripEndError> {
        let sigma: f64 = text.parse().map_err(|_| BadTripEndError)?;
        if (0.0..=MOST).contains(&sigma) {
            Ok(Self(sigma))
        } else {
            Err(BadTripEndError)
        }
    }
}

impl fmt::Display for TripEndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_log_normal_and_has_its_sigma() {
        let error = TripEndError::default();
        let logs: Vec<f64> = (0..20_000)
            .map(|n| libm::log(error.of(7, &format!("r{n}"), "d")))
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let square = logs.iter().map(|log| (log - mean) * (log - mean));
        let sigma = (square.sum::<f64>() / logs.len() as f64).sqrt();
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((sigma - 0.3).abs() < 0.01, "{sigma}");
        let within = logs.iter().filter(|log| log.abs() < 0.3).count();
        assert!((13_000..14_300).contains(&within), "{within}");
    }

    #[test]
    fn no_error_is_the_truth() {
        let none: TripEndError = "0".parse().unwrap();
        assert_eq!(none.of(1, "r", "d").to_bits(), 1.0_f64.to_bits());
        for bad in ["-0.1", "3.1", "NaN", "x", ""] {
            assert!(bad.parse::<TripEndError>().is_err(), "{bad}");
        }
    }
}
