//! Which rows are the same trip: fare reversals, repeated ids, numbers for rows without an id.

use std::{cmp::Ordering, collections::HashMap};

use super::{
    report::Reason,
    rows::{End, Rejected},
    trips::Row,
};
use crate::domain::RequestId;

/// Everything of a trip that a fare reversal repeats, its amounts without their signs.
#[derive(PartialEq, Eq, Hash)]
struct TripKey {
    requested_ms: i64,
    ends: [(u8, u64, u64); 2],
    trip_s: Option<u64>,
    amounts: [u32; 2],
}

impl TripKey {
    fn of(row: &Row) -> Self {
        let bits = |end: End| match end {
            End::Point { lat, lng } => (0, lat.to_bits(), lng.to_bits()),
            End::Zone(zone) => (1, u64::from(zone), 0),
            End::Flawed(_) => (2, 0, 0),
        };
        Self {
            requested_ms: row.requested_at.get(),
            ends: [bits(row.pickup), bits(row.dropoff)],
            trip_s: row.trip_s.map(f64::to_bits),
            amounts: [row.fare.abs().to_bits(), row.total.abs().to_bits()],
        }
    }
}

/// Whether money was given back: the total says so, or the fare where there is no total.
fn is_negative(row: &Row) -> bool {
    row.total < 0.0 || (row.total.is_nan() && row.fare < 0.0)
}

/// Leaves out the negative one of each pair that differs in nothing but the sign of its amounts.
/// A negative row without such a twin is a trip like any other. The rows come and go in order.
pub(crate) fn drop_reversals(rows: Vec<Row>, rejected: &mut Rejected) -> Vec<Row> {
    if !rows.iter().any(is_negative) {
        return rows;
    }
    let mut positive: HashMap<TripKey, u64> = HashMap::new();
    for row in rows.iter().filter(|row| is_negative(row)) {
        positive.insert(TripKey::of(row), 0);
    }
    for row in rows.iter().filter(|row| !is_negative(row)) {
        if let Some(count) = positive.get_mut(&TripKey::of(row)) {
            *count += 1;
        }
    }
    rows.into_iter()
        .filter(|row| {
            let twin = is_negative(row)
                .then(|| positive.get_mut(&TripKey::of(row)))
                .flatten();
            match twin {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    rejected.count(Reason::Reversal);
                    false
                }
                _ => true,
            }
        })
        .collect()
}

/// Sorts rows by (time, id) and then by everything else that a trip is made of, so that rows which
/// remain equal are interchangeable.
pub(crate) fn sort(rows: &mut [Row]) {
    rows.sort_unstable_by(compare);
}

/// Numbers the rows without an id in their order, and sorts all by (time, id). Of rows with one id
/// the first stays: the first in time, so that the order of the file does not matter.
pub(crate) fn with_ids(rows: Vec<Row>, rejected: &mut Rejected) -> Vec<(RequestId, Row)> {
    let mut first_with: HashMap<RequestId, usize> = HashMap::new();
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    let mut without_id = 0_usize;
    for row in rows {
        if let Some(id) = &row.id {
            if let Some(&first) = first_with.get(id) {
                let same = same_trip(&kept[first], &row);
                rejected.count(if same {
                    Reason::DuplicateId
                } else {
                    Reason::IdConflict
                });
                continue;
            }
            first_with.insert(id.clone(), kept.len());
        } else {
            without_id += 1;
        }
        kept.push(row);
    }
    let digits = without_id.saturating_sub(1).to_string().len();
    let mut numbers = 0_u64..;
    let mut numbered: Vec<(RequestId, Row)> = kept
        .into_iter()
        .filter_map(|mut row| {
            let id = match row.id.take() {
                Some(id) => id,
                // A number that the files themselves use as an id is passed over.
                None => numbers.find_map(|n| {
                    let id = RequestId::new(&format!("r{n:0digits$}")).ok()?;
                    (!first_with.contains_key(&id)).then_some(id)
                })?,
            };
            Some((id, row))
        })
        .collect();
    numbered.sort_by(|(a_id, a), (b_id, b)| {
        a.requested_at
            .cmp(&b.requested_at)
            .then_with(|| a_id.cmp(b_id))
    });
    numbered
}

/// Time, id, then every other field that a trip is made of.
fn compare(a: &Row, b: &Row) -> Ordering {
    a.requested_at
        .cmp(&b.requested_at)
        .then_with(|| a.id.cmp(&b.id))
        .then_with(|| compare_ends(a.pickup, b.pickup))
        .then_with(|| compare_ends(a.dropoff, b.dropoff))
        .then_with(|| compare_trip_s(a, b))
}

fn compare_trip_s(a: &Row, b: &Row) -> Ordering {
    let seconds = |row: &Row| row.trip_s.unwrap_or(0.0);
    seconds(a).total_cmp(&seconds(b))
}

fn compare_ends(a: End, b: End) -> Ordering {
    let key = |end: End| match end {
        End::Point { lat, lng } => (0, lat, lng, 0),
        End::Zone(zone) => (1, 0.0, 0.0, zone),
        End::Flawed(_) => (2, 0.0, 0.0, 0),
    };
    let ((a_kind, a_lat, a_lng, a_zone), (b_kind, b_lat, b_lng, b_zone)) = (key(a), key(b));
    let kinds: Ordering = i32::cmp(&a_kind, &b_kind);
    kinds
        .then_with(|| f64::total_cmp(&a_lat, &b_lat))
        .then_with(|| f64::total_cmp(&a_lng, &b_lng))
        .then_with(|| u32::cmp(&a_zone, &b_zone))
}

fn same_trip(a: &Row, b: &Row) -> bool {
    a.requested_at == b.requested_at
        && compare_ends(a.pickup, b.pickup).is_eq()
        && compare_ends(a.dropoff, b.dropoff).is_eq()
        && compare_trip_s(a, b).is_eq()
}
