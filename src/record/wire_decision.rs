//! A decision as it stands in a line.

use std::collections::BTreeMap;

use kheya_solver::{Method, Proof, Status};
use serde::{Deserialize, Serialize};

use crate::{
    decision::{
        AheadFacts, Assignment, ConstraintFacts, Excluded, Exclusion, SolveFacts, Unmatched,
        WindowDecision, WindowSnapshot,
    },
    domain::CostMs,
};

/// A decision of a window.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionLine {
    assignments: Vec<Assignment>,
    unmatched: Vec<Unmatched>,
    /// By reason, places in the snapshot's list of drivers: the first, then the steps to the next.
    excluded: BTreeMap<Excluded, Vec<usize>>,
    drivers: usize,
    edges: usize,
    objective: CostMs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    solve: Option<SolveLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<ConstraintFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ahead: Option<AheadFacts>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SolveLine {
    status: String,
    /// Absent: prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    method: String,
    dual_bound: CostMs,
    gap: f64,
    gap_abs: CostMs,
    components: usize,
    largest_component: usize,
    gain_vs_greedy_edge: CostMs,
    gain_vs_greedy: CostMs,
}

impl DecisionLine {
    /// Tells a decision on `snapshot`.
    pub(super) fn tell(decision: &WindowDecision, snapshot: &WindowSnapshot) -> Self {
        let mut excluded: BTreeMap<Excluded, (usize, Vec<usize>)> = BTreeMap::new();
        let mut places = snapshot.drivers().iter().enumerate();
        for Exclusion { driver_id, reason } in &decision.excluded {
            // both are in the order of ids
            let Some((place, _)) = places.find(|(_, driver)| driver.id == *driver_id) else {
                debug_assert!(false, "{driver_id} is excluded, but not in the snapshot");
                break;
            };
            let (last, steps) = excluded.entry(*reason).or_default();
            steps.push(place - *last);
            *last = place;
        }
        Self {
            assignments: decision.assignments.clone(),
            unmatched: decision.unmatched.clone(),
            excluded: excluded
                .into_iter()
                .map(|(reason, (_, steps))| (reason, steps))
                .collect(),
            drivers: decision.drivers,
            edges: decision.edges,
            objective: decision.objective,
            solve: decision.solve.as_ref().map(SolveLine::tell),
            constraints: decision.constraints.clone(),
            ahead: decision.ahead.clone(),
        }
    }

    /// The decision on `snapshot` that was told.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub(super) fn read(self, snapshot: &WindowSnapshot) -> Result<WindowDecision, String> {
        let mut excluded = BTreeMap::new();
        for (reason, steps) in self.excluded {
            let mut place = 0_usize;
            for step in steps {
                place = place.saturating_add(step);
                excluded.insert(place, reason);
            }
        }
        let excluded = excluded.into_iter().map(|(place, reason)| {
            let driver = snapshot.drivers().get(place);
            let driver = driver.ok_or_else(|| format!("there is no driver at place {place}"))?;
            Ok(Exclusion {
                driver_id: driver.id.clone(),
                reason,
            })
        });
        Ok(WindowDecision {
            assignments: self.assignments,
            unmatched: self.unmatched,
            excluded: excluded.collect::<Result<_, String>>()?,
            drivers: self.drivers,
            edges: self.edges,
            objective: self.objective,
            solve: self.solve.map(SolveLine::read).transpose()?,
            constraints: self.constraints,
            ahead: self.ahead,
        })
    }
}

impl SolveLine {
    fn tell(facts: &SolveFacts) -> Self {
        Self {
            status: facts.status.name().into(),
            proof: (facts.proof != Proof::Prices).then(|| facts.proof.name().into()),
            method: facts.method.name().into(),
            dual_bound: facts.dual_bound,
            gap: facts.gap,
            gap_abs: facts.gap_abs,
            components: facts.components,
            largest_component: facts.largest_component,
            gain_vs_greedy_edge: facts.gain_vs_greedy_edge,
            gain_vs_greedy: facts.gain_vs_greedy,
        }
    }

    fn read(self) -> Result<SolveFacts, String> {
        let status = [Status::Optimal, Status::Feasible, Status::Empty]
            .into_iter()
            .find(|status| status.name() == self.status)
            .ok_or_else(|| format!("the status {:?} is not known", self.status))?;
        let method: Method = self
            .method
            .parse()
            .map_err(|_| format!("the method {:?} is not known", self.method))?;
        let proof = match self.proof.as_deref() {
            None => Proof::Prices,
            Some(name) if name == Proof::BranchAndBound.name() => Proof::BranchAndBound,
            Some(name) => return Err(format!("the proof {name:?} is not known")),
        };
        Ok(SolveFacts {
            status,
            proof,
            method,
            dual_bound: self.dual_bound,
            gap: self.gap,
            gap_abs: self.gap_abs,
            components: self.components,
            largest_component: self.largest_component,
            gain_vs_greedy_edge: self.gain_vs_greedy_edge,
            gain_vs_greedy: self.gain_vs_greedy,
        })
    }
}
