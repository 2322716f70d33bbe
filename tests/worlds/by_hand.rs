//! Small windows and worlds written by hand, on a straight road east along the equator: places are
//! metres from its start, and a car covers 10 m a second.

use std::sync::Arc;

use kheya::{
    config::RegionConfig,
    decision::{DriverSnapshot, PendingRequest, RequestSnapshot},
    domain::{DriverId, DurationMs, EARTH_RADIUS_KM, Place, RequestId, UnixMs},
    replay::{
        Scenario,
        input::{Demand, FleetDriver, InputReport, Trip, TripTimeSource},
    },
    supply::Position,
};
use serde_json::{Value, json};

use super::window_parts::{NOW, WindowParts, config};

/// A full hour, when toy demand begins.
pub(crate) const NIGHT_FROM: UnixMs = UnixMs::new(1_767_657_600_000);

/// The place so many metres along the road.
pub(crate) fn metres(east: f64) -> Place {
    Place::new(0.0, (east / 1000.0 / EARTH_RADIUS_KM).to_degrees()).unwrap()
}

/// 36 km/h without detours: 10 m a second.
pub(crate) fn road_config(more: &Value) -> RegionConfig {
    let base = config(
        &RegionConfig::default(),
        &json!({"speed_kmh": 36, "detour": 1}),
    );
    config(&base, more)
}

/// A request at a place of the road, made just now.
pub(crate) fn request(id: &str, east: f64) -> PendingRequest {
    PendingRequest {
        request: Arc::new(RequestSnapshot {
            id: RequestId::new(id).unwrap(),
            rider_id: None,
            pickup: Some(Position::new(metres(east))),
            vehicle_classes: vec![],
            requested_at_ms: NOW,
            unmatched_cost_s: None,
            max_pickup_eta_s: None,
            exclude_driver_ids: vec![],
        }),
        left_over: 0,
    }
}

/// The same request, changed.
pub(crate) fn with(
    mut pending: PendingRequest,
    change: impl FnOnce(&mut RequestSnapshot),
) -> PendingRequest {
    change(Arc::make_mut(&mut pending.request));
    pending
}

/// An available driver at a place of the road.
pub(crate) fn driver(id: &str, east: f64) -> DriverSnapshot {
    DriverSnapshot::available(DriverId::new(id).unwrap(), Position::new(metres(east)))
}

/// A window on the road.
pub(crate) fn window(requests: Vec<PendingRequest>, drivers: Vec<DriverSnapshot>) -> WindowParts {
    WindowParts {
        config: road_config(&json!({})),
        requests,
        drivers,
        edges: None,
    }
}

/// An instant so many milliseconds before the window.
pub(crate) fn ago(ms: i64) -> UnixMs {
    NOW - DurationMs::new(ms)
}

/// An instant so many milliseconds after the start of a world.
pub(crate) fn at(ms: i64) -> UnixMs {
    NOW + DurationMs::new(ms)
}

/// A trip along the road: when it is asked for, from where, to where, and how long it takes.
pub(crate) fn trip(id: &str, ms: i64, from: f64, to: f64, trip_s: Option<f64>) -> Trip {
    Trip {
        request_id: RequestId::new(id).unwrap(),
        requested_at: at(ms),
        pickup: metres(from),
        dropoff: metres(to),
        trip_s,
    }
}

/// A car of the fleet: from when, where, and until when.
pub(crate) fn car(id: &str, from_ms: i64, east: f64, to_ms: Option<i64>) -> FleetDriver {
    FleetDriver {
        driver_id: DriverId::new(id).unwrap(),
        from: at(from_ms),
        place: metres(east),
        to: to_ms.map(at),
    }
}

/// A world that starts at [`NOW`]; its trips may come in any order.
pub(crate) fn world(config: RegionConfig, mut trips: Vec<Trip>, fleet: &[FleetDriver]) -> Scenario {
    trips.sort_by(|a, b| (a.requested_at, &a.request_id).cmp(&(b.requested_at, &b.request_id)));
    let report = input_of(&trips);
    Scenario::new(config, 7, NOW, &Demand { trips, report }, fleet)
}

/// The account of reading these trips and nothing else.
pub(crate) fn input_of(trips: &[Trip]) -> InputReport {
    InputReport {
        files: vec![],
        rows_read: trips.len() as u64,
        rows_used: trips.len() as u64,
        rejected: [].into(),
        mapping: [].into(),
        time_resolution: DurationMs::new(1),
        on_minute_share: 0.0,
        trip_time_source: TripTimeSource::default(),
        from_ms: trips.first().map_or(NOW, |trip| trip.requested_at),
        to_ms: trips.last().map_or(NOW, |trip| trip.requested_at),
        notes: vec![],
    }
}
