//! Whether a decision that cannot be decided the same again is at least a right one.
//!
//! Checked of a window that a budget cut: every request stands in it once; every pair is a candidate
//! with the recorded bits of ETA and cost, and worth taking; no driver has two; the objective is the
//! sum it claims to be, not below the true optimum; the lower bound is not above that optimum; gap
//! and gains follow from them; every reason is the first that applies. Of a repair: that it keeps
//! what was not lost, that nobody gets a driver that was, and the same of its pairs and reasons.

use std::collections::{BTreeMap, BTreeSet};

use kheya_solver::Status;

use super::entry::RecordedWindow;
use crate::{
    candidates::{CandidateTable, availability, pair_cost, unmatched_cost},
    decision::{
        Assignment, Batch, Reason, SolveFacts, WindowDecision, claimed_constraints, kept_apart,
    },
    domain::{CostMs, DriverId, RequestId},
    eta::{EtaModel, EtaPair, StraightLine},
};

/// What a decision says of one request.
enum Row<'a> {
    /// It gets the driver at this place of the snapshot.
    Pair(&'a Assignment, u32),
    /// It gets none.
    Left(Reason),
}

/// Checks a window that was cut by its budget against its exact solution.
pub(super) fn check_cut(
    window: &RecordedWindow,
    facts: &SolveFacts,
    exact: &Batch,
) -> Result<(), String> {
    let decision = &window.decision;
    let rows = rows(window, decision)?;
    check_pairs(window, &rows, &exact.table)?;
    check_constraints(window, decision)?;
    let free = BTreeMap::new();
    check_reasons(
        window,
        &rows,
        &exact.table,
        &free,
        |_| Reason::Budget,
        |_| false,
    )?;
    check_sums(&rows, &exact.table, decision, &exact.decision)?;
    let optimum = &exact.decision;
    let Some(best) = &optimum.solve else {
        return Err("the exact solution is not there".into());
    };
    // only a search under side constraints may come to an end of its own
    let exhausted = best.status != Status::Feasible;
    if !exhausted && optimum.constraints.is_empty() {
        return Err("the exact solution is not proven".into());
    }
    let least = if exhausted {
        optimum.objective
    } else {
        best.dual_bound
    };
    let (objective, bound) = (decision.objective.get(), facts.dual_bound.get());
    // what floors lack more may cost less
    let comparable = lacking(decision) == lacking(optimum);
    if exhausted && lacking(decision) < lacking(optimum) {
        return Err("its floors lack less than can be".into());
    }
    if comparable && objective < least.get() {
        return Err(format!(
            "objective {objective} is below the optimum {least}"
        ));
    }
    if comparable && bound > optimum.objective.get() {
        return Err(format!(
            "the lower bound {bound} is above the optimum {}",
            optimum.objective
        ));
    }
    expect(
        "gap_abs",
        facts.gap_abs.get(),
        objective.saturating_sub(bound),
    )?;
    let solved = objective - outside(window, &exact.table);
    let gap = (i128::from(objective) - i128::from(bound)) as f64;
    let gap = gap / solved.unsigned_abs().max(1) as f64;
    expect("the bits of the gap", facts.gap.to_bits(), gap.to_bits())?;
    let worse = objective - optimum.objective.get();
    let gain = |exact: CostMs| exact.get() - worse;
    let (edge, oldest) = (gain(best.gain_vs_greedy_edge), gain(best.gain_vs_greedy));
    expect("gain_vs_greedy_edge", facts.gain_vs_greedy_edge.get(), edge)?;
    expect("gain_vs_greedy", facts.gain_vs_greedy.get(), oldest)?;
    expect("components", facts.components, best.components)?;
    expect(
        "largest_component",
        facts.largest_component,
        best.largest_component,
    )
}

/// Checks a repair that was cut by its budget, or that follows a decision that was.
pub(super) fn check_repair(
    window: &RecordedWindow,
    lost: &BTreeSet<RequestId>,
    batch: &Batch,
    repaired: &WindowDecision,
) -> Result<(), String> {
    let rows = rows(window, repaired)?;
    check_pairs(window, &rows, &batch.table)?;
    check_constraints(window, repaired)?;
    check_kept(window, lost, &rows)?;
    let cut = |row: &RequestId| {
        if lost.contains(row) {
            Reason::ClaimLost
        } else {
            Reason::Budget
        }
    };
    let decided = window.decision.assignments.iter();
    let gone: BTreeSet<&DriverId> = decided.map(|pair| &pair.driver_id).collect();
    let is_gone = |driver: u32| {
        let driver = window.snapshot.drivers().get(driver as usize);
        driver.is_some_and(|driver| gone.contains(&driver.id))
    };
    // what looking ahead left waiting waits on
    let before = window.decision.unmatched.iter();
    let held: BTreeMap<&RequestId, Reason> = before
        .filter(|left| window.decision.ahead.is_some() && !lost.contains(&left.request_id))
        .map(|left| (&left.request_id, left.reason))
        .collect();
    check_reasons(window, &rows, &batch.table, &held, cut, is_gone)?;
    check_sums(&rows, &batch.table, repaired, &batch.decision)?;
    if is_as_good_or_worse(repaired.solve.as_ref(), window.decision.solve.as_ref()) {
        Ok(())
    } else {
        Err("the solver's account is not that of the decision".into())
    }
}

/// Whether the account of a repair is that of the decision, but for a status, proof and gap that the
/// second solve made worse.
fn is_as_good_or_worse(repaired: Option<&SolveFacts>, decided: Option<&SolveFacts>) -> bool {
    let (Some(is), Some(was)) = (repaired, decided) else {
        return repaired.is_none() && decided.is_none();
    };
    let same_but_for_the_second = SolveFacts {
        status: was.status,
        proof: was.proof,
        gap: was.gap,
        gap_abs: was.gap_abs,
        ..is.clone()
    } == *was;
    let status = is == was || is.status == Status::Feasible;
    same_but_for_the_second && status && is.gap >= was.gap && is.gap_abs >= was.gap_abs
}

/// Checks what became of a greedy decision after claims were lost: its candidates were searched
/// again, so pairs are priced here one by one.
pub(super) fn check_greedy_repair(
    window: &RecordedWindow,
    repaired: &WindowDecision,
    eta: StraightLine,
) -> Result<(), String> {
    let snapshot = &window.snapshot;
    let config = snapshot.config();
    let rows = rows(window, repaired)?;
    let lost: BTreeSet<RequestId> = window.claim_lost.iter().cloned().collect();
    check_kept(window, &lost, &rows)?;
    let mut sum = 0;
    for (pending, row) in snapshot.requests().iter().zip(&rows) {
        let request = &pending.request;
        let (pair, place) = match row {
            Row::Left(_) => {
                sum += unmatched_cost(config, request, snapshot.age(request)).get();
                continue;
            }
            Row::Pair(pair, place) => (pair, *place),
        };
        let name = || format!("{} ← {}", pair.request_id, pair.driver_id);
        let Some(driver) = snapshot.drivers().get(place as usize) else {
            return Err(format!("{}: no such driver", name()));
        };
        if let Err(excluded) = availability(driver, config, snapshot.now()) {
            return Err(format!("{}: the driver is {excluded:?}", name()));
        }
        if let Some(eta_s) = eta_of(window, pair, place, eta) {
            expect(
                &format!("{}: bits of eta_s", name()),
                pair.eta_s.to_bits(),
                eta_s.to_bits(),
            )?;
        } else {
            return Err(format!("{}: there is no way", name()));
        }
        let limit = request.max_pickup_eta_s.unwrap_or(config.max_pickup_eta_s);
        if snapshot.edges().is_none() && pair.eta_s > limit {
            return Err(format!("{}: over the longest pickup", name()));
        }
        let cost = pair_cost(config, driver, pair.eta_s, snapshot.now());
        let said = pair.cost_s.to_bits();
        expect(
            &format!("{}: bits of cost_s", name()),
            said,
            cost.as_seconds().to_bits(),
        )?;
        sum += cost.get();
    }
    expect("objective", repaired.objective.get(), sum)
}

/// The ETA of a pair: the caller's own, or that of the model.
fn eta_of(
    window: &RecordedWindow,
    pair: &Assignment,
    place: u32,
    eta: StraightLine,
) -> Option<f64> {
    let snapshot = &window.snapshot;
    if let Some(edges) = snapshot.edges() {
        let same = |e: &&_| same_pair(e, pair);
        return edges.iter().find(same).map(|edge| edge.eta_s);
    }
    let row = snapshot
        .requests()
        .iter()
        .find(|p| p.request.id == pair.request_id)?;
    let pickup = row.request.pickup?;
    let driver = snapshot.drivers().get(place as usize)?.position?;
    let asked = EtaPair {
        request: 0,
        driver: 0,
        haversine: pickup.sphere().haversine(driver.sphere()),
    };
    eta.etas_s(&[pickup], &[driver], &[asked])
        .first()
        .copied()?
}

fn same_pair(edge: &crate::decision::SnapshotEdge, pair: &Assignment) -> bool {
    (&edge.request_id, &edge.driver_id) == (&pair.request_id, &pair.driver_id)
}

/// A decision request by request: each of the snapshot once, each driver at most once.
fn rows<'a>(
    window: &'a RecordedWindow,
    decision: &'a WindowDecision,
) -> Result<Vec<Row<'a>>, String> {
    let drivers = window.snapshot.drivers();
    let mut taken = BTreeSet::new();
    let (mut pairs, mut left) = (
        decision.assignments.iter().peekable(),
        decision.unmatched.iter().peekable(),
    );
    let mut rows = Vec::with_capacity(window.snapshot.requests().len());
    for pending in window.snapshot.requests() {
        let id = &pending.request.id;
        let row = if let Some(pair) = pairs.next_if(|pair| pair.request_id == *id) {
            let place = drivers.binary_search_by(|driver| driver.id.cmp(&pair.driver_id));
            let place =
                place.map_err(|_| format!("{id} gets {}, who is not there", pair.driver_id))?;
            if !taken.insert(place) {
                return Err(format!("{} is given to two requests", pair.driver_id));
            }
            Row::Pair(pair, place as u32)
        } else if let Some(unmatched) = left.next_if(|unmatched| unmatched.request_id == *id) {
            Row::Left(unmatched.reason)
        } else {
            return Err(format!("nothing is said of {id} at its place"));
        };
        rows.push(row);
    }
    if let Some(pair) = pairs.next() {
        return Err(format!(
            "{} is assigned, but not in the window",
            pair.request_id
        ));
    }
    if let Some(unmatched) = left.next() {
        return Err(format!(
            "{} is unmatched, but not in the window",
            unmatched.request_id
        ));
    }
    Ok(rows)
}

/// Pairs that all floors lack.
fn lacking(decision: &WindowDecision) -> u32 {
    decision.constraints.iter().map(|c| c.shortfall).sum()
}

/// Caps hold, and counts are those of the pairs.
fn check_constraints(window: &RecordedWindow, decision: &WindowDecision) -> Result<(), String> {
    let pairs = decision.assignments.iter();
    let pairs: Vec<_> = pairs
        .map(|pair| (&pair.request_id, &pair.driver_id))
        .collect();
    let right = claimed_constraints(&window.snapshot, &decision.constraints, &pairs);
    expect(
        "number of constraints",
        decision.constraints.len(),
        window.snapshot.constraints().len(),
    )?;
    for (said, right) in decision.constraints.iter().zip(&right) {
        if said != right {
            return Err(format!("recorded {said:?}, right is {right:?}"));
        }
        if right.max.is_some_and(|max| right.count > max) {
            return Err(format!("the cap {:?} is broken", right.name));
        }
    }
    Ok(())
}

/// Whether a floor may ask for a pair whatever it costs.
fn asked_for(window: &RecordedWindow, row: usize, driver: u32) -> bool {
    let constraints = window.snapshot.constraints_in_indices();
    let mut counting = constraints.counting(row, driver);
    counting.any(|index| constraints.min(index).is_some())
}

fn check_pairs(
    window: &RecordedWindow,
    rows: &[Row<'_>],
    table: &CandidateTable,
) -> Result<(), String> {
    for (row, said) in rows.iter().enumerate() {
        let Row::Pair(pair, driver) = said else {
            continue;
        };
        let name = format!("{} ← {}", pair.request_id, pair.driver_id);
        let Some(candidate) = table.find(row, *driver) else {
            return Err(format!("{name} is no candidate"));
        };
        let (eta, cost) = (
            candidate.eta_s.to_bits(),
            candidate.cost.as_seconds().to_bits(),
        );
        expect(&format!("{name}: bits of eta_s"), pair.eta_s.to_bits(), eta)?;
        expect(
            &format!("{name}: bits of cost_s"),
            pair.cost_s.to_bits(),
            cost,
        )?;
        let worth = candidate.cost < table.unmatched_cost(row);
        if !worth && !asked_for(window, row, *driver) {
            return Err(format!(
                "{name} costs no less than leaving the request over"
            ));
        }
    }
    Ok(())
}

/// Every reason is the first that applies; `otherwise` where there was a pair worth taking and no
/// full cap keeps it from a free driver. Those of `held` are as they were.
fn check_reasons(
    window: &RecordedWindow,
    rows: &[Row<'_>],
    table: &CandidateTable,
    held: &BTreeMap<&RequestId, Reason>,
    otherwise: impl Fn(&RequestId) -> Reason,
    is_gone: impl Fn(u32) -> bool,
) -> Result<(), String> {
    let driver_of = |said: &Row<'_>| match said {
        Row::Pair(_, driver) => Some(*driver),
        Row::Left(_) => None,
    };
    let driver_of: Vec<Option<u32>> = rows.iter().map(driver_of).collect();
    let apart = kept_apart(&window.snapshot, table, &driver_of, is_gone);
    for (row, (pending, said)) in window.snapshot.requests().iter().zip(rows).enumerate() {
        let id = &pending.request.id;
        let Row::Left(reason) = said else { continue };
        let worth = table
            .row(row)
            .iter()
            .any(|c| c.cost < table.unmatched_cost(row));
        let expected = match table.reason(row) {
            _ if held.contains_key(id) => held[id],
            Some(reason) => reason.into(),
            None if worth => match otherwise(id) {
                Reason::Budget if apart[row] => Reason::Constraint,
                otherwise => otherwise,
            },
            None => Reason::NotWorthIt,
        };
        // a repair that was settled after all says so
        let settled = expected == Reason::Budget && *reason == Reason::Outbid;
        if *reason != expected && !settled {
            return Err(format!("{id}: recorded {reason:?}, {expected:?} applies"));
        }
    }
    Ok(())
}

fn check_sums(
    rows: &[Row<'_>],
    table: &CandidateTable,
    decision: &WindowDecision,
    exact: &WindowDecision,
) -> Result<(), String> {
    let cost = |(row, said): (usize, &Row<'_>)| match said {
        Row::Pair(_, driver) => table.find(row, *driver).map_or(0, |c| c.cost.get()),
        Row::Left(_) => table.unmatched_cost(row).get(),
    };
    let sum: i64 = rows.iter().enumerate().map(cost).sum();
    expect("objective", decision.objective.get(), sum)?;
    expect("number of edges", decision.edges, exact.edges)?;
    expect("number of drivers", decision.drivers, exact.drivers)?;
    if decision.excluded != exact.excluded {
        return Err("other drivers are excluded".into());
    }
    Ok(())
}

/// What was not lost stays; the drivers that were lost are gone.
fn check_kept(
    window: &RecordedWindow,
    lost: &BTreeSet<RequestId>,
    rows: &[Row<'_>],
) -> Result<(), String> {
    let mut gone: BTreeSet<&DriverId> = BTreeSet::new();
    let mut kept: Vec<&Assignment> = Vec::new();
    for pair in &window.decision.assignments {
        if lost.contains(&pair.request_id) {
            gone.insert(&pair.driver_id);
        } else {
            kept.push(pair);
        }
    }
    let mut kept = kept.into_iter().peekable();
    for said in rows {
        let Row::Pair(pair, _) = said else { continue };
        if gone.contains(&pair.driver_id) {
            return Err(format!("{} was lost, and is given again", pair.driver_id));
        }
        let _ = kept.next_if(|kept| kept == pair);
    }
    match kept.next() {
        None => Ok(()),
        Some(pair) => Err(format!(
            "{} ← {} was not lost, and is not kept",
            pair.request_id, pair.driver_id
        )),
    }
}

/// Cost of the requests without a pair worth taking or asked for: the solver does not see them.
fn outside(window: &RecordedWindow, table: &CandidateTable) -> i64 {
    let limit = |row: usize| table.unmatched_cost(row);
    let is_seen = |row: usize| {
        let mut row_of = table.row(row).iter();
        row_of.any(|c| c.cost < limit(row) || asked_for(window, row, c.driver))
    };
    (0..table.rows())
        .filter(|&row| !is_seen(row))
        .map(|row| limit(row).get())
        .sum()
}

fn expect<T: PartialEq + std::fmt::Display + Copy>(
    what: &str,
    said: T,
    right: T,
) -> Result<(), String> {
    if said == right {
        return Ok(());
    }
    Err(format!("{what}: recorded {said}, right is {right}"))
}
