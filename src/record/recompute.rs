//! One recorded window decided again and compared.

use std::{collections::BTreeSet, fmt::Debug};

use kheya_solver::{Method, Options, Status};

use super::{
    entry::RecordedWindow,
    validity::{check_cut, check_greedy_repair, check_repair},
};
use crate::{
    decision::{
        Batch, DecisionError, Reason, SolveFacts, WindowDecision, decide_alone, decide_batch,
        decide_oldest_first, repair,
    },
    domain::RequestId,
    eta::StraightLine,
};

/// What deciding again showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same bit for bit.
    Identical,
    /// Valid, where the same bits cannot be asked for.
    Valid,
    /// The first difference, in words.
    Different(String),
}

impl From<Result<(), String>> for Verdict {
    fn from(checked: Result<(), String>) -> Self {
        checked.map_or_else(Self::Different, |()| Self::Valid)
    }
}

/// Decides a window again: the verdict on its decision, and on its repair if there was one.
pub(super) fn recompute(window: &RecordedWindow) -> (Verdict, Option<Verdict>) {
    match &window.decision.solve {
        Some(facts) => solved(window, facts),
        None => greedy(window),
    }
}

fn greedy(window: &RecordedWindow) -> (Verdict, Option<Verdict>) {
    let eta = StraightLine::of(window.snapshot.config());
    let again = decide_oldest_first(&window.snapshot, &eta);
    let decision = compare(&window.decision, &again);
    let repaired = window.repaired.as_ref();
    let repair = repaired.map(|repaired| check_greedy_repair(window, repaired, eta).into());
    (decision, repair)
}

fn solved(window: &RecordedWindow, facts: &SolveFacts) -> (Verdict, Option<Verdict>) {
    let batch = match decide(window, facts) {
        Ok(batch) => batch,
        Err(error) => {
            let failed = || Verdict::Different(format!("it cannot be decided again: {error}"));
            return (failed(), window.repaired.as_ref().map(|_| failed()));
        }
    };
    // the exact optimum, whatever was recorded: a cut decision is measured by it
    let decision = if facts.status == Status::Feasible {
        check_cut(window, facts, &batch).into()
    } else {
        compare(&window.decision, &batch.decision)
    };
    let repaired = window.repaired.as_ref();
    let repair = repaired.map(|repaired| repair_again(window, facts, &batch, repaired));
    (decision, repair)
}

/// Decides by the method that was recorded; a cut decision by the exact one.
fn decide(window: &RecordedWindow, facts: &SolveFacts) -> Result<Batch, DecisionError> {
    let method = if facts.status == Status::Feasible {
        Method::Auto
    } else {
        facts.method
    };
    let options = Options {
        method,
        ..Options::default()
    };
    let eta = StraightLine::of(window.snapshot.config());
    // a window that was to look ahead and had no time left stood as it was decided alone
    if window.decision.ahead.is_some() {
        decide_batch(&window.snapshot, &eta, &options, |_| ())
    } else {
        decide_alone(&window.snapshot, &eta, &options, |_| ())
    }
}

fn repair_again(
    window: &RecordedWindow,
    facts: &SolveFacts,
    batch: &Batch,
    repaired: &WindowDecision,
) -> Verdict {
    // pairs of the repair that were lost as well are no part of what it was made for
    let decided: BTreeSet<&RequestId> = window
        .decision
        .assignments
        .iter()
        .map(|pair| &pair.request_id)
        .collect();
    let lost: BTreeSet<RequestId> = window
        .claim_lost
        .iter()
        .filter(|id| decided.contains(id))
        .cloned()
        .collect();
    let account = repaired.solve.as_ref();
    let mut unmatched = repaired.unmatched.iter();
    let cut = account.is_some_and(|facts| facts.status == Status::Feasible)
        || unmatched.any(|left| left.reason == Reason::Budget);
    if facts.status == Status::Feasible || cut {
        return check_repair(window, &lost, batch, repaired).into();
    }
    let options = Options {
        method: facts.method,
        ..Options::default()
    };
    match repair(&window.snapshot, batch, &lost, &options) {
        Ok(again) => compare(repaired, &again.decision),
        Err(error) => Verdict::Different(format!("it cannot be repaired again: {error}")),
    }
}

/// The first difference between what was recorded and what was decided again.
fn compare(recorded: &WindowDecision, again: &WindowDecision) -> Verdict {
    match difference(recorded, again) {
        Ok(()) => Verdict::Identical,
        Err(detail) => Verdict::Different(detail),
    }
}

fn difference(recorded: &WindowDecision, again: &WindowDecision) -> Result<(), String> {
    let facts = |decision: &WindowDecision| decision.solve.as_ref().map(|f| (f.status, f.method));
    same("status and method", &facts(recorded), &facts(again))?;
    let pairs = recorded.assignments.iter().zip(&again.assignments);
    for (was, is) in pairs {
        let id = &was.request_id;
        if (id, &was.driver_id) != (&is.request_id, &is.driver_id) {
            let other = if recorded.objective == again.objective {
                " (another choice of the same cost: was it made by another version, or with a budget?)"
            } else {
                ""
            };
            return Err(format!(
                "recorded {id} ← {}, decided {} ← {}{other}",
                was.driver_id, is.request_id, is.driver_id
            ));
        }
        same_bits(&format!("eta_s of {id}"), was.eta_s, is.eta_s)?;
        same_bits(&format!("cost_s of {id}"), was.cost_s, is.cost_s)?;
    }
    same(
        "number of assignments",
        &recorded.assignments.len(),
        &again.assignments.len(),
    )?;
    for (was, is) in recorded.unmatched.iter().zip(&again.unmatched) {
        same("an unmatched request", was, is)?;
    }
    same(
        "number of unmatched",
        &recorded.unmatched.len(),
        &again.unmatched.len(),
    )?;
    for (was, is) in recorded.excluded.iter().zip(&again.excluded) {
        same("an excluded driver", was, is)?;
    }
    same(
        "number of excluded",
        &recorded.excluded.len(),
        &again.excluded.len(),
    )?;
    same("number of drivers", &recorded.drivers, &again.drivers)?;
    same("number of edges", &recorded.edges, &again.edges)?;
    same("objective", &recorded.objective, &again.objective)?;
    same("constraints", &recorded.constraints, &again.constraints)?;
    same("what was seen ahead", &recorded.ahead, &again.ahead)?;
    let (Some(was), Some(is)) = (&recorded.solve, &again.solve) else {
        return Ok(());
    };
    same_bits("gap", was.gap, is.gap)?;
    same("the solver's account", was, is)
}

fn same<T: PartialEq + Debug>(what: &str, recorded: &T, again: &T) -> Result<(), String> {
    if recorded == again {
        return Ok(());
    }
    Err(format!("{what}: recorded {recorded:?}, decided {again:?}"))
}

/// Compares two numbers bit by bit, and shows the bits, since the digits may be the same.
fn same_bits(what: &str, recorded: f64, again: f64) -> Result<(), String> {
    if recorded.to_bits() == again.to_bits() {
        return Ok(());
    }
    Err(format!(
        "{what}: recorded {recorded:?} (bits {:#x}), decided {again:?} (bits {:#x})",
        recorded.to_bits(),
        again.to_bits()
    ))
}
