//! The names of the methods.

use std::fmt;
use std::str::FromStr;

/// How to solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// Whichever exact method measures best on graphs like the one given.
    #[default]
    Auto,
    /// The exact sparse solver: shortest augmenting paths.
    Sparse,
    /// The dense exact solver of the `pathfinding` crate: small graphs only, and not interrupted
    /// by a budget once it runs.
    Hungarian,
    /// Linear programming. Without side constraints one program over all edges, as a cross-check of
    /// the others: small graphs only, and not interrupted by a budget once it runs. Under side
    /// constraints that bind it is what every exact method ends in.
    Lp,
    /// Cheapest edge first: fast, valid, not optimal.
    GreedyEdge,
}

impl Method {
    /// Every method, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Sparse,
        Self::Hungarian,
        Self::Lp,
        Self::GreedyEdge,
    ];

    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Sparse => "sparse",
            Self::Hungarian => "hungarian",
            Self::Lp => "lp",
            Self::GreedyEdge => "greedy-edge",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A method name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown method {0:?}: one of auto, sparse, hungarian, lp, greedy-edge")]
pub struct UnknownMethod(
    /// The name given.
    pub String,
);

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|method| method.name() == name);
        known.ok_or_else(|| UnknownMethod(name.to_owned()))
    }
}
