//! From raw rows to clean demand: the stages that need all rows at once.
//!
//! Promise: every row that came in leaves as a trip or is counted under one reason, and the order
//! of the rows changes nothing (INV-9).

use super::{
    date_order::{BadTime, Decided},
    demand::Trip,
    error::InputError,
    identity::{drop_reversals, sort, with_ids},
    options::{DropoffRule, ReadOptions},
    report::{Reason, TripTimeSource},
    rows::{End, RawRow, Rejected, RowSink},
    surroundings::Surroundings,
    zones::Zones,
};
use crate::domain::{Draw, Place, RequestId, UnixMs};

/// Trip times at or above this many seconds are taken for clock errors.
const MAX_TRIP_S: f64 = 43_200.0;

/// Where a row's trip time came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeSource {
    Recorded,
    DropoffTime,
    StraightLine,
}

/// A row whose times are known.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: Option<RequestId>,
    pub(crate) requested_at: UnixMs,
    pub(crate) pickup: End,
    /// Flawed when it is to be drawn.
    pub(crate) dropoff: End,
    pub(crate) trip_s: Option<f64>,
    time_source: TimeSource,
    pub(crate) fare: f32,
    pub(crate) total: f32,
    pub(crate) source: u32,
}

/// What cleaning yields.
pub(crate) struct Cleaned {
    /// Sorted by (time, id).
    pub(crate) trips: Vec<Trip>,
    /// Every row that is no trip.
    pub(crate) rejected: Rejected,
    pub(crate) time_source: TripTimeSource,
    pub(crate) notes: Vec<String>,
}

/// Cleans the rows of `sink`; `decided` has what each of its time columns decided.
///
/// # Errors
/// Latitude and longitude stand in each other's column.
pub(crate) fn clean(
    sink: &mut RowSink,
    decided: &[Decided],
    zones: Option<&Zones>,
    options: &ReadOptions,
) -> Result<Cleaned, InputError> {
    let mut rejected = std::mem::take(&mut sink.rejected);
    let mut keep = |checked: Result<Row, Reason>| match checked {
        Ok(row) => Some(row),
        Err(reason) => {
            rejected.count(reason);
            None
        }
    };
    let raw = std::mem::take(&mut sink.rows);
    let rows: Vec<Row> = raw
        .into_iter()
        .filter_map(|row| keep(timed(row, sink, decided)))
        .collect();
    let around = Surroundings::of(&rows, &sink.sources, zones)?;
    let mut rows: Vec<Row> = rows
        .into_iter()
        .filter_map(|row| keep(placed(row, &around, options.dropoff)))
        .collect();
    sort(&mut rows);
    let rows = drop_reversals(rows, &mut rejected);
    let mut rows = with_ids(rows, &mut rejected);
    if let Some(share) = options.sample {
        rows.retain(|(id, _)| {
            let kept = Draw::new(options.seed, "sample")
                .text(id.as_str())
                .unit_f64()
                < share;
            if !kept {
                rejected.count(Reason::SampledOut);
            }
            kept
        });
    }
    let mut notes = around.notes();
    let (trips, time_source) = into_trips(rows, zones, options.seed, &mut notes);
    Ok(Cleaned {
        trips,
        rejected,
        time_source,
        notes,
    })
}

/// Reads the times of a row in the way its columns decided.
fn timed(raw: RawRow, sink: &mut RowSink, decided: &[Decided]) -> Result<Row, Reason> {
    let columns = sink.sources[raw.source as usize].times;
    let read = |i: usize| match columns[i] {
        Some(column) => decided[column].at(raw.times[i], &sink.tz),
        None => Ok(None),
    };
    let requested_at = match read(0) {
        Ok(Some(at)) => at,
        Ok(None) => return Err(Reason::Missing),
        Err(BadTime) => return Err(Reason::BadTime),
    };
    let picked_up = if columns[1].is_some() {
        read(1).ok().flatten()
    } else {
        Some(requested_at)
    };
    let dropped_off = read(2).ok().flatten();
    if let Some(reason) = sink.outside_range(requested_at).or(raw.bad_id) {
        return Err(reason);
    }
    let plausible = |seconds: &f64| *seconds > 0.0 && *seconds < MAX_TRIP_S;
    let recorded = Some(raw.trip_s).filter(plausible);
    let between = picked_up
        .zip(dropped_off)
        .map(|(start, end)| (end - start).as_seconds());
    let between = between.filter(plausible);
    let time_source = match (recorded, between) {
        (Some(_), _) => TimeSource::Recorded,
        (None, Some(_)) => TimeSource::DropoffTime,
        (None, None) => TimeSource::StraightLine,
    };
    Ok(Row {
        id: raw.id,
        requested_at,
        pickup: raw.pickup,
        dropoff: raw.dropoff,
        trip_s: recorded.or(between),
        time_source,
        fare: raw.fare,
        total: raw.total,
        source: raw.source,
    })
}

/// Checks both ends of a row.
fn placed(mut row: Row, around: &Surroundings<'_>, rule: DropoffRule) -> Result<Row, Reason> {
    around.check(row.pickup)?;
    match (around.check(row.dropoff), rule) {
        (Ok(()), _) => {}
        (Err(reason), DropoffRule::Sample) => row.dropoff = End::Flawed(reason),
        (Err(reason @ (Reason::FarAway | Reason::SwappedCoordinates)), DropoffRule::Require) => {
            return Err(reason);
        }
        (Err(_), DropoffRule::Require) => return Err(Reason::NoDropoff),
    }
    Ok(row)
}

/// Gives every row its places, drawing the drop-offs that are missing.
fn into_trips(
    rows: Vec<(RequestId, Row)>,
    zones: Option<&Zones>,
    seed: u64,
    notes: &mut Vec<String>,
) -> (Vec<Trip>, TripTimeSource) {
    let mut source = TripTimeSource::default();
    let mut trips = Vec::with_capacity(rows.len());
    let mut own_dropoff = Vec::with_capacity(rows.len());
    for (request_id, row) in rows {
        let point = |end: End, name: &str| match end {
            End::Point { lat, lng } => Place::new(lat, lng).ok(),
            End::Zone(zone) => zones.and_then(|z| z.point(zone, &request_id, name)),
            End::Flawed(_) => None,
        };
        let Some(pickup) = point(row.pickup, "pickup") else {
            debug_assert!(false, "a pickup was checked and has no place");
            continue;
        };
        match row.time_source {
            TimeSource::Recorded => source.trip_s += 1,
            TimeSource::DropoffTime => source.dropoff_time += 1,
            TimeSource::StraightLine => source.straight_line += 1,
        }
        let dropoff = point(row.dropoff, "dropoff");
        own_dropoff.push(dropoff.is_some());
        trips.push(Trip {
            request_id,
            requested_at: row.requested_at,
            pickup,
            dropoff: dropoff.unwrap_or(pickup),
            trip_s: row.trip_s,
        });
    }
    draw_dropoffs(&mut trips, &own_dropoff, seed, notes);
    (trips, source)
}

/// Draws each missing drop-off from the recorded ones; from the pickups, when none is recorded.
fn draw_dropoffs(trips: &mut [Trip], own: &[bool], seed: u64, notes: &mut Vec<String>) {
    let drawn = own.iter().filter(|own| !**own).count();
    if drawn == 0 {
        return;
    }
    let recorded = trips.iter().zip(own).filter(|(_, own)| **own);
    let mut donors: Vec<Place> = recorded.map(|(trip, _)| trip.dropoff).collect();
    let mut from = "the recorded ones";
    if donors.is_empty() {
        donors = trips.iter().map(|trip| trip.pickup).collect();
        from = "the pickups, for no row has one";
    }
    for (trip, _) in trips.iter_mut().zip(own).filter(|(_, own)| !**own) {
        let draw = Draw::new(seed, "dropoff").text(trip.request_id.as_str());
        trip.dropoff = donors[draw.below(donors.len())];
    }
    notes.push(format!("{drawn} drop-offs were drawn from {from}"));
}
