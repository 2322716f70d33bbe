//! From the store's reading of a region to the snapshot that a decision takes.

use std::sync::Arc;

use h3o::CellIndex;

use crate::{
    config::RegionConfig,
    decision::{
        CoolDown, DriverSnapshot, Held, PendingRequest, Presence, RequestSnapshot, TripEnd,
        WindowSnapshot,
    },
    domain::{CostMs, DurationMs, Finite, RegionId, UnixMs, WindowSeq},
    protocol::{self, ClaimPhase, DriverStatus, DriverView, RequestDraft, Snapshot},
    supply::Position,
};

/// The snapshot of a region's window.
pub fn window_snapshot(region: &RegionId, read: &Snapshot) -> WindowSnapshot {
    let requests = read.requests.iter().map(|pending| PendingRequest {
        request: Arc::new(request(&pending.draft, pending.requested_at_ms)),
        left_over: pending.left_over,
    });
    let config = region_config(region, &read.document);
    let ends_count = config.looks_ahead();
    let drivers = read.drivers.iter().map(|view| {
        let driver = driver(view);
        if ends_count {
            without_old_end(view, driver)
        } else {
            driver
        }
    });
    WindowSnapshot::from_ordered(
        read.now_ms,
        config,
        seed(region, read.window.seq),
        requests.collect(),
        drivers.collect(),
    )
}

/// A driver keeps the end of a trip that it told until it tells another: while it is held, only one
/// that can be that of its present claim counts.
fn without_old_end(view: &DriverView, mut driver: Arc<DriverSnapshot>) -> Arc<DriverSnapshot> {
    let told = view.presence.as_ref().and_then(|seen| seen.trip_end);
    if let (Some(told), Some(claim)) = (told, &view.claim)
        && told.of(claim).is_none()
    {
        Arc::make_mut(&mut driver).trip_end = None;
    }
    driver
}

/// The configuration in the store's document. One that cannot be read (written by a newer version,
/// say) falls back to the defaults rather than stop the region.
pub(super) fn region_config(region: &RegionId, document: &str) -> RegionConfig {
    serde_json::from_str(document).unwrap_or_else(|error| {
        tracing::error!(%region, %error, "the region's configuration cannot be read: defaults are used");
        RegionConfig::default()
    })
}

/// The seed of a window: its name is all that its draws depend on.
fn seed(region: &RegionId, seq: WindowSeq) -> u64 {
    crate::domain::Draw::new(seq.get(), "window")
        .text(region.as_str())
        .bits()
}

/// A request as a decision sees it.
pub(super) fn request(draft: &RequestDraft, requested_at_ms: UnixMs) -> RequestSnapshot {
    RequestSnapshot {
        id: draft.id.clone(),
        rider_id: draft.rider_id.clone(),
        pickup: Some(Position::new(draft.pickup)),
        vehicle_classes: draft.vehicle_classes.clone(),
        requested_at_ms,
        unmatched_cost_s: draft.unmatched_cost.map(CostMs::as_seconds),
        max_pickup_eta_s: draft.max_pickup_eta.map(DurationMs::as_seconds),
        exclude_driver_ids: draft.exclude_driver_ids.clone(),
    }
}

/// A driver as a decision sees it. One whose last offer could not be delivered counts as offline
/// until its next ping.
pub(super) fn driver(view: &DriverView) -> Arc<DriverSnapshot> {
    let seen = view.presence.as_ref();
    let presence = match seen.map(|seen| seen.status) {
        Some(DriverStatus::Available) if view.ready => Presence::Available,
        Some(DriverStatus::Busy) => Presence::Busy,
        _ => Presence::Offline,
    };
    let held = match view.claim.as_ref().map(|claim| claim.phase) {
        None => Held::None,
        Some(ClaimPhase::Offered { .. }) => Held::Offered,
        Some(ClaimPhase::OnTrip { .. }) => Held::OnTrip,
    };
    let cooldowns = view.cooldowns.iter().map(|cooling| CoolDown {
        request_id: cooling.request_id.clone(),
        rider_id: cooling.rider_id.clone(),
        until_ms: cooling.until_ms,
    });
    Arc::new(DriverSnapshot {
        id: view.id.clone(),
        position: seen.map(position),
        at_ms: seen.map(protocol::Presence::seen_ms),
        vehicle_class: seen.and_then(|seen| seen.vehicle_class.clone()),
        acceptance_rate: seen.and_then(|seen| seen.acceptance_rate).map(Finite::get),
        idle_since_ms: seen.and_then(|seen| seen.idle_since_ms),
        presence,
        held,
        cooldowns: cooldowns.collect(),
        trip_end: seen.and_then(|seen| seen.trip_end).map(|told| TripEnd {
            place: told.end.place,
            at_ms: told.end.at_ms,
        }),
    })
}

fn position(seen: &protocol::Presence) -> Position {
    match CellIndex::try_from(seen.cell.get()) {
        Ok(cell) => Position::in_cell(seen.place, cell),
        Err(_) => Position::new(seen.place),
    }
}
