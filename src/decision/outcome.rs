//! What was decided: everyone is accounted for once.

use kheya_solver::{Method, Proof, Status};
use serde::{Deserialize, Serialize};

use super::{ConstraintFacts, WindowSnapshot};
use crate::{
    candidates::{Candidate, CandidateTable, RowReason},
    domain::{CostMs, DriverId, RequestId},
};

/// Why a request got no driver: the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The snapshot was full before its turn.
    Deferred,
    /// No available driver of a class the rider accepts.
    VehicleClass,
    /// No available driver within the last radius.
    NoDriverInRange,
    /// Every driver in range is in cool-down or excluded by the client.
    Cooldown,
    /// No route from any driver in range.
    Unroutable,
    /// Every driver in range takes too long.
    OverMaxPickupEta,
    /// Every candidate costs at least as much as leaving the request unmatched.
    NotWorthIt,
    /// A driver worth taking is free, but a full side constraint counts the pair.
    Constraint,
    /// Looking ahead leaves it waiting: for a driver who will be free soon, or since its car is
    /// worth more to the riders who come next.
    Planned,
    /// The solve was cut by its budget before this request could be settled.
    Budget,
    /// Its candidates are worth more to others.
    Outbid,
    /// Its driver was claimed by somebody else meanwhile.
    ClaimLost,
}

impl Reason {
    /// Its name in JSON, reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deferred => "deferred",
            Self::VehicleClass => "vehicle_class",
            Self::NoDriverInRange => "no_driver_in_range",
            Self::Cooldown => "cooldown",
            Self::Unroutable => "unroutable",
            Self::OverMaxPickupEta => "over_max_pickup_eta",
            Self::NotWorthIt => "not_worth_it",
            Self::Constraint => "constraint",
            Self::Planned => "planned",
            Self::Budget => "budget",
            Self::Outbid => "outbid",
            Self::ClaimLost => "claim_lost",
        }
    }

    /// Whether the request had a candidate in the window.
    pub const fn had_candidate(self) -> bool {
        matches!(
            self,
            Self::NotWorthIt
                | Self::Planned
                | Self::Constraint
                | Self::Budget
                | Self::Outbid
                | Self::ClaimLost
        )
    }
}

impl From<RowReason> for Reason {
    fn from(reason: RowReason) -> Self {
        match reason {
            RowReason::Deferred => Self::Deferred,
            RowReason::VehicleClass => Self::VehicleClass,
            RowReason::NoDriverInRange => Self::NoDriverInRange,
            RowReason::Cooldown => Self::Cooldown,
            RowReason::Unroutable => Self::Unroutable,
            RowReason::OverMaxPickupEta => Self::OverMaxPickupEta,
        }
    }
}

/// Why a driver of the snapshot could not be chosen: the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excluded {
    /// Not working.
    Offline,
    /// On a trip the service does not know.
    Busy,
    /// On a confirmed trip.
    OnTrip,
    /// Held for another request.
    Claimed,
    /// Its position is too old.
    StaleLocation,
}

impl Excluded {
    /// Its name in JSON, reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::Busy => "busy",
            Self::OnTrip => "on_trip",
            Self::Claimed => "claimed",
            Self::StaleLocation => "stale_location",
        }
    }
}

/// A chosen pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The request.
    pub request_id: RequestId,
    /// Its driver.
    pub driver_id: DriverId,
    /// Pickup ETA in seconds.
    pub eta_s: f64,
    /// Cost of the pair in seconds.
    pub cost_s: f64,
}

/// A request without a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// The request.
    pub request_id: RequestId,
    /// Why.
    pub reason: Reason,
}

/// A driver that could not be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusion {
    /// The driver.
    pub driver_id: DriverId,
    /// Why.
    pub reason: Excluded,
}

/// What the solver says of its work on a window.
#[derive(Debug, Clone, PartialEq)]
pub struct SolveFacts {
    /// Whether the optimum is proven.
    pub status: Status,
    /// What proves an optimum.
    pub proof: Proof,
    /// The method that was used.
    pub method: Method,
    /// Lower bound of the window's cost.
    pub dual_bound: CostMs,
    /// Relative gap; 0 exactly when the prices prove the optimum.
    pub gap: f64,
    /// Gap in cost.
    pub gap_abs: CostMs,
    /// Connected components of the graph.
    pub components: usize,
    /// Requests in the largest component.
    pub largest_component: usize,
    /// What greedy-edge on the same graph would have cost more.
    pub gain_vs_greedy_edge: CostMs,
    /// What oldest-first greedy on the same graph would have cost more.
    pub gain_vs_greedy: CostMs,
}

/// What a window saw that looked ahead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AheadFacts {
    /// Drivers who will be free soon.
    pub soon_free: usize,
    /// Expected requests.
    pub phantoms: usize,
    /// Edges of the wider graph.
    pub edges: usize,
    /// Cost of the wider graph at its proven optimum, phantoms counted, requests left out that may
    /// not be planned any more.
    pub objective: CostMs,
    /// Who is planned onto which driver, the ETA counted from now; in the snapshot's order.
    pub plans: Vec<Assignment>,
}

/// The decision of a window. Each request of the snapshot stands in `assignments` or `unmatched`,
/// in the snapshot's order; each driver that could not be chosen stands in `excluded`, by id.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowDecision {
    /// The chosen pairs.
    pub assignments: Vec<Assignment>,
    /// Requests without a driver.
    pub unmatched: Vec<Unmatched>,
    /// Drivers that could not be chosen.
    pub excluded: Vec<Exclusion>,
    /// Drivers that could be chosen.
    pub drivers: usize,
    /// Candidate edges.
    pub edges: usize,
    /// Cost of the window: that of the pairs and of everyone left unmatched.
    pub objective: CostMs,
    /// The solver's account of the window alone; absent where a greedy rule decided.
    pub solve: Option<SolveFacts>,
    /// What became of each side constraint, by name.
    pub constraints: Vec<ConstraintFacts>,
    /// What was seen ahead; absent where the window was decided alone. The gains of `solve` are not
    /// those of such a decision, which gives some of them up for what comes next.
    pub ahead: Option<AheadFacts>,
}

impl WindowDecision {
    /// Sum of the pickup ETAs in seconds.
    pub fn total_eta_s(&self) -> f64 {
        self.assignments.iter().map(|a| a.eta_s).sum()
    }

    /// What the greedy rules would have cost more on the same candidates; absent where they decided
    /// themselves, and where the decision looked ahead.
    pub fn gains(&self) -> Option<&SolveFacts> {
        self.solve.as_ref().filter(|_| self.ahead.is_none())
    }

    /// Requests that looking ahead left waiting.
    pub fn planned(&self) -> impl Iterator<Item = &RequestId> {
        self.unmatched
            .iter()
            .filter(|left| left.reason == Reason::Planned)
            .map(|left| &left.request_id)
    }
}

/// A rule's choice for each request of the snapshot: a candidate, or why none.
pub(super) type Choice = Result<Candidate, Reason>;

/// Turns choices into a decision.
pub(super) fn account(
    snapshot: &WindowSnapshot,
    choices: &[Choice],
    unmatched_cost: impl Fn(usize) -> CostMs,
    excluded: &[(u32, Excluded)],
) -> WindowDecision {
    let drivers = snapshot.drivers();
    let mut decision = WindowDecision {
        assignments: Vec::new(),
        unmatched: Vec::new(),
        excluded: Vec::with_capacity(excluded.len()),
        drivers: drivers.len() - excluded.len(),
        edges: 0,
        objective: CostMs::default(),
        solve: None,
        constraints: Vec::new(),
        ahead: None,
    };
    let mut objective = 0;
    for (row, (pending, choice)) in snapshot.requests().iter().zip(choices).enumerate() {
        let request_id = pending.request.id.clone();
        match *choice {
            Ok(Candidate {
                driver,
                eta_s,
                cost,
            }) => {
                let driver_id = drivers[driver as usize].id.clone();
                objective += cost.get();
                decision.assignments.push(Assignment {
                    request_id,
                    driver_id,
                    eta_s,
                    cost_s: cost.as_seconds(),
                });
            }
            Err(reason) => {
                objective += unmatched_cost(row).get();
                decision.unmatched.push(Unmatched { request_id, reason });
            }
        }
    }
    for &(index, reason) in excluded {
        let driver_id = drivers[index as usize].id.clone();
        decision.excluded.push(Exclusion { driver_id, reason });
    }
    decision.objective = CostMs::new(objective);
    decision
}

/// Why a row of the table ended without a driver, `otherwise` if it had a pair worth taking.
pub(super) fn leftover_reason(table: &CandidateTable, row: usize, otherwise: Reason) -> Reason {
    match table.reason(row) {
        Some(reason) => reason.into(),
        None if table
            .row(row)
            .iter()
            .all(|c| c.cost >= table.unmatched_cost(row)) =>
        {
            Reason::NotWorthIt
        }
        None => otherwise,
    }
}
