//! The window loop's part in a test: the store's snapshot as the decision takes it.

use std::sync::Arc;

use kheya::{
    config::RegionConfig,
    decision::{
        CoolDown, DriverSnapshot, Held, PendingRequest, Presence, RequestSnapshot, TripEnd,
        WindowSnapshot,
    },
    domain::{CostMs, DurationMs, Finite},
    protocol::{ClaimPhase, DriverStatus, Snapshot},
    supply::Position,
};

/// The store's snapshot as the decision takes it.
pub(crate) fn frozen(read: &Snapshot, seed: u64) -> WindowSnapshot {
    let requests = read.requests.iter().map(|waiting| {
        let draft = &waiting.draft;
        PendingRequest {
            request: Arc::new(RequestSnapshot {
                id: draft.id.clone(),
                rider_id: draft.rider_id.clone(),
                pickup: Some(Position::new(draft.pickup)),
                vehicle_classes: draft.vehicle_classes.clone(),
                requested_at_ms: waiting.requested_at_ms,
                unmatched_cost_s: draft.unmatched_cost.map(CostMs::as_seconds),
                max_pickup_eta_s: draft.max_pickup_eta.map(DurationMs::as_seconds),
                exclude_driver_ids: draft.exclude_driver_ids.clone(),
            }),
            left_over: waiting.left_over,
        }
    });
    let drivers = read.drivers.iter().filter_map(|view| {
        let presence = view.presence.as_ref()?;
        let mut driver = DriverSnapshot::available(view.id.clone(), Position::new(presence.place));
        driver.at_ms = Some(presence.seen_ms());
        driver.acceptance_rate = presence.acceptance_rate.map(Finite::get);
        driver.presence = match presence.status {
            DriverStatus::Available => Presence::Available,
            DriverStatus::Busy => Presence::Busy,
            DriverStatus::Offline => Presence::Offline,
        };
        driver.held = match view.claim.as_ref().map(|claim| claim.phase) {
            None => Held::None,
            Some(ClaimPhase::Offered { .. }) => Held::Offered,
            Some(ClaimPhase::OnTrip { .. }) => Held::OnTrip,
        };
        driver.cooldowns = view
            .cooldowns
            .iter()
            .map(|c| CoolDown {
                request_id: c.request_id.clone(),
                rider_id: c.rider_id.clone(),
                until_ms: c.until_ms,
            })
            .collect();
        driver.trip_end = presence.trip_end.map(|told| TripEnd {
            place: told.end.place,
            at_ms: told.end.at_ms,
        });
        Some(Arc::new(driver))
    });
    let mut patch = serde_json::Map::new();
    patch.insert("redispatch_s".into(), 60.into());
    let config = RegionConfig::default().patched(&patch).unwrap().config;
    WindowSnapshot::new(
        read.now_ms,
        config,
        seed,
        requests.collect(),
        drivers.collect(),
        None,
    )
    .unwrap()
}
