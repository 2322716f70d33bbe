//! Riders who give up and drivers who decline.
//!
//! Off by default: a replay is then the world of the recording alone. Where they are on, the trade
//! that a window makes is real: a longer one loses riders who will not wait for it, a shorter one
//! sends cars from further away, which drivers decline and riders cancel.
//!
//! The form follows the queueing models of this field: riders abandon the queue while they wait for
//! a match, and cancel after it by the pickup time they are shown (*On-Demand Ride-Matching in a
//! Spatial Model with Abandonment and Cancellation*, Operations Research, 2024); drivers accept the
//! less the longer the way to the pickup (Ashkrof, Correia, Cats and van Arem, *Ride acceptance
//! behaviour of ride-sourcing drivers*, Transportation Research C, 2022, from a stated-preference
//! survey). Deviations: (1) every hazard is halved over a given time, so that each parameter can be
//! read off one's own records; (2) a driver's answer and a rider's look at the ETA take no time;
//! (3) a rider who has seen the ETA and stayed does not cancel on the way. No figures are built in,
//! since none that was published carries over from one city to another.
//!
//! Every draw is a hash of the seed and the ids it concerns, so that all policies and windows meet
//! the same riders: one who gives up after 80 s does so under each of them.

use std::{fmt, str::FromStr};

use crate::domain::{Draw, DurationMs};

/// Who may refuse. The default is nobody.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Behaviour {
    /// How long riders stay.
    pub patience: Option<Patience>,
    /// Which offers drivers take.
    pub acceptance: Option<Acceptance>,
}

/// How long riders stay. The share of riders who have not given up after waiting `w` for a match is
/// 2^−(w ÷ wait)^shape; of those shown an ETA of `e`, 2^−(e ÷ eta) stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    /// Wait for a match by which half have given up, in seconds.
    pub wait_s: Option<f64>,
    /// Shown ETA at which half cancel at once, in seconds.
    pub eta_s: Option<f64>,
    /// Weibull shape of the hazard by wait: 1 is constant, above 1 it rises with the wait.
    pub shape: f64,
}

/// Which offers drivers take: `base` × 2^−(ETA ÷ eta) of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Acceptance {
    /// Share accepted by a driver who is already there.
    pub base: f64,
    /// ETA that halves the share, in seconds.
    pub eta_s: Option<f64>,
}

impl Behaviour {
    /// Whether an offer may come to nothing.
    pub(super) fn offers_fail(&self) -> bool {
        self.acceptance.is_some() || self.patience.is_some_and(|p| p.eta_s.is_some())
    }
}

impl Patience {
    /// How long the rider of a request waits for a match; none who would wait for ever.
    pub(super) fn wait(&self, seed: u64, request_id: &str) -> Option<DurationMs> {
        let half_s = self.wait_s?;
        let draw = Draw::new(seed, "patience").text(request_id).unit_f64();
        let wait_s = half_s * libm::pow(halvings(draw), 1.0 / self.shape);
        Some(DurationMs::from_seconds(wait_s))
    }

    /// Whether the rider stays when shown this ETA. The same rider always cancels at the same ETA.
    pub(super) fn stays(&self, seed: u64, request_id: &str, eta_s: f64) -> bool {
        self.eta_s.is_none_or(|half_s| {
            let draw = Draw::new(seed, "shown eta").text(request_id).unit_f64();
            eta_s <= half_s * halvings(draw)
        })
    }
}

impl Acceptance {
    /// Whether a driver takes its offer of a request, the `attempt`-th that anybody gets.
    pub(super) fn takes(
        &self,
        seed: u64,
        request_id: &str,
        driver_id: &str,
        attempt: u32,
        eta_s: f64,
    ) -> bool {
        let draw = Draw::new(seed, "acceptance")
            .text(request_id)
            .text(driver_id)
            .number(attempt.into());
        draw.unit_f64() < self.share(eta_s)
    }

    /// Share of offers at this ETA that are taken.
    fn share(&self, eta_s: f64) -> f64 {
        let halved = self.eta_s.map_or(0.0, |half_s| eta_s / half_s);
        self.base * libm::exp2(-halved)
    }
}

/// Half-lives that a uniform draw survives: −log₂ of what is left, an exponential variable.
fn halvings(draw: f64) -> f64 {
    -libm::log2(1.0 - draw)
}

/// A `--patience` or `--acceptance` that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BehaviourError(String);

impl FromStr for Patience {
    type Err = BehaviourError;

    fn from_str(text: &str) -> Result<Self, BehaviourError> {
        let mut patience = Self {
            wait_s: None,
            eta_s: None,
            shape: 1.0,
        };
        for (name, value) in parts(text, "wait")? {
            match name {
                "wait" => patience.wait_s = Some(seconds(value)?),
                "eta" => patience.eta_s = Some(seconds(value)?),
                "shape" => patience.shape = number(value, 0.1, 20.0)?,
                _ => {
                    return Err(BehaviourError(format!(
                        "there is no {name:?}: write wait=5m,eta=15m,shape=1"
                    )));
                }
            }
        }
        if patience.wait_s.is_none() && patience.eta_s.is_none() {
            return Err(BehaviourError(
                "wait or eta is needed, such as wait=5m".into(),
            ));
        }
        Ok(patience)
    }
}

impl FromStr for Acceptance {
    type Err = BehaviourError;

    fn from_str(text: &str) -> Result<Self, BehaviourError> {
        let mut acceptance = Self {
            base: 1.0,
            eta_s: None,
        };
        for (name, value) in parts(text, "base")? {
            match name {
                "base" => acceptance.base = number(value, 0.0, 1.0)?,
                "eta" => acceptance.eta_s = Some(seconds(value)?),
                _ => {
                    return Err(BehaviourError(format!(
                        "there is no {name:?}: write base=0.9,eta=10m"
                    )));
                }
            }
        }
        Ok(acceptance)
    }
}

/// `name=value,…`; a lone value is that of `first`.
fn parts<'a>(text: &'a str, first: &'a str) -> Result<Vec<(&'a str, &'a str)>, BehaviourError> {
    let mut parts: Vec<(&str, &str)> = Vec::new();
    for (at, part) in text.split(',').enumerate() {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), value.trim()),
            None if at == 0 => (first, part.trim()),
            None => return Err(BehaviourError(format!("{part:?}: write NAME=VALUE"))),
        };
        if parts.iter().any(|(known, _)| *known == name) {
            return Err(BehaviourError(format!("{name} stands there twice")));
        }
        parts.push((name, value));
    }
    Ok(parts)
}

fn seconds(text: &str) -> Result<f64, BehaviourError> {
    let time = humantime::parse_duration(text)
        .map_err(|error| BehaviourError(format!("{text:?}: {error}; write 90s or 5m")))?;
    let seconds = time.as_secs_f64();
    if (1.0..=86_400.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(BehaviourError(format!("{text}: a time is 1s to 1day")))
    }
}

fn number(text: &str, least: f64, most: f64) -> Result<f64, BehaviourError> {
    let number: f64 = text
        .parse()
        .map_err(|_| BehaviourError(format!("{text:?} is no number")))?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(BehaviourError(format!(
            "{text} is not within {least} and {most}"
        )))
    }
}

impl fmt::Display for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        if let Some(wait_s) = self.wait_s {
            write!(f, "wait={wait_s}s")?;
            comma = ",";
        }
        if let Some(eta_s) = self.eta_s {
            write!(f, "{comma}eta={eta_s}s")?;
            comma = ",";
        }
        if (self.shape - 1.0).abs() > f64::EPSILON {
            write!(f, "{comma}shape={}", self.shape)?;
        }
        Ok(())
    }
}

impl fmt::Display for Acceptance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "base={}", self.base)?;
        self.eta_s
            .map_or(Ok(()), |eta_s| write!(f, ",eta={eta_s}s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(count: u64, holds: impl Fn(&str) -> bool) -> f64 {
        let held = (0..count).filter(|n| holds(&format!("r{n}"))).count();
        held as f64 / count as f64
    }

    fn near(share: f64, wanted: f64) {
        // three standard errors of 20,000 draws
        assert!((share - wanted).abs() < 0.011, "{share} is not {wanted}");
    }

    #[test]
    fn half_the_riders_have_given_up_after_the_half_time_and_the_hazard_has_its_shape() {
        for (shape, at_double) in [(1.0, 0.25), (2.0, 0.0625)] {
            let patience: Patience = format!("5m,shape={shape}").parse().unwrap();
            let waits = |s: f64| share(20_000, |id| patience.wait(3, id).unwrap().as_seconds() > s);
            near(waits(300.0), 0.5);
            near(waits(600.0), at_double);
            near(waits(150.0), libm::exp2(-libm::pow(0.5, shape)));
        }
    }

    #[test]
    fn riders_cancel_by_the_eta_they_are_shown() {
        let patience: Patience = "eta=15m".parse().unwrap();
        assert_eq!(patience.wait(3, "r"), None);
        near(share(20_000, |id| patience.stays(3, id, 900.0)), 0.5);
        near(
            share(20_000, |id| patience.stays(3, id, 450.0)),
            libm::exp2(-0.5),
        );
        assert!((0..1000).all(|n| patience.stays(3, &n.to_string(), 0.0)));
    }

    #[test]
    fn drivers_accept_by_the_eta_of_the_pickup() {
        let acceptance: Acceptance = "0.9,eta=10m".parse().unwrap();
        for (eta_s, wanted) in [(0.0, 0.9), (600.0, 0.45), (1200.0, 0.225)] {
            near(
                share(20_000, |id| acceptance.takes(3, id, "d", 0, eta_s)),
                wanted,
            );
        }
        // another driver and another attempt are other draws
        let both = share(20_000, |id| {
            acceptance.takes(3, id, "d", 0, 0.0) && acceptance.takes(3, id, "e", 1, 0.0)
        });
        near(both, 0.81);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for bad in [
            "",
            "soon",
            "wait=5",
            "wait=0s",
            "shape=2",
            "5m,5m",
            "5m,wait=3m",
            "colour=1",
        ] {
            assert!(bad.parse::<Patience>().is_err(), "{bad}");
        }
        for bad in ["", "2", "-0.1", "base=x", "0.9,eta=0s", "NaN", "wait=5m"] {
            assert!(bad.parse::<Acceptance>().is_err(), "{bad}");
        }
        let told: Patience = "eta=15m,wait=5m,shape=2".parse().unwrap();
        assert_eq!(told.to_string(), "wait=300s,eta=900s,shape=2");
        assert_eq!(told.to_string().parse::<Patience>().unwrap(), told);
    }
}
