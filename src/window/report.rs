//! What a decided window tells of itself: the body of its report, and every decision.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;

use super::{ahead::AheadNote, claims::Outcomes};
use crate::{
    decision::{Exclusion, Phase, Reason, SolveFacts, Unmatched, WindowDecision},
    domain::{DriverId, Fence, Finite, RequestId, UnixMs},
    protocol::{PairOutcome, ReportBody, ReportSource},
};

/// Time each phase took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PhaseTimes {
    pub(super) build: Duration,
    pub(super) eta: Duration,
    pub(super) solve: Duration,
    pub(super) verify: Duration,
}

impl PhaseTimes {
    pub(super) fn add(&mut self, phase: Phase, took: Duration) {
        match phase {
            Phase::Search | Phase::Build => self.build += took,
            Phase::Eta => self.eta += took,
            Phase::Solve => self.solve += took,
            Phase::Verify => self.verify += took,
        }
    }
}

/// A window after its claims.
pub(super) struct DecidedWindow<'a> {
    pub(super) source: ReportSource,
    pub(super) cause: Option<&'static str>,
    /// The decision as it was claimed, repair included.
    pub(super) decision: &'a WindowDecision,
    pub(super) requests: usize,
    pub(super) deferred: u32,
    pub(super) outcomes: &'a Outcomes,
    /// Pairs lost at the claim, in all rounds.
    pub(super) claim_lost: u32,
    pub(super) times: PhaseTimes,
    pub(super) claim: Duration,
    pub(super) snapshot_hash: Option<Arc<str>>,
    /// Longest time since a window first planned one of its planned requests.
    pub(super) planned_age_s: Option<f64>,
    /// What it adds to what the region remembers, where it looks ahead.
    pub(super) ahead: Option<&'a AheadNote>,
}

/// A pair of a sealed window, with its claim.
#[derive(Serialize)]
struct ClaimedPair<'a> {
    request_id: &'a RequestId,
    driver_id: &'a DriverId,
    fence: Fence,
    lease_until_ms: UnixMs,
    eta_s: f64,
    cost_s: f64,
}

#[derive(Serialize)]
struct Decisions<'a> {
    assignments: Vec<ClaimedPair<'a>>,
    unmatched: Vec<Unmatched>,
    excluded: &'a [Exclusion],
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<&'a AheadNote>,
}

impl DecidedWindow<'_> {
    fn claimed(&self) -> impl Iterator<Item = ClaimedPair<'_>> {
        self.decision.assignments.iter().filter_map(|pair| {
            match self.outcomes.get(&pair.request_id) {
                Some(&PairOutcome::Claimed {
                    fence,
                    lease_until_ms,
                    ..
                }) => Some(ClaimedPair {
                    request_id: &pair.request_id,
                    driver_id: &pair.driver_id,
                    fence,
                    lease_until_ms,
                    eta_s: pair.eta_s,
                    cost_s: pair.cost_s,
                }),
                _ => None,
            }
        })
    }

    /// Whether a request got its driver.
    pub(super) fn has_claim(&self, request: &RequestId) -> bool {
        matches!(
            self.outcomes.get(request),
            Some(PairOutcome::Claimed { .. })
        )
    }

    /// Everyone without a driver: the decision's unmatched, and who lost at the claim.
    pub(super) fn unmatched(&self) -> Vec<Unmatched> {
        let lost = self
            .decision
            .assignments
            .iter()
            .filter(|pair| !self.has_claim(&pair.request_id));
        let lost = lost.map(|pair| Unmatched {
            request_id: pair.request_id.clone(),
            reason: Reason::ClaimLost,
        });
        self.decision
            .unmatched
            .iter()
            .cloned()
            .chain(lost)
            .collect()
    }

    /// Every decision as the JSON document that the store keeps for a while.
    pub(super) fn decisions(&self) -> Option<Arc<str>> {
        let document = Decisions {
            assignments: self.claimed().collect(),
            unmatched: self.unmatched(),
            excluded: &self.decision.excluded,
            ahead: self.ahead,
        };
        serde_json::to_string(&document).ok().map(Into::into)
    }

    /// The body of the report.
    pub(super) fn body(&self) -> ReportBody {
        let facts = self.decision.solve.as_ref();
        let gained = |gain: fn(&SolveFacts) -> f64| {
            let facts = self.decision.gains();
            facts.map(|facts| Finite::or_zero(gain(facts)))
        };
        ReportBody {
            source: self.source,
            cause: self.cause.map(Into::into),
            requests: self.requests as u32,
            deferred: self.deferred,
            drivers: self.decision.drivers as u32,
            edges: self.decision.edges as u32,
            unmatched: count(self.unmatched().iter().map(|left| left.reason.name())),
            excluded: count(
                self.decision
                    .excluded
                    .iter()
                    .map(|driver| driver.reason.name()),
            ),
            status: facts.map(|facts| facts.status.name().into()),
            method: facts.map(|facts| facts.method.name().into()),
            gap: facts.map(|facts| Finite::or_zero(facts.gap)),
            build_ms: in_ms(self.times.build),
            eta_ms: in_ms(self.times.eta),
            solve_ms: in_ms(self.times.solve),
            verify_ms: in_ms(self.times.verify),
            claim_ms: in_ms(self.claim),
            total_eta_s: Finite::or_zero(self.claimed().map(|pair| pair.eta_s).sum()),
            gain_vs_greedy_s: gained(|facts| facts.gain_vs_greedy.as_seconds()),
            gain_vs_greedy_edge_s: gained(|facts| facts.gain_vs_greedy_edge.as_seconds()),
            claim_lost: self.claim_lost,
            snapshot_hash: self.snapshot_hash.clone(),
            planned_age_s: self.planned_age_s.map(Finite::or_zero),
        }
    }
}

fn count(names: impl Iterator<Item = &'static str>) -> BTreeMap<Arc<str>, u32> {
    let mut counted: BTreeMap<&'static str, u32> = BTreeMap::new();
    for name in names {
        *counted.entry(name).or_default() += 1;
    }
    counted
        .into_iter()
        .map(|(name, n)| (name.into(), n))
        .collect()
}

fn in_ms(duration: Duration) -> Finite {
    Finite::or_zero((duration.as_secs_f64() * 1e6).round() / 1e3)
}
