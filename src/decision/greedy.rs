//! The greedy rules: the fallback, and the baselines that every gain names.

use super::{
    Reason, WindowDecision, WindowSnapshot,
    batch::candidates_of,
    constraint::{Room, tell_caps},
    outcome::{Choice, account, leftover_reason},
};
use crate::{
    candidates::{Candidate, CandidateSearch, CandidateTable, RowBuffers},
    eta::EtaModel,
};

/// Oldest-first greedy: requests by (`requested_at_ms`, id), each the free driver of least cost, ties
/// by driver id, candidates searched anew after each pick. Pairs that a full side constraint counts
/// are passed over; floors are not aimed at. The fallback of a live region.
pub fn decide_oldest_first(snapshot: &WindowSnapshot, eta: &dyn EtaModel) -> WindowDecision {
    if snapshot.edges().is_some() {
        let (table, excluded) = candidates_of(snapshot, eta, &mut |_| ());
        let choices = oldest_first_in_table(snapshot, &table);
        let room = Room::beside(snapshot.constraints_in_indices(), &choices);
        let mut decision = account(
            snapshot,
            &choices,
            |row| table.unmatched_cost(row),
            &excluded,
        );
        decision.edges = table.edges();
        decision.constraints = room.facts(snapshot, &[]);
        return decision;
    }
    let search = CandidateSearch::new(snapshot);
    let requests = snapshot.requests();
    let admitted = requests
        .len()
        .min(snapshot.config().max_snapshot_requests as usize);
    let mut taken = vec![false; snapshot.drivers().len()];
    let mut room = Room::new(snapshot.constraints_in_indices());
    let mut buffers = RowBuffers::default();
    let (mut edges, mut free) = (0, search.available());
    let mut choices: Vec<Choice> = Vec::with_capacity(requests.len());
    for (row, pending) in requests[..admitted].iter().enumerate() {
        let limit = search.unmatched_cost(&pending.request);
        // once every car is taken the search below would only find that out again
        let searched = if free == 0 {
            Err(crate::candidates::RowReason::NoDriverInRange)
        } else {
            search.row(pending, eta, |driver| !taken[driver as usize], &mut buffers)
        };
        let choice = searched.map_err(Reason::from).and_then(|()| {
            edges += buffers.row.len();
            let mut worth = buffers.row.iter().filter(|c| c.cost < limit).peekable();
            let otherwise = match worth.peek() {
                None => Reason::NotWorthIt,
                Some(_) => Reason::Constraint,
            };
            let admitted = worth.filter(|c| room.admits(row, c.driver));
            let best = admitted.min_by_key(|c| (c.cost, c.driver));
            best.copied().ok_or(otherwise)
        });
        if let Ok(Candidate { driver, .. }) = choice {
            room.take(row, driver);
            taken[driver as usize] = true;
            free -= 1;
        }
        choices.push(choice);
    }
    choices.resize(requests.len(), Err(Reason::Deferred));
    let unmatched = |row: usize| search.unmatched_cost(&requests[row].request);
    let mut decision = account(snapshot, &choices, unmatched, search.excluded());
    decision.edges = edges;
    decision.constraints = room.facts(snapshot, &[]);
    decision
}

/// Greedy-edge: all candidates of the window by (ETA, request id, driver id), each taken while both
/// ends are free. Within a few per cent of the optimum, and so the baseline to beat.
pub fn decide_edge_first(snapshot: &WindowSnapshot, eta: &dyn EtaModel) -> WindowDecision {
    let (table, excluded) = candidates_of(snapshot, eta, &mut |_| ());
    let mut edges: Vec<(u32, &Candidate)> = (0..table.rows())
        .flat_map(|row| {
            table
                .row(row)
                .iter()
                .map(move |candidate| (row as u32, candidate))
        })
        .filter(|&(row, candidate)| candidate.cost < table.unmatched_cost(row as usize))
        .collect();
    edges.sort_unstable_by(|&(row_a, a), &(row_b, b)| {
        let id = |row: u32| &snapshot.requests()[row as usize].request.id;
        a.eta_s
            .total_cmp(&b.eta_s)
            .then_with(|| id(row_a).cmp(id(row_b)))
            .then(a.driver.cmp(&b.driver))
    });
    let mut choices: Vec<Choice> = (0..table.rows())
        .map(|row| Err(leftover_reason(&table, row, Reason::Outbid)))
        .collect();
    let mut taken = vec![false; snapshot.drivers().len()];
    let mut room = Room::new(snapshot.constraints_in_indices());
    for (row, candidate) in edges {
        if !room.admits(row as usize, candidate.driver) {
            continue;
        }
        let (choice, taken) = (
            &mut choices[row as usize],
            &mut taken[candidate.driver as usize],
        );
        if choice.is_err() && !*taken {
            *choice = Ok(*candidate);
            *taken = true;
            room.take(row as usize, candidate.driver);
        }
    }
    tell_caps(snapshot, &mut choices, &table, |_| false);
    let mut decision = account(
        snapshot,
        &choices,
        |row| table.unmatched_cost(row),
        &excluded,
    );
    decision.edges = table.edges();
    decision.constraints = room.facts(snapshot, &[]);
    decision
}

/// Oldest-first greedy on candidates that are already known.
pub(super) fn oldest_first_in_table(
    snapshot: &WindowSnapshot,
    table: &CandidateTable,
) -> Vec<Choice> {
    let mut taken = vec![false; snapshot.drivers().len()];
    let mut room = Room::new(snapshot.constraints_in_indices());
    let mut choices = Vec::with_capacity(table.rows());
    for row in 0..table.rows() {
        let limit = table.unmatched_cost(row);
        let free = table
            .row(row)
            .iter()
            .filter(|c| !taken[c.driver as usize] && c.cost < limit && room.admits(row, c.driver));
        let best = free.min_by_key(|c| (c.cost, c.driver)).copied();
        if let Some(best) = best {
            taken[best.driver as usize] = true;
            room.take(row, best.driver);
        }
        choices.push(best.ok_or_else(|| leftover_reason(table, row, Reason::Outbid)));
    }
    tell_caps(snapshot, &mut choices, table, |_| false);
    choices
}
