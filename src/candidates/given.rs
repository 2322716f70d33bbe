//! The candidates of a snapshot that brings its own edges.

use std::collections::BTreeMap;

use super::{
    Candidate, CandidateTable, RowReason, availability, pair_cost,
    search::{class_fits, is_cooling},
    unmatched_cost,
};
use crate::{
    decision::{SnapshotEdge, WindowSnapshot},
    domain::{DriverId, RequestId},
};

/// A filter of a row's (driver, ETA) pairs, and the reason it gives when it takes the last.
type Filter<'f> = (RowReason, &'f dyn Fn(&(u32, f64)) -> bool);

/// The table of the caller's own edges: the filters and the limit on the pickup ETA hold as ever,
/// the radii and `max_candidates` do not, since the caller did that choosing.
pub(crate) fn given_table(snapshot: &WindowSnapshot, edges: &[SnapshotEdge]) -> CandidateTable {
    let config = snapshot.config();
    let columns: BTreeMap<&DriverId, u32> = snapshot
        .drivers()
        .iter()
        .enumerate()
        .map(|(i, driver)| (&driver.id, i as u32))
        .collect();
    let mut rows: BTreeMap<&RequestId, Vec<(u32, f64)>> = BTreeMap::new();
    for edge in edges {
        if let Some(&column) = columns.get(&edge.driver_id) {
            let row = rows.entry(&edge.request_id).or_default();
            // edges stand by (request, driver, ETA): the first of a pair is its cheapest
            if row.last().is_none_or(|&(last, _)| last != column) {
                row.push((column, edge.eta_s));
            }
        }
    }
    let mut table = CandidateTable::with_rows(snapshot.requests().len());
    for (turn, pending) in snapshot.requests().iter().enumerate() {
        let request = &*pending.request;
        let unmatched = unmatched_cost(config, request, snapshot.age(request));
        if turn >= config.max_snapshot_requests as usize {
            table.push(Err(RowReason::Deferred), unmatched);
            continue;
        }
        // each filter takes some of the row away; the one that takes the last names the reason
        let mut row = rows.remove(&request.id).unwrap_or_default();
        let driver = |column: u32| &*snapshot.drivers()[column as usize];
        let longest_s = request.max_pickup_eta_s.unwrap_or(config.max_pickup_eta_s);
        row.retain(|&(column, _)| availability(driver(column), config, snapshot.now()).is_ok());
        let mut reason = RowReason::NoDriverInRange;
        let filters: [Filter<'_>; 3] = [
            (RowReason::VehicleClass, &|&(column, _)| {
                class_fits(request, driver(column))
            }),
            (RowReason::Cooldown, &|&(column, _)| {
                !is_cooling(request, driver(column), snapshot.now())
            }),
            (RowReason::OverMaxPickupEta, &|&(_, eta_s)| {
                eta_s <= longest_s
            }),
        ];
        for (takes_last, keeps) in filters {
            if !row.is_empty() {
                row.retain(keeps);
                reason = takes_last;
            }
        }
        let mut candidates: Vec<Candidate> = row
            .into_iter()
            .map(|(column, eta_s)| Candidate {
                driver: column,
                eta_s,
                cost: pair_cost(config, driver(column), eta_s, snapshot.now()),
            })
            .collect();
        candidates.sort_by(|a, b| a.eta_s.total_cmp(&b.eta_s).then(a.driver.cmp(&b.driver)));
        let row = if candidates.is_empty() {
            Err(reason)
        } else {
            Ok(candidates.as_slice())
        };
        table.push(row, unmatched);
    }
    table
}
