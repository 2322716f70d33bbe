//! Small windows and worlds written by hand, on a straight road east along the equator: places are
//! metres from its start, and a car covers 10 m a second.

use std::sync::Arc;

use kheya::{
    config::RegionConfig,
    decision::{DriverSnapshot, PendingRequest, RequestSnapshot},
    domain::{DriverId, DurationMs, EARTH_RADIUS_KM, Place, RequestId, UnixMs},
    supply::Position,
};
use serde_json::{Value, json};

use super::window_parts::{NOW, WindowParts, config};

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
