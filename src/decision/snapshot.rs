//! A frozen window: all that a decision may know.

use std::{collections::BTreeSet, sync::Arc};

use kheya_solver::Constraints;
use serde::{Deserialize, Serialize};

use super::{Foresight, MAX_PHANTOMS, Phantom, SideConstraint, WarmStart};
use crate::{
    config::RegionConfig,
    domain::{DriverId, DurationMs, Place, RequestId, RiderId, UnixMs, VehicleClass},
    supply::Position,
};

/// Everything a decision depends on. The same snapshot gives the same decision, on any machine and
/// with any number of threads (INV-9).
#[derive(Debug, Clone, PartialEq)]
pub struct WindowSnapshot {
    now: UnixMs,
    config: RegionConfig,
    seed: u64,
    requests: Vec<PendingRequest>,
    drivers: Vec<Arc<DriverSnapshot>>,
    edges: Option<Vec<SnapshotEdge>>,
    pub(super) constraints: Vec<SideConstraint>,
    pub(super) in_indices: Constraints,
    foresight: Foresight,
    warm_start: WarmStart,
}

/// A pending request in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingRequest {
    /// The request.
    pub request: Arc<RequestSnapshot>,
    /// Windows that left it over: its search starts that many radii further out.
    pub left_over: u32,
}

/// A request as a decision sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSnapshot {
    /// Its id.
    pub id: RequestId,
    /// The rider, who is not offered a driver again that declined another request of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rider_id: Option<RiderId>,
    /// Where the rider waits. Absent only where the snapshot brings its own edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pickup: Option<Position>,
    /// Classes the rider accepts; empty is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vehicle_classes: Vec<VehicleClass>,
    /// When the rider asked.
    pub requested_at_ms: UnixMs,
    /// The client's own price of leaving the rider unmatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched_cost_s: Option<f64>,
    /// The client's own limit of the pickup ETA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pickup_eta_s: Option<f64>,
    /// Drivers not to offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_driver_ids: Vec<DriverId>,
}

/// What a driver's last ping said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// Ready for a rider.
    #[default]
    Available,
    /// On a trip the service does not know.
    Busy,
    /// Not working.
    Offline,
}

/// What the protocol holds of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// No live claim.
    #[default]
    None,
    /// Claimed, not yet confirmed.
    Offered,
    /// On a confirmed trip.
    OnTrip,
}

/// A pair not to be offered again before an instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoolDown {
    /// The request that was declined.
    pub request_id: RequestId,
    /// Its rider, whose other requests are covered too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rider_id: Option<RiderId>,
    /// When the pair may be offered again.
    pub until_ms: UnixMs,
}

/// Where and when a trip is expected to end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TripEnd {
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// When.
    pub at_ms: UnixMs,
}

/// A driver as a decision sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct DriverSnapshot {
    /// Its id.
    pub id: DriverId,
    /// Where it is. Absent only where the snapshot brings its own edges.
    pub position: Option<Position>,
    /// When it was there; absent means now.
    pub at_ms: Option<UnixMs>,
    /// Its class.
    pub vehicle_class: Option<VehicleClass>,
    /// Share of offers it accepts, 0..=1; absent means all.
    pub acceptance_rate: Option<f64>,
    /// Since when it has had no rider.
    pub idle_since_ms: Option<UnixMs>,
    /// What its last ping said.
    pub presence: Presence,
    /// What the protocol holds of it.
    pub held: Held,
    /// Pairs in cool-down.
    pub cooldowns: Vec<CoolDown>,
    /// When it will be free, if on a trip with a known end.
    pub trip_end: Option<TripEnd>,
}

impl DriverSnapshot {
    /// An available driver at a position, with nothing else known of it.
    pub fn available(id: DriverId, position: Position) -> Self {
        Self {
            id,
            position: Some(position),
            at_ms: None,
            vehicle_class: None,
            acceptance_rate: None,
            idle_since_ms: None,
            presence: Presence::Available,
            held: Held::None,
            cooldowns: Vec::new(),
            trip_end: None,
        }
    }
}

/// A pair with an ETA that the caller brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotEdge {
    /// The request.
    pub request_id: RequestId,
    /// The driver.
    pub driver_id: DriverId,
    /// Pickup ETA in seconds.
    pub eta_s: f64,
}

/// Largest cost or ETA a client may give, in seconds.
pub const MAX_CLIENT_SECONDS: f64 = 86_400.0;

/// Why parts do not make a snapshot.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SnapshotError {
    /// The same id stands twice.
    #[error("{path}: the {kind} {id:?} appears twice")]
    Duplicate {
        /// Where.
        path: String,
        /// `request` or `driver`.
        kind: &'static str,
        /// The id.
        id: String,
    },
    /// A number is outside its range or not finite.
    #[error("{path}: {value} is not within {min}..{max}")]
    OutOfRange {
        /// Where.
        path: String,
        /// The value.
        value: f64,
        /// Least value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// An edge names a request or driver that is not in the snapshot.
    #[error("{path}: there is no {kind} {id:?}")]
    UnknownId {
        /// Where.
        path: String,
        /// `request` or `driver`.
        kind: &'static str,
        /// The id.
        id: String,
    },
    /// A side constraint is not one.
    #[error("{path}: {detail}")]
    Constraint {
        /// Where.
        path: String,
        /// What is wrong, in a word.
        code: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// A place is needed since there are no edges.
    #[error("{path}: a place is needed where no edges are given")]
    NoPlace {
        /// Where.
        path: String,
    },
}

impl WindowSnapshot {
    /// Checks the parts and puts them in order: requests by (`requested_at_ms`, id), drivers by id,
    /// edges by (request, driver). The input order never matters.
    ///
    /// # Errors
    /// Every repeated id, unknown id, missing place and number out of range, each with its path.
    pub fn new(
        now: UnixMs,
        config: RegionConfig,
        seed: u64,
        mut requests: Vec<PendingRequest>,
        mut drivers: Vec<Arc<DriverSnapshot>>,
        mut edges: Option<Vec<SnapshotEdge>>,
    ) -> Result<Self, Vec<SnapshotError>> {
        let mut errors = Vec::new();
        check_requests(&requests, edges.is_some(), &mut errors);
        check_drivers(&drivers, edges.is_some(), &mut errors);
        if let Some(edges) = &mut edges {
            check_edges(edges, &requests, &drivers, &mut errors);
            edges.sort_by(|a, b| {
                (&a.request_id, &a.driver_id)
                    .cmp(&(&b.request_id, &b.driver_id))
                    .then(a.eta_s.total_cmp(&b.eta_s))
            });
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        requests.sort_by(|a, b| by_age(&a.request, &b.request));
        drivers.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Self {
            now,
            config,
            seed,
            requests,
            drivers,
            edges,
            constraints: Vec::new(),
            in_indices: Constraints::default(),
            foresight: Foresight::default(),
            warm_start: WarmStart::default(),
        })
    }

    /// The same with what it knows of what comes next.
    ///
    /// # Errors
    /// Every request that is unknown or stands twice, and too many phantoms, each with its path.
    pub fn with_foresight(self, foresight: Foresight) -> Result<Self, Vec<SnapshotError>> {
        let mut errors = Vec::new();
        check_foresight(&foresight, &self.requests, &mut errors);
        if errors.is_empty() {
            Ok(self.foreseeing(foresight))
        } else {
            Err(errors)
        }
    }

    /// The same with foresight whose parts are already checked.
    pub(crate) fn foreseeing(self, foresight: Foresight) -> Self {
        Self { foresight, ..self }
    }

    /// The same, solved from prices that are already checked.
    pub(super) fn solved_from(self, warm_start: WarmStart) -> Self {
        Self { warm_start, ..self }
    }

    /// A snapshot of parts that are already checked and in order: the path of the replay and the
    /// live service, whose parts were checked when they came in.
    pub(crate) fn from_ordered(
        now: UnixMs,
        config: RegionConfig,
        seed: u64,
        requests: Vec<PendingRequest>,
        drivers: Vec<Arc<DriverSnapshot>>,
    ) -> Self {
        debug_assert!(requests.is_sorted_by(|a, b| by_age(&a.request, &b.request).is_lt()));
        debug_assert!(drivers.is_sorted_by(|a, b| a.id < b.id));
        Self {
            now,
            config,
            seed,
            requests,
            drivers,
            edges: None,
            constraints: Vec::new(),
            in_indices: Constraints::default(),
            foresight: Foresight::default(),
            warm_start: WarmStart::default(),
        }
    }

    /// The instant of the decision.
    pub const fn now(&self) -> UnixMs {
        self.now
    }

    /// The configuration it is decided under.
    pub const fn config(&self) -> &RegionConfig {
        &self.config
    }

    /// Seed of every random draw in the window.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The pending requests, by (`requested_at_ms`, id).
    pub fn requests(&self) -> &[PendingRequest] {
        &self.requests
    }

    /// The drivers, by id.
    pub fn drivers(&self) -> &[Arc<DriverSnapshot>] {
        &self.drivers
    }

    /// The caller's own edges, by (request, driver), if it brought any.
    pub fn edges(&self) -> Option<&[SnapshotEdge]> {
        self.edges.as_deref()
    }

    /// What it knows of what comes next.
    pub const fn foresight(&self) -> &Foresight {
        &self.foresight
    }

    /// The driver prices that its solve starts from.
    pub const fn warm_start(&self) -> &WarmStart {
        &self.warm_start
    }

    /// The expected requests, by time and place.
    pub fn phantoms(&self) -> &[Phantom] {
        self.foresight.phantoms()
    }

    /// Whether its decision looks ahead: the region does, and places are known.
    pub fn looks_ahead(&self) -> bool {
        self.config.looks_ahead() && self.edges.is_none()
    }

    /// How long a request has waited.
    pub fn age(&self, request: &RequestSnapshot) -> DurationMs {
        DurationMs::new((self.now - request.requested_at_ms).get().max(0))
    }
}

/// The order in which requests are served: oldest first, then by id.
pub fn by_age(a: &RequestSnapshot, b: &RequestSnapshot) -> std::cmp::Ordering {
    (a.requested_at_ms, &a.id).cmp(&(b.requested_at_ms, &b.id))
}

fn check_requests(requests: &[PendingRequest], has_edges: bool, errors: &mut Vec<SnapshotError>) {
    let mut seen = BTreeSet::new();
    for (i, pending) in requests.iter().enumerate() {
        let request = &pending.request;
        if !seen.insert(&request.id) {
            let (path, id) = (format!("requests[{i}].id"), request.id.to_string());
            errors.push(SnapshotError::Duplicate {
                path,
                kind: "request",
                id,
            });
        }
        if request.pickup.is_none() && !has_edges {
            errors.push(SnapshotError::NoPlace {
                path: format!("requests[{i}].pickup"),
            });
        }
        for (name, value, min) in [
            ("unmatched_cost_s", request.unmatched_cost_s, 0.0),
            ("max_pickup_eta_s", request.max_pickup_eta_s, 0.0),
        ] {
            check_range(
                || format!("requests[{i}].{name}"),
                value,
                min,
                MAX_CLIENT_SECONDS,
                errors,
            );
        }
    }
}

fn check_drivers(
    drivers: &[Arc<DriverSnapshot>],
    has_edges: bool,
    errors: &mut Vec<SnapshotError>,
) {
    let mut seen = BTreeSet::new();
    for (i, driver) in drivers.iter().enumerate() {
        if !seen.insert(&driver.id) {
            let (path, id) = (format!("drivers[{i}].id"), driver.id.to_string());
            errors.push(SnapshotError::Duplicate {
                path,
                kind: "driver",
                id,
            });
        }
        // one that cannot be chosen needs no place: a trip that was told in a reconcile, say
        let choosable = driver.presence == Presence::Available && driver.held == Held::None;
        if driver.position.is_none() && choosable && !has_edges {
            errors.push(SnapshotError::NoPlace {
                path: format!("drivers[{i}]"),
            });
        }
        check_range(
            || format!("drivers[{i}].acceptance_rate"),
            driver.acceptance_rate,
            0.0,
            1.0,
            errors,
        );
    }
}

fn check_edges(
    edges: &[SnapshotEdge],
    requests: &[PendingRequest],
    drivers: &[Arc<DriverSnapshot>],
    errors: &mut Vec<SnapshotError>,
) {
    let request_ids: BTreeSet<&RequestId> = requests.iter().map(|r| &r.request.id).collect();
    let driver_ids: BTreeSet<&DriverId> = drivers.iter().map(|d| &d.id).collect();
    for (i, edge) in edges.iter().enumerate() {
        if !request_ids.contains(&edge.request_id) {
            let (path, id) = (
                format!("edges[{i}].request_id"),
                edge.request_id.to_string(),
            );
            errors.push(SnapshotError::UnknownId {
                path,
                kind: "request",
                id,
            });
        }
        if !driver_ids.contains(&edge.driver_id) {
            let (path, id) = (format!("edges[{i}].driver_id"), edge.driver_id.to_string());
            errors.push(SnapshotError::UnknownId {
                path,
                kind: "driver",
                id,
            });
        }
        let path = || format!("edges[{i}].eta_s");
        check_range(path, Some(edge.eta_s), 0.0, MAX_CLIENT_SECONDS, errors);
    }
}

fn check_foresight(
    foresight: &Foresight,
    requests: &[PendingRequest],
    errors: &mut Vec<SnapshotError>,
) {
    let known: BTreeSet<&RequestId> = requests.iter().map(|r| &r.request.id).collect();
    let mut seen = BTreeSet::new();
    for (i, waiting) in foresight.waiting().iter().enumerate() {
        let path = || format!("ahead.waiting[{i}].request_id");
        let id = &waiting.request_id;
        if !known.contains(id) {
            errors.push(SnapshotError::UnknownId {
                path: path(),
                kind: "request",
                id: id.to_string(),
            });
        }
        if !seen.insert(id) {
            errors.push(SnapshotError::Duplicate {
                path: path(),
                kind: "request",
                id: id.to_string(),
            });
        }
    }
    check_range(
        || "ahead.phantoms".into(),
        Some(foresight.phantoms().len() as f64),
        0.0,
        MAX_PHANTOMS as f64,
        errors,
    );
}

fn check_range(
    path: impl Fn() -> String,
    value: Option<f64>,
    min: f64,
    max: f64,
    errors: &mut Vec<SnapshotError>,
) {
    if let Some(value) = value
        && !(min..=max).contains(&value)
    {
        errors.push(SnapshotError::OutOfRange {
            path: path(),
            value,
            min,
            max,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{read_window, write_window};

    fn with_driver(presence: Presence, held: Held) -> Result<WindowSnapshot, Vec<SnapshotError>> {
        let place = Position::new(Place::new(23.75, 90.4).unwrap());
        let mut driver = DriverSnapshot::available(DriverId::new("d").unwrap(), place);
        driver.position = None;
        (driver.presence, driver.held) = (presence, held);
        let now = UnixMs::new(1_767_720_600_000);
        let drivers = vec![Arc::new(driver)];
        WindowSnapshot::new(now, RegionConfig::default(), 1, Vec::new(), drivers, None)
    }

    #[test]
    fn only_a_driver_who_may_be_chosen_needs_a_place() {
        let refused = with_driver(Presence::Available, Held::None).unwrap_err();
        assert!(matches!(refused[..], [SnapshotError::NoPlace { .. }]));
        // a trip that was told in a reconcile: its driver has not pinged yet
        let told = with_driver(Presence::Offline, Held::OnTrip).unwrap();
        let text = write_window(&told).unwrap();
        assert_eq!(read_window(text.as_bytes()).unwrap().0, told);
    }
}
