//! The answer of an own window: every request of the call stands in it once.

use kheya_solver::Proof;
use serde::Serialize;

use super::claims::Outcomes;
use crate::{
    candidates::unmatched_cost,
    decision::{Exclusion, WindowDecision, WindowSnapshot, claimed_constraints},
    domain::{DriverId, DurationMs, Fence, Generation, RequestId, UnixMs, WindowId},
    http::model::{constraints::ConstraintReport, entries::RejectedEntry},
    protocol::{OwnClaimed, PairOutcome, RegionView},
};

/// What an answer is made of.
pub(super) struct OwnDecided<'a> {
    pub(super) window_id: &'a WindowId,
    pub(super) overview: &'a RegionView,
    pub(super) snapshot: &'a WindowSnapshot,
    pub(super) decision: &'a WindowDecision,
    pub(super) outcomes: &'a Outcomes,
    /// Requests that took no part, each with its reason.
    pub(super) left: Vec<(RequestId, &'static str)>,
    /// Claimed by a node that did not finish.
    pub(super) already: &'a [OwnClaimed],
    pub(super) rejected: Vec<RejectedEntry>,
}

#[derive(Serialize)]
pub(super) struct Answer<'a> {
    window_id: &'a WindowId,
    generation: Generation,
    source: &'static str,
    assignments: Vec<AnswerPair>,
    unmatched: Vec<AnswerLeft>,
    excluded: &'a [Exclusion],
    rejected: Vec<RejectedEntry>,
    total_cost_s: f64,
    status: &'static str,
    method: &'static str,
    gap: f64,
    gain_vs_greedy_s: Option<f64>,
    gain_vs_greedy_edge_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<Vec<ConstraintReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'static str>,
    decided_at_ms: UnixMs,
}

#[derive(Serialize)]
struct AnswerPair {
    request_id: RequestId,
    driver_id: DriverId,
    fence: Fence,
    lease_until_ms: UnixMs,
    lease_ms: DurationMs,
    eta_s: f64,
    cost_s: f64,
}

#[derive(Serialize)]
struct AnswerLeft {
    request_id: RequestId,
    reason: &'static str,
}

impl From<&OwnClaimed> for AnswerPair {
    fn from(claimed: &OwnClaimed) -> Self {
        Self {
            request_id: claimed.request_id.clone(),
            driver_id: claimed.driver_id.clone(),
            fence: claimed.fence,
            lease_until_ms: claimed.lease_until_ms,
            lease_ms: claimed.lease_ms,
            eta_s: claimed.eta.as_seconds(),
            cost_s: claimed.cost.as_seconds(),
        }
    }
}

/// Puts the answer together.
pub(super) fn own_answer(decided: OwnDecided<'_>) -> Answer<'_> {
    let OwnDecided {
        window_id,
        overview,
        snapshot,
        decision,
        outcomes,
        left,
        already,
        rejected,
    } = decided;
    let mut assignments: Vec<AnswerPair> = already.iter().map(AnswerPair::from).collect();
    let left = left.into_iter();
    let mut unmatched: Vec<AnswerLeft> = left
        .map(|(request_id, reason)| AnswerLeft { request_id, reason })
        .collect();
    let mut total_cost_s = decision.objective.as_seconds();
    total_cost_s += already
        .iter()
        .map(|claimed| claimed.cost.as_seconds())
        .sum::<f64>();
    for pair in &decision.assignments {
        match outcomes.get(&pair.request_id) {
            Some(&PairOutcome::Claimed {
                fence,
                lease_until_ms,
                lease_ms,
            }) => assignments.push(AnswerPair {
                request_id: pair.request_id.clone(),
                driver_id: pair.driver_id.clone(),
                fence,
                lease_until_ms,
                lease_ms,
                eta_s: pair.eta_s,
                cost_s: pair.cost_s,
            }),
            lost => {
                total_cost_s += cost_of_leaving_s(snapshot, &pair.request_id) - pair.cost_s;
                unmatched.push(AnswerLeft {
                    request_id: pair.request_id.clone(),
                    reason: match lost {
                        Some(PairOutcome::Lost(loss)) => loss.code(),
                        _ => "claim_lost",
                    },
                });
            }
        }
    }
    unmatched.extend(decision.unmatched.iter().map(|left| AnswerLeft {
        request_id: left.request_id.clone(),
        reason: left.reason.name(),
    }));
    let facts = decision.solve.as_ref();
    let claimed = assignments.iter().skip(already.len());
    let claimed: Vec<_> = claimed
        .map(|pair| (&pair.request_id, &pair.driver_id))
        .collect();
    let constraints = claimed_constraints(snapshot, &decision.constraints, &claimed);
    Answer {
        window_id,
        generation: overview.generation,
        source: if facts.is_some() { "own" } else { "fallback" },
        assignments,
        unmatched,
        excluded: &decision.excluded,
        rejected,
        // whole milliseconds, without the noise of adding floats
        total_cost_s: (total_cost_s * 1000.0).round() / 1000.0,
        status: facts.map_or("feasible", |facts| facts.status.name()),
        method: facts.map_or("greedy", |facts| facts.method.name()),
        gap: facts.map_or(0.0, |facts| facts.gap),
        constraints: ConstraintReport::all(&constraints),
        proof: facts
            .filter(|facts| facts.proof == Proof::BranchAndBound)
            .map(|facts| facts.proof.name()),
        gain_vs_greedy_s: facts.map(|facts| facts.gain_vs_greedy.as_seconds()),
        gain_vs_greedy_edge_s: facts.map(|facts| facts.gain_vs_greedy_edge.as_seconds()),
        decided_at_ms: overview.now_ms,
    }
}

fn cost_of_leaving_s(snapshot: &WindowSnapshot, id: &RequestId) -> f64 {
    let requests = snapshot.requests().iter();
    let request = requests
        .map(|pending| &pending.request)
        .find(|request| request.id == *id);
    request.map_or(0.0, |request| {
        unmatched_cost(snapshot.config(), request, snapshot.age(request)).as_seconds()
    })
}
