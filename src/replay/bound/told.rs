//! A bound as it is told: beside each run, what is left of its rider cost.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::replay::{Kpis, Scenario};

/// What is relaxed, in a sentence: it stands beside every figure of the bound.
pub const RELAXATION: &str = "with full hindsight, each request to a car where it starts or to the drop-off of another served trip at the earliest instant it could be free, each at most once; all trips together take no more car time than there is, at a price by the clock; a car that picks up late is not free later, and nothing waits for a window";

/// A lower bound on the rider cost of every rule over one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// No rule has a `rider_cost_s` below this; absent without requests.
    pub rider_cost_s: Option<f64>,
    /// What is relaxed.
    pub relaxation: &'static str,
    /// What the relaxation itself costs at most: how much longer rounds could raise the bound.
    pub relaxation_at_most_s: Option<f64>,
    /// Rounds that it took.
    pub rounds: usize,
    /// By rule, what is left.
    pub runs: BTreeMap<&'static str, AboveBound>,
}

/// How far a run lies above the bound: more than this no rule can gain on it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AboveBound {
    /// Its rider cost less the bound.
    pub left_s: f64,
    /// The same as a share of its rider cost, in per cent; absent where that is 0.
    pub left_pct: Option<f64>,
}

/// What the rounds have proven so far, in milliseconds over all requests.
#[derive(Debug, Default)]
pub(super) struct Proven {
    bound: Option<i64>,
    at_most: Option<i64>,
    rounds: usize,
}

impl Proven {
    /// A round's bound; the highest stands.
    pub(super) fn raise(&mut self, bound: i64, round: usize) {
        self.bound = self.bound.max(Some(bound));
        self.rounds = round;
    }

    /// The cost of a least assignment of some of the pairs; the lowest stands.
    pub(super) fn cap(&mut self, objective: i64) {
        self.at_most = Some(self.at_most.map_or(objective, |least| least.min(objective)));
    }

    /// How far the bound is known to lie below the relaxation's value, as a share of that.
    pub(super) fn gap(&self) -> f64 {
        match (self.bound, self.at_most) {
            (Some(bound), Some(at_most)) => {
                (at_most - bound) as f64 / at_most.unsigned_abs().max(1) as f64
            }
            _ => f64::INFINITY,
        }
    }
}

impl Bound {
    pub(super) fn new(scenario: &Scenario, proven: &Proven) -> Self {
        let requests = scenario.trips.len();
        let a_request = |ms: i64| (requests > 0).then(|| ms as f64 / 1000.0 / requests as f64);
        Self {
            rider_cost_s: proven.bound.and_then(a_request),
            relaxation: RELAXATION,
            relaxation_at_most_s: proven.at_most.and_then(a_request),
            rounds: proven.rounds,
            runs: BTreeMap::new(),
        }
    }

    /// The same beside the figures of runs.
    #[must_use]
    pub fn beside(mut self, runs: &[Kpis]) -> Self {
        if let Some(bound) = self.rider_cost_s {
            let above = runs.iter().filter_map(|kpis| {
                let cost = kpis.rider_cost_s?;
                let left_s = cost - bound;
                let left_pct = (cost != 0.0).then(|| 100.0 * left_s / cost);
                Some((kpis.policy, AboveBound { left_s, left_pct }))
            });
            self.runs = above.collect();
        }
        self
    }

    /// The bound, what is left of each run, and what is relaxed; empty without requests.
    pub fn in_words(&self) -> String {
        let Some(bound) = self.rider_cost_s else {
            return String::new();
        };
        let left = self.runs.iter().map(|(policy, above)| {
            let share = above
                .left_pct
                .map_or_else(String::new, |pct| format!(" ({pct:.0} %)"));
            format!("{policy} {:.1} s{share}", above.left_s)
        });
        let left: Vec<String> = left.collect();
        format!(
            "No rule has a rider cost below {bound:.1} s; left at most: {}. That bound relaxes the world: {RELAXATION}.",
            left.join(", ")
        )
    }
}
