//! The rules a replay compares.

use std::{fmt, str::FromStr};

/// A rule that decides who gets which car.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Each window decided as a whole, at least cost.
    Batch,
    /// Oldest request first, in the same windows.
    Greedy,
    /// Cheapest edge first, in the same windows.
    GreedyEdge,
    /// No window: oldest first at each arrival and each release.
    GreedyNow,
}

impl Policy {
    /// All four, batch first.
    pub const ALL: [Self; 4] = [Self::Batch, Self::GreedyEdge, Self::Greedy, Self::GreedyNow];

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Greedy => "greedy",
            Self::GreedyEdge => "greedy-edge",
            Self::GreedyNow => "greedy-now",
        }
    }

    /// What it does, in a few words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Batch => "each window as a whole, least total cost",
            Self::Greedy => "same windows, oldest request first",
            Self::GreedyEdge => "same windows, cheapest pair first",
            Self::GreedyNow => "no window, oldest request first at every arrival and release",
        }
    }

    /// Whether it decides in windows.
    pub const fn has_windows(self) -> bool {
        !matches!(self, Self::GreedyNow)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Not the name of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no policy {0:?} (batch, greedy, greedy-edge, greedy-now)")]
pub struct UnknownPolicy(String);

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == name)
            .ok_or_else(|| UnknownPolicy(name.into()))
    }
}
