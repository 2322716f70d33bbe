//! Repair: what a window lost at the claim is solved once more on what is left.

use std::collections::BTreeSet;

use kheya_solver::{Options, Proof, Solution, Status};

use super::{
    Assignment, Batch, DecisionError, Reason, SolveFacts, WindowDecision, WindowSnapshot,
    batch::WindowGraph,
    constraint::{Room, tell_caps},
    outcome::{Choice, account, leftover_reason},
};
use crate::domain::{CostMs, RequestId};

/// A decision after its repair.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// The whole window: kept pairs, new pairs, and a reason for everyone else.
    pub decision: WindowDecision,
    /// The new pairs, still to be claimed.
    pub added: Vec<Assignment>,
}

/// Solves once more for the requests whose claim was lost and those that had been outbid, with the
/// drivers that are still free; where the window looked ahead, for the former alone. Kept pairs stay
/// as they are, and count in side constraints; the drivers of lost pairs are gone.
///
/// # Errors
/// As [`super::decide_batch`].
pub fn repair(
    snapshot: &WindowSnapshot,
    batch: &Batch,
    lost: &BTreeSet<RequestId>,
    options: &Options<'_>,
) -> Result<Repaired, DecisionError> {
    let Batch {
        decision,
        table,
        excluded,
        ..
    } = batch;
    let drivers = snapshot.drivers();
    let mut gone = vec![false; drivers.len()];
    let mut kept = vec![None; table.rows()];
    let mut assigned = decision.assignments.iter().peekable();
    for (row, pending) in snapshot.requests().iter().enumerate() {
        // assignments stand in the snapshot's order of requests
        let Some(pair) = assigned.next_if(|pair| pair.request_id == pending.request.id) else {
            continue;
        };
        let Ok(driver) = drivers.binary_search_by(|d| d.id.cmp(&pair.driver_id)) else {
            continue;
        };
        gone[driver] = true;
        if !lost.contains(&pair.request_id) {
            kept[row] = table.find(row, driver as u32).copied();
        }
    }
    let constraints = snapshot.constraints_in_indices();
    let choices: Vec<Choice> = kept.iter().map(|kept| kept.ok_or(Reason::Outbid)).collect();
    let won = Room::beside(constraints, &choices);
    // what a window that looked ahead left waiting, it left on purpose
    let held = |row: usize| {
        decision.ahead.is_some() && !lost.contains(&snapshot.requests()[row].request.id)
    };
    let graph = WindowGraph::new(
        snapshot,
        table,
        &won.left(),
        |row| kept[row].is_none() && !held(row),
        |driver| !gone[driver as usize],
    )?;
    let solution = graph.solve(options)?;
    graph.verify(&solution)?;

    let mut choices: Vec<Choice> = Vec::with_capacity(table.rows());
    let mut unmatched = decision.unmatched.iter().peekable();
    for (row, pending) in snapshot.requests().iter().enumerate() {
        let before = unmatched.next_if(|left| left.request_id == pending.request.id);
        if let Some(left) = before.filter(|_| held(row)) {
            choices.push(Err(left.reason));
            continue;
        }
        let left = if lost.contains(&pending.request.id) {
            Reason::ClaimLost
        } else if solution.status == Status::Feasible {
            Reason::Budget
        } else {
            Reason::Outbid
        };
        choices.push(kept[row].ok_or_else(|| leftover_reason(table, row, left)));
    }
    let mut added_rows = BTreeSet::new();
    for (row, driver) in graph.pairs(&solution) {
        if let Some(candidate) = table.find(row, driver) {
            choices[row] = Ok(*candidate);
            added_rows.insert(&snapshot.requests()[row].request.id);
        }
    }
    let room = Room::beside(constraints, &choices);
    tell_caps(snapshot, &mut choices, table, |driver| {
        gone[driver as usize]
    });
    let mut repaired = account(
        snapshot,
        &choices,
        |row| table.unmatched_cost(row),
        excluded,
    );
    repaired.edges = decision.edges;
    // multipliers are those of the first solve, as the gains are
    let multipliers: Vec<i64> = decision
        .constraints
        .iter()
        .map(|c| c.multiplier.get())
        .collect();
    repaired.constraints = room.facts(snapshot, &multipliers);
    repaired.ahead.clone_from(&decision.ahead);
    repaired.solve = decision.solve.clone().map(|facts| worse(facts, &solution));
    let added = repaired
        .assignments
        .iter()
        .filter(|pair| added_rows.contains(&pair.request_id))
        .cloned()
        .collect();
    Ok(Repaired {
        decision: repaired,
        added,
    })
}

/// A window is as good as the worse of its two solves; the gains stay those of the first.
fn worse(mut facts: SolveFacts, second: &Solution) -> SolveFacts {
    let cut = second.status == Status::Feasible;
    if cut {
        (facts.status, facts.proof) = (Status::Feasible, Proof::Prices);
    } else if second.proof == Proof::BranchAndBound && facts.status != Status::Feasible {
        facts.proof = Proof::BranchAndBound;
    }
    if cut || second.proof == Proof::BranchAndBound {
        facts.gap = facts.gap.max(second.gap());
        facts.gap_abs = facts.gap_abs.max(CostMs::new(second.gap_abs()));
    }
    facts
}
