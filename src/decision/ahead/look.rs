//! The window solved once more on the wider graph.

use kheya_solver::{Graph, Method, Options, Solution, Status};

use super::super::{
    AheadFacts, Assignment, Batch, DecisionError, Phase, Reason, WarmStart, WindowSnapshot,
    outcome::{Choice, account, leftover_reason},
};
use crate::{
    candidates::{AheadCandidates, CandidateTable, ahead_candidates},
    domain::CostMs,
    eta::EtaModel,
};

/// Decides a window with what comes next in view. `alone` is the window's own decision: the
/// incumbent, which stands when the budget ends first, and what requests that may not be planned
/// any more get in any case.
///
/// # Errors
/// As [`super::super::decide_batch`].
pub(in crate::decision) fn look_ahead(
    snapshot: &WindowSnapshot,
    eta: &dyn EtaModel,
    options: &Options<'_>,
    alone: Batch,
    ended: &mut impl FnMut(Phase),
) -> Result<Batch, DecisionError> {
    let own = own_choices(snapshot, &alone);
    let settled: Vec<bool> = (0..own.len()).map(|row| !may_plan(snapshot, row)).collect();
    let ended = std::cell::RefCell::new(ended);
    let ahead = ahead_candidates(
        snapshot,
        eta,
        |row| !settled[row] && alone.table.reason(row).is_none_or(may_still_be_planned),
        || (*ended.borrow_mut())(Phase::Search),
        || (*ended.borrow_mut())(Phase::Eta),
    );
    let ended = ended.into_inner();
    let wider = WiderGraph::new(snapshot, &alone.table, &ahead, &own, &settled)?;
    ended(Phase::Build);
    let prices = snapshot.warm_prices(&wider.drivers);
    let options = Options {
        method: Method::Auto,
        budget: options.budget.clone(),
        warm_start: prices.as_deref(),
        ..Options::default()
    };
    let solution = kheya_solver::solve(&wider.graph, &options)?;
    ended(Phase::Solve);
    if solution.status == Status::Feasible {
        return Ok(alone);
    }
    solution.verify(&wider.graph)?;
    ended(Phase::Verify);

    let Batch {
        decision: before,
        table,
        excluded,
        graph,
        solution: of_window_alone,
        wider_prices: _,
    } = alone;
    let (choices, plans) = wider.choices(snapshot, &table, &ahead, &solution, own);
    let unmatched = |row: usize| table.unmatched_cost(row);
    let mut decision = account(snapshot, &choices, unmatched, &excluded);
    decision.edges = before.edges;
    decision.solve = before.solve;
    decision.ahead = Some(AheadFacts {
        soon_free: ahead.soon_free,
        phantoms: snapshot.phantoms().len(),
        edges: wider.graph.edges(),
        objective: CostMs::new(solution.objective),
        plans,
    });
    Ok(Batch {
        decision,
        table,
        excluded,
        graph,
        solution: of_window_alone,
        wider_prices: Some(WarmStart::of(snapshot, &wider.drivers, &solution)),
    })
}

/// Whether a request may wait for what comes: it has not been planned for `max_planned_ms`, and
/// that time ends before its own does.
fn may_plan(snapshot: &WindowSnapshot, row: usize) -> bool {
    let (config, now) = (snapshot.config(), snapshot.now());
    let request = &*snapshot.requests()[row].request;
    let waiting = snapshot.foresight().waiting_of(&request.id);
    let since = waiting.and_then(|waiting| waiting.planned_since_ms);
    let deadline = waiting.and_then(|waiting| waiting.deadline_ms);
    let deadline = deadline.unwrap_or(request.requested_at_ms + config.max_wait_ms);
    let until = since.unwrap_or(now) + config.max_planned_ms;
    now < until && until <= deadline
}

/// A request beyond the snapshot is not looked at, not even for a plan.
fn may_still_be_planned(reason: crate::candidates::RowReason) -> bool {
    reason != crate::candidates::RowReason::Deferred
}

/// What the window alone gives each request.
fn own_choices(snapshot: &WindowSnapshot, alone: &Batch) -> Vec<Choice> {
    let Batch {
        decision, table, ..
    } = alone;
    let mut assigned = decision.assignments.iter().peekable();
    let mut unmatched = decision.unmatched.iter().peekable();
    let drivers = snapshot.drivers();
    let mut choices = Vec::with_capacity(table.rows());
    for (row, pending) in snapshot.requests().iter().enumerate() {
        let id = &pending.request.id;
        // both lists stand in the snapshot's order
        let pair = assigned.next_if(|pair| pair.request_id == *id);
        let candidate = pair.and_then(|pair| {
            let driver = drivers
                .binary_search_by(|d| d.id.cmp(&pair.driver_id))
                .ok()?;
            table.find(row, driver as u32).copied()
        });
        let left = unmatched.next_if(|left| left.request_id == *id);
        let reason = left.map_or(Reason::Outbid, |left| left.reason);
        choices.push(candidate.ok_or(reason));
    }
    choices
}

/// The solver's graph of a window that looks ahead: its requests in id order, as in the window
/// alone, then the phantoms; drivers, free or soon free, in id order. Settled requests and the
/// drivers they get are not in it.
struct WiderGraph {
    graph: Graph,
    /// Snapshot index of each request's row; the phantoms' rows follow.
    requests: Vec<u32>,
    /// Snapshot index of each column's driver.
    drivers: Vec<u32>,
}

impl WiderGraph {
    fn new(
        snapshot: &WindowSnapshot,
        table: &CandidateTable,
        ahead: &AheadCandidates,
        own: &[Choice],
        settled: &[bool],
    ) -> Result<Self, DecisionError> {
        let mut taken = vec![false; snapshot.drivers().len()];
        for (choice, settled) in own.iter().zip(settled) {
            if let (Ok(candidate), true) = (choice, settled) {
                taken[candidate.driver as usize] = true;
            }
        }
        let mut requests: Vec<u32> = (0..table.rows() as u32)
            .filter(|&row| !settled[row as usize])
            .collect();
        requests.sort_by(|&a, &b| {
            let id = |row: u32| &snapshot.requests()[row as usize].request.id;
            id(a).cmp(id(b))
        });

        let mut rows = Rows::default();
        requests.retain(|&row| {
            let row = row as usize;
            let limit = table.unmatched_cost(row);
            let candidates = table.row(row).iter().chain(ahead.plans.row(row));
            rows.push(candidates, limit, &taken)
        });
        for row in 0..ahead.phantoms.rows() {
            let limit = ahead.phantoms.unmatched_cost(row);
            rows.push(ahead.phantoms.row(row).iter(), limit, &taken);
        }
        let (graph, drivers) = rows.graph(taken.len())?;
        Ok(Self {
            graph,
            requests,
            drivers,
        })
    }

    /// Who gets which car now, and who is planned onto which driver.
    fn choices(
        &self,
        snapshot: &WindowSnapshot,
        table: &CandidateTable,
        ahead: &AheadCandidates,
        solution: &Solution,
        own: Vec<Choice>,
    ) -> (Vec<Choice>, Vec<Assignment>) {
        let mut choices = own;
        let mut planned = Vec::new();
        for (&request, column) in self.requests.iter().zip(&solution.driver_of) {
            let row = request as usize;
            let driver = column.map(|column| self.drivers[column as usize]);
            let free = driver.and_then(|driver| table.find(row, driver));
            let plan = driver.and_then(|driver| ahead.plans.find(row, driver));
            choices[row] = match (free, plan) {
                (Some(free), _) => Ok(*free),
                (None, Some(plan)) => {
                    planned.push((row, *plan));
                    Err(Reason::Planned)
                }
                // the window alone would have served it: it waits for what comes
                (None, None) if choices[row].is_ok() => Err(Reason::Planned),
                (None, None) => Err(leftover_reason(table, row, Reason::Outbid)),
            };
        }
        planned.sort_unstable_by_key(|&(row, _)| row);
        let plans = planned.into_iter().map(|(row, plan)| Assignment {
            request_id: snapshot.requests()[row].request.id.clone(),
            driver_id: snapshot.drivers()[plan.driver as usize].id.clone(),
            eta_s: plan.eta_s,
            cost_s: plan.cost.as_seconds(),
        });
        (choices, plans.collect())
    }
}

/// Rows of the graph while drivers are still snapshot indices.
#[derive(Default)]
struct Rows {
    unmatched: Vec<i64>,
    offsets: Vec<u32>,
    drivers: Vec<u32>,
    costs: Vec<i64>,
}

impl Rows {
    /// Adds a row, if a pair of it is worth taking; says whether it was.
    fn push<'c>(
        &mut self,
        candidates: impl Iterator<Item = &'c crate::candidates::Candidate>,
        unmatched: CostMs,
        taken: &[bool],
    ) -> bool {
        let before = self.drivers.len();
        for candidate in candidates.filter(|c| c.cost < unmatched && !taken[c.driver as usize]) {
            self.drivers.push(candidate.driver);
            self.costs.push(candidate.cost.get());
        }
        let any = self.drivers.len() > before;
        if any {
            self.offsets.push(before as u32);
            self.unmatched.push(unmatched.get());
        }
        any
    }

    /// The graph, and the snapshot index of each of its drivers.
    fn graph(mut self, drivers: usize) -> Result<(Graph, Vec<u32>), DecisionError> {
        self.offsets.push(self.drivers.len() as u32);
        let mut column_of = vec![u32::MAX; drivers];
        for &driver in &self.drivers {
            column_of[driver as usize] = 0;
        }
        let mut columns = Vec::new();
        for (driver, column) in column_of.iter_mut().enumerate() {
            if *column == 0 {
                *column = columns.len() as u32;
                columns.push(driver as u32);
            }
        }
        for driver in &mut self.drivers {
            *driver = column_of[*driver as usize];
        }
        let graph = Graph::from_rows(
            columns.len(),
            self.unmatched,
            self.offsets,
            self.drivers,
            self.costs,
        )?;
        Ok((graph, columns))
    }
}
