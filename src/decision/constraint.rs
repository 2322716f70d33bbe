//! Side constraints of a window: named caps and floors on the pairs chosen of a set.
//!
//! A constraint counts chosen pairs whose driver is in `drivers` (if given) and whose request is in
//! `requests` (if given). Caps always hold. A floor that cannot be met is met as far as possible: the
//! pairs that all floors lack together are as few as can be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kheya_solver::{Constraint, ConstraintError, Constraints, MAX_CONSTRAINTS, MAX_NAME_BYTES};
use serde::{Deserialize, Serialize};

use super::{
    DriverSnapshot, PendingRequest, Reason, SnapshotError, WindowSnapshot, outcome::Choice,
};
use crate::{
    candidates::CandidateTable,
    domain::{CostMs, DriverId, RequestId},
};

/// Largest cap or floor.
pub const MAX_BOUND: u32 = 1_000_000;

/// A side constraint by ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideConstraint {
    /// Its name, 1 to 128 bytes without control characters.
    pub name: String,
    /// Drivers whose pairs count; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drivers: Option<Vec<DriverId>>,
    /// Requests whose pairs count; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Vec<RequestId>>,
    /// At most so many pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// At least so many pairs, as far as that can be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// Pairs that count and were claimed before this decision: another node began the window.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub standing: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl SideConstraint {
    /// Puts its ids in order, each once.
    pub fn sort(&mut self) {
        if let Some(ids) = &mut self.drivers {
            ids.sort();
            ids.dedup();
        }
        if let Some(ids) = &mut self.requests {
            ids.sort();
            ids.dedup();
        }
    }

    /// Whether it counts a pair; its ids stand in order.
    pub fn counts(&self, request: &RequestId, driver: &DriverId) -> bool {
        let in_requests = self
            .requests
            .as_ref()
            .map(|ids| ids.binary_search(request).is_ok());
        let in_drivers = self
            .drivers
            .as_ref()
            .map(|ids| ids.binary_search(driver).is_ok());
        in_requests.unwrap_or(true) && in_drivers.unwrap_or(true)
    }
}

impl WindowSnapshot {
    /// The same snapshot under side constraints, put in the order of their names.
    ///
    /// # Errors
    /// Everything wrong with them, and ids that the snapshot does not have, each with its path.
    pub fn with_constraints(
        mut self,
        mut constraints: Vec<SideConstraint>,
    ) -> Result<Self, Vec<SnapshotError>> {
        if constraints.is_empty() && self.constraints.is_empty() {
            return Ok(self);
        }
        let mut errors = check_constraints(&constraints);
        let requests: BTreeSet<&RequestId> =
            self.requests().iter().map(|r| &r.request.id).collect();
        let has_driver = |id: &DriverId| self.drivers().binary_search_by(|d| d.id.cmp(id)).is_ok();
        errors.extend(check_members(
            &constraints,
            |id| requests.contains(id),
            has_driver,
        ));
        if !errors.is_empty() {
            return Err(errors);
        }
        constraints.sort_by(|a, b| a.name.cmp(&b.name));
        constraints.iter_mut().for_each(SideConstraint::sort);
        self.in_indices =
            in_indices(&constraints, self.requests(), self.drivers()).map_err(|e| {
                vec![SnapshotError::Constraint {
                    path: "constraints".into(),
                    code: "out_of_range",
                    detail: e.to_string(),
                }]
            })?;
        self.constraints = constraints;
        Ok(self)
    }

    /// The side constraints, by name.
    pub fn constraints(&self) -> &[SideConstraint] {
        &self.constraints
    }

    /// The side constraints in the indices of [`requests`](Self::requests) and
    /// [`drivers`](Self::drivers), less what stands already; of size 0 × 0 when there are none.
    pub fn constraints_in_indices(&self) -> &Constraints {
        &self.in_indices
    }
}

/// What became of a constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstraintFacts {
    /// Its name.
    pub name: String,
    /// Chosen pairs that it counts, with those that stood before.
    pub count: u32,
    /// Its cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Its floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// Pairs that its floor lacks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shortfall: u32,
    /// What it adds to the cost of each pair that it counts: above 0 for a cap that binds, below 0
    /// for a floor that does. 0 where no solver decided.
    pub multiplier: CostMs,
}

impl ConstraintFacts {
    /// The facts of one constraint beside `counted` chosen pairs of the decision.
    fn of(constraint: &SideConstraint, counted: u32, multiplier: CostMs) -> Self {
        let count = constraint.standing.saturating_add(counted);
        Self {
            name: constraint.name.clone(),
            count,
            max: constraint.max,
            min: constraint.min,
            shortfall: constraint.min.unwrap_or(0).saturating_sub(count),
            multiplier,
        }
    }
}

/// The facts of a decision of which only some pairs were claimed.
pub fn claimed_constraints(
    snapshot: &WindowSnapshot,
    decided: &[ConstraintFacts],
    pairs: &[(&RequestId, &DriverId)],
) -> Vec<ConstraintFacts> {
    let facts = snapshot.constraints().iter().zip(decided);
    facts
        .map(|(constraint, decided)| {
            let counted = pairs.iter().filter(|(r, d)| constraint.counts(r, d));
            ConstraintFacts::of(constraint, counted.count() as u32, decided.multiplier)
        })
        .collect()
}

/// Everything wrong with the shape of constraints, each with its path.
pub fn check_constraints(constraints: &[SideConstraint]) -> Vec<SnapshotError> {
    let mut errors = Vec::new();
    let mut wrong = |path: String, code: &'static str, detail: String| {
        errors.push(SnapshotError::Constraint { path, code, detail });
    };
    if constraints.len() > MAX_CONSTRAINTS {
        let detail = format!(
            "{} constraints, at most {MAX_CONSTRAINTS}",
            constraints.len()
        );
        wrong("constraints".into(), "out_of_range", detail);
    }
    let mut names = BTreeSet::new();
    for (i, constraint) in constraints.iter().enumerate() {
        let name = &constraint.name;
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) || name.chars().any(char::is_control) {
            let detail = format!("must have 1 to {MAX_NAME_BYTES} bytes, none of them a control");
            wrong(format!("constraints[{i}].name"), "out_of_range", detail);
        } else if !names.insert(name) {
            let detail = format!("the constraint {name:?} appears twice");
            wrong(format!("constraints[{i}].name"), "duplicate", detail);
        }
        match (constraint.max, constraint.min) {
            (None, None) => {
                let detail = format!("{name:?} needs max or min");
                wrong(format!("constraints[{i}]"), "missing", detail);
            }
            (Some(max), Some(min)) if min > max => {
                let detail = format!("{name:?} asks for {min}, above its max {max}");
                wrong(format!("constraints[{i}].min"), "out_of_range", detail);
            }
            _ => {}
        }
        for (bound, given) in [("max", constraint.max), ("min", constraint.min)] {
            if given.is_some_and(|given| given > MAX_BOUND) {
                let detail = format!("must be within 0 and {MAX_BOUND}");
                wrong(format!("constraints[{i}].{bound}"), "out_of_range", detail);
            }
        }
    }
    errors
}

/// Members that a snapshot does not have, each with its path.
fn check_members(
    constraints: &[SideConstraint],
    has_request: impl Fn(&RequestId) -> bool,
    has_driver: impl Fn(&DriverId) -> bool,
) -> Vec<SnapshotError> {
    let mut errors = Vec::new();
    let mut unknown = |path: String, kind: &'static str, id: String| {
        errors.push(SnapshotError::UnknownId { path, kind, id });
    };
    for (i, constraint) in constraints.iter().enumerate() {
        for (place, id) in constraint.drivers.iter().flatten().enumerate() {
            if !has_driver(id) {
                unknown(
                    format!("constraints[{i}].drivers[{place}]"),
                    "driver",
                    id.to_string(),
                );
            }
        }
        for (place, id) in constraint.requests.iter().flatten().enumerate() {
            if !has_request(id) {
                unknown(
                    format!("constraints[{i}].requests[{place}]"),
                    "request",
                    id.to_string(),
                );
            }
        }
    }
    errors
}

/// Checked constraints in the indices of a snapshot's requests and drivers (which stand by id), less
/// the pairs that stand already.
fn in_indices(
    given: &[SideConstraint],
    requests: &[PendingRequest],
    drivers: &[Arc<DriverSnapshot>],
) -> Result<Constraints, ConstraintError> {
    let rows = requests.iter().map(|pending| &pending.request.id).zip(0..);
    let rows: BTreeMap<&RequestId, u32> = rows.collect();
    let column = |id: &DriverId| drivers.binary_search_by(|d| d.id.cmp(id)).ok();
    let constraint = |side: &SideConstraint| Constraint {
        name: side.name.clone(),
        drivers: side.drivers.as_ref().map(|ids| {
            let columns = ids.iter().filter_map(column);
            columns.map(|column| column as u32).collect()
        }),
        requests: side.requests.as_ref().map(|ids| {
            let rows = ids.iter().filter_map(|id| rows.get(id).copied());
            rows.collect()
        }),
        max: side.max,
        min: side.min,
    };
    let whole = given.iter().map(constraint).collect();
    let whole = Constraints::new(requests.len(), drivers.len(), whole)?;
    let standing: Vec<u32> = given.iter().map(|side| side.standing).collect();
    Ok(whole.beside(&standing))
}

/// Pairs chosen so far, and whether caps leave room for one more.
pub(super) struct Room<'c> {
    constraints: &'c Constraints,
    counts: Vec<u32>,
}

impl<'c> Room<'c> {
    pub(super) fn new(constraints: &'c Constraints) -> Self {
        Self {
            constraints,
            counts: vec![0; constraints.len()],
        }
    }

    /// The room that choices leave.
    pub(super) fn beside(constraints: &'c Constraints, choices: &[Choice]) -> Self {
        let mut room = Self::new(constraints);
        for (row, choice) in choices.iter().enumerate() {
            if let Ok(candidate) = choice {
                room.take(row, candidate.driver);
            }
        }
        room
    }

    /// What caps still allow and floors still ask for.
    pub(super) fn left(&self) -> Constraints {
        self.constraints.beside(&self.counts)
    }

    pub(super) fn admits(&self, row: usize, driver: u32) -> bool {
        self.constraints.admits(row, driver, &self.counts)
    }

    pub(super) fn take(&mut self, row: usize, driver: u32) {
        for index in self.constraints.counting(row, driver) {
            self.counts[index] += 1;
        }
    }

    /// The facts of each constraint, with multipliers where a solver gave them.
    pub(super) fn facts(
        &self,
        snapshot: &WindowSnapshot,
        multipliers: &[i64],
    ) -> Vec<ConstraintFacts> {
        let each = snapshot.constraints().iter().zip(&self.counts).enumerate();
        each.map(|(index, (constraint, &count))| {
            let multiplier = multipliers.get(index).copied().unwrap_or(0);
            ConstraintFacts::of(constraint, count, CostMs::new(multiplier))
        })
        .collect()
    }
}

/// Gives requests that a full cap keeps from a free driver the reason [`Reason::Constraint`], where
/// they would be told to be outbid or over budget. `is_gone` tells drivers that are not free though
/// nobody chose them.
pub(super) fn tell_caps(
    snapshot: &WindowSnapshot,
    choices: &mut [Choice],
    table: &CandidateTable,
    is_gone: impl Fn(u32) -> bool,
) {
    let driver_of = |choice: &Choice| choice.as_ref().ok().map(|candidate| candidate.driver);
    let driver_of: Vec<Option<u32>> = choices.iter().map(driver_of).collect();
    let apart = kept_apart(snapshot, table, &driver_of, is_gone);
    for (choice, apart) in choices.iter_mut().zip(apart) {
        if apart && matches!(choice, Err(Reason::Outbid | Reason::Budget)) {
            *choice = Err(Reason::Constraint);
        }
    }
}

/// For each request whether a driver worth taking is free, and a full cap forbids the pair.
pub fn kept_apart(
    snapshot: &WindowSnapshot,
    table: &CandidateTable,
    driver_of: &[Option<u32>],
    is_gone: impl Fn(u32) -> bool,
) -> Vec<bool> {
    let constraints = snapshot.constraints_in_indices();
    if constraints.is_empty() {
        return vec![false; table.rows()];
    }
    let counts = constraints.count(driver_of);
    let taken: BTreeSet<u32> = driver_of.iter().copied().flatten().collect();
    let apart = |row: usize| {
        let limit = table.unmatched_cost(row);
        let mut worth = table.row(row).iter().filter(|c| c.cost < limit);
        let is_free = |driver: u32| !taken.contains(&driver) && !is_gone(driver);
        worth.any(|c| is_free(c.driver) && !constraints.admits(row, c.driver, &counts))
    };
    (0..table.rows()).map(apart).collect()
}
