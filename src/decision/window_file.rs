//! `WINDOW.json`: a recorded snapshot, or the body of `POST /v1/solve`.
//!
//! The two share their shape; a recorded snapshot says `"format":"kheya-window/1"` and brings
//! `now_ms`, `config` and `seed`, and everything a decision depends on. [`write_window`] and
//! [`read_window`] are inverse.

use std::sync::Arc;

use kheya_solver::Method;
use serde::{Deserialize, Serialize};

use super::{
    CoolDown, DriverSnapshot, Foresight, Held, PendingRequest, Presence, RequestSnapshot,
    SideConstraint, SnapshotEdge, SnapshotError, TripEnd, WarmStart, WindowSnapshot,
};
use crate::{
    config::{FieldError, RegionConfig},
    domain::{DriverId, Place, PlaceError, RequestId, RiderId, UnixMs, VehicleClass},
    supply::Position,
};

/// The format of a recorded snapshot.
pub const WINDOW_FORMAT: &str = "kheya-window/1";

/// Largest number of requests, and of drivers, in one file; edges are limited to 40 times as many.
const MAX_ENTRIES: usize = 200_000;

/// What a body asks of the solver besides the snapshot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SolveOptions {
    /// The method, if the body names one.
    pub method: Option<Method>,
    /// Time the solve may take, if the body limits it.
    pub budget_ms: Option<u64>,
}

/// Why a text is not a window.
#[derive(Debug, thiserror::Error)]
pub enum WindowFileError {
    /// Not JSON, or not of the right shape.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A format this version does not know.
    #[error("format {0:?} is not known (this version reads {WINDOW_FORMAT:?})")]
    Format(String),
    /// A field that only a recorded snapshot has, or one that it lacks.
    #[error("{path}: {detail}")]
    Field {
        /// Where.
        path: String,
        /// What is wrong.
        detail: String,
    },
    /// The parts do not make a snapshot.
    #[error("{}", all(.0))]
    Snapshot(Vec<SnapshotError>),
    /// The straight-line model's numbers are outside their limits.
    #[error("eta: {}", all(.0))]
    Eta(Vec<FieldError>),
}

fn all<E: ToString>(errors: &[E]) -> String {
    const SHOWN: usize = 20;
    let mut text: Vec<String> = errors.iter().take(SHOWN).map(ToString::to_string).collect();
    if errors.len() > SHOWN {
        text.push(format!("and {} more", errors.len() - SHOWN));
    }
    text.join("; ")
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    now_ms: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<RegionConfig>,
    requests: Vec<RequestEntry>,
    drivers: Vec<DriverEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edges: Option<Vec<SnapshotEdge>>,
    #[serde(default, skip_serializing_if = "Foresight::is_empty")]
    ahead: Foresight,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constraints: Option<Vec<SideConstraint>>,
    #[serde(default, skip_serializing_if = "WarmStart::is_empty")]
    warm_start: WarmStart,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eta: Option<EtaEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestEntry {
    id: RequestId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rider_id: Option<RiderId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pickup: Option<Position>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vehicle_classes: Vec<VehicleClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requested_at_ms: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unmatched_cost_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_pickup_eta_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exclude_driver_ids: Vec<DriverId>,
    #[serde(default, skip_serializing_if = "is_default")]
    left_over: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DriverEntry {
    id: DriverId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lat: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lng: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_ms: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vehicle_class: Option<VehicleClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acceptance_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_since_ms: Option<UnixMs>,
    #[serde(default, skip_serializing_if = "is_default")]
    status: Presence,
    #[serde(default, skip_serializing_if = "is_default")]
    claim: Held,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cooldowns: Vec<CoolDown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trip_end: Option<TripEnd>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EtaEntry {
    model: EtaModelName,
    speed_kmh: f64,
    detour: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EtaModelName {
    StraightLine,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a recorded snapshot or a body of `POST /v1/solve`.
///
/// In a body that is no recorded snapshot every request is taken as just made and every driver as
/// just seen, and a client's own `unmatched_cost_s` also widens the pickup ETA it may accept:
/// whoever prices a rider at 2,000 s means it.
///
/// # Errors
/// [`WindowFileError`] names what is wrong and where; all repeated ids, unknown ids and numbers out
/// of range at once.
pub fn read_window(text: &[u8]) -> Result<(WindowSnapshot, SolveOptions), WindowFileError> {
    let file: WindowFile = serde_json::from_slice(text)?;
    let recorded = match &file.format {
        None => false,
        Some(format) if format == WINDOW_FORMAT => true,
        Some(format) => return Err(WindowFileError::Format(format.clone())),
    };
    let options = file.options(recorded)?;
    let now = match (recorded, file.now_ms) {
        (true, None) => return Err(field("now_ms", "is needed in a recorded snapshot")),
        (_, now) => now.unwrap_or_default(),
    };
    if !recorded && !file.warm_start.is_empty() {
        return Err(field("warm_start", "belongs in a recorded snapshot only"));
    }
    let mut constraints = file.constraints.iter().flatten();
    if let Some(place) = constraints
        .position(|c| c.standing != 0)
        .filter(|_| !recorded)
    {
        let path = format!("constraints[{place}].standing");
        return Err(field(&path, "belongs in a recorded snapshot only"));
    }
    let config = file.region_config()?;
    limit("requests", file.requests.len(), MAX_ENTRIES)?;
    limit("drivers", file.drivers.len(), MAX_ENTRIES)?;
    limit(
        "edges",
        file.edges.as_ref().map_or(0, Vec::len),
        40 * MAX_ENTRIES,
    )?;
    let mut requests = Vec::with_capacity(file.requests.len());
    for (i, entry) in file.requests.into_iter().enumerate() {
        if recorded && entry.requested_at_ms.is_none() {
            let path = format!("requests[{i}].requested_at_ms");
            return Err(field(&path, "is needed in a recorded snapshot"));
        }
        requests.push(entry.pending(now, recorded, config.max_pickup_eta_s));
    }
    let mut drivers = Vec::with_capacity(file.drivers.len());
    for (i, entry) in file.drivers.into_iter().enumerate() {
        drivers.push(Arc::new(entry.driver(i)?));
    }
    let snapshot = WindowSnapshot::new(
        now,
        config,
        file.seed.unwrap_or(0),
        requests,
        drivers,
        file.edges,
    )
    .and_then(|snapshot| snapshot.with_constraints(file.constraints.unwrap_or_default()))
    .and_then(|snapshot| snapshot.with_foresight(file.ahead))
    .and_then(|snapshot| snapshot.with_warm_start(file.warm_start))
    .map_err(WindowFileError::Snapshot)?;
    Ok((snapshot, options))
}

/// Writes a snapshot so that [`read_window`] gives it back, the same bytes for the same snapshot.
///
/// # Errors
/// Those of the JSON writer.
pub fn write_window(snapshot: &WindowSnapshot) -> serde_json::Result<String> {
    serde_json::to_string(&WindowFile::from(snapshot))
}

/// A hash of everything the decision depends on: that of the bytes of [`write_window`], as 32 hex
/// digits.
pub fn snapshot_hash(snapshot: &WindowSnapshot) -> Arc<str> {
    struct Hashing(xxhash_rust::xxh3::Xxh3);

    impl std::io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut hashing = Hashing(xxhash_rust::xxh3::Xxh3::new());
    // a hash takes every byte, so only a value without a JSON form could fail, and there is none
    let _ = serde_json::to_writer(&mut hashing, &WindowFile::from(snapshot));
    format!("{:032x}", hashing.0.digest128()).into()
}

impl From<&WindowSnapshot> for WindowFile {
    fn from(snapshot: &WindowSnapshot) -> Self {
        Self {
            format: Some(WINDOW_FORMAT.into()),
            now_ms: Some(snapshot.now()),
            seed: Some(snapshot.seed()),
            config: Some(snapshot.config().clone()),
            requests: snapshot.requests().iter().map(RequestEntry::from).collect(),
            drivers: snapshot
                .drivers()
                .iter()
                .map(|driver| DriverEntry::from(&**driver))
                .collect(),
            edges: snapshot.edges().map(<[_]>::to_vec),
            constraints: Some(snapshot.constraints().to_vec()).filter(|given| !given.is_empty()),
            ahead: snapshot.foresight().clone(),
            warm_start: snapshot.warm_start().clone(),
            eta: None,
            method: None,
            budget_ms: None,
        }
    }
}

impl WindowFile {
    fn options(&self, recorded: bool) -> Result<SolveOptions, WindowFileError> {
        let own = [
            ("method", self.method.is_some()),
            ("budget_ms", self.budget_ms.is_some()),
            ("eta", self.eta.is_some()),
        ];
        if let Some((name, _)) = own.iter().find(|(_, given)| recorded && *given) {
            return Err(field(name, "does not belong in a recorded snapshot"));
        }
        let method = self.method.as_deref().map(str::parse).transpose();
        let method = method.map_err(|_| {
            field(
                "method",
                "must be auto, sparse, hungarian, lp or greedy-edge",
            )
        })?;
        Ok(SolveOptions {
            method,
            budget_ms: self.budget_ms,
        })
    }

    fn region_config(&self) -> Result<RegionConfig, WindowFileError> {
        let config = self.config.clone().unwrap_or_default();
        let Some(eta) = &self.eta else {
            return Ok(config);
        };
        let EtaModelName::StraightLine = eta.model;
        let mut patch = serde_json::Map::new();
        patch.insert("speed_kmh".into(), eta.speed_kmh.into());
        patch.insert("detour".into(), eta.detour.into());
        let patched = config.patched(&patch).map_err(WindowFileError::Eta)?;
        match patched.clamped.first() {
            None => Ok(patched.config),
            Some(clamp) => {
                let detail = format!(
                    "{} is outside its limits (nearest: {})",
                    clamp.asked, clamp.used
                );
                Err(field(&format!("eta.{}", clamp.path), &detail))
            }
        }
    }
}

impl RequestEntry {
    fn pending(self, now: UnixMs, recorded: bool, region_limit_s: f64) -> PendingRequest {
        let widened_s = self
            .unmatched_cost_s
            .filter(|s| !recorded && *s > region_limit_s);
        let request = RequestSnapshot {
            id: self.id,
            rider_id: self.rider_id,
            pickup: self.pickup,
            vehicle_classes: self.vehicle_classes,
            requested_at_ms: self.requested_at_ms.unwrap_or(now),
            unmatched_cost_s: self.unmatched_cost_s,
            max_pickup_eta_s: self.max_pickup_eta_s.or(widened_s),
            exclude_driver_ids: self.exclude_driver_ids,
        };
        PendingRequest {
            request: Arc::new(request),
            left_over: self.left_over,
        }
    }
}

impl From<&PendingRequest> for RequestEntry {
    fn from(pending: &PendingRequest) -> Self {
        let request = (*pending.request).clone();
        Self {
            id: request.id,
            rider_id: request.rider_id,
            pickup: request.pickup,
            vehicle_classes: request.vehicle_classes,
            requested_at_ms: Some(request.requested_at_ms),
            unmatched_cost_s: request.unmatched_cost_s,
            max_pickup_eta_s: request.max_pickup_eta_s,
            exclude_driver_ids: request.exclude_driver_ids,
            left_over: pending.left_over,
        }
    }
}

impl DriverEntry {
    fn driver(self, index: usize) -> Result<DriverSnapshot, WindowFileError> {
        let position = match (self.lat, self.lng) {
            (Some(lat), Some(lng)) => {
                let place = Place::new(lat, lng).map_err(|error| {
                    let name = if matches!(error, PlaceError::Lat(_)) {
                        "lat"
                    } else {
                        "lng"
                    };
                    field(&format!("drivers[{index}].{name}"), &error.to_string())
                })?;
                Some(Position::new(place))
            }
            (None, None) => None,
            (Some(_), None) => {
                return Err(field(
                    &format!("drivers[{index}].lng"),
                    "is missing beside lat",
                ));
            }
            (None, Some(_)) => {
                return Err(field(
                    &format!("drivers[{index}].lat"),
                    "is missing beside lng",
                ));
            }
        };
        Ok(DriverSnapshot {
            id: self.id,
            position,
            at_ms: self.at_ms,
            vehicle_class: self.vehicle_class,
            acceptance_rate: self.acceptance_rate,
            idle_since_ms: self.idle_since_ms,
            presence: self.status,
            held: self.claim,
            cooldowns: self.cooldowns,
            trip_end: self.trip_end,
        })
    }
}

impl From<&DriverSnapshot> for DriverEntry {
    fn from(driver: &DriverSnapshot) -> Self {
        let driver = driver.clone();
        let place = driver.position.map(|position| position.place());
        Self {
            id: driver.id,
            lat: place.map(Place::lat),
            lng: place.map(Place::lng),
            at_ms: driver.at_ms,
            vehicle_class: driver.vehicle_class,
            acceptance_rate: driver.acceptance_rate,
            idle_since_ms: driver.idle_since_ms,
            status: driver.presence,
            claim: driver.held,
            cooldowns: driver.cooldowns,
            trip_end: driver.trip_end,
        }
    }
}

fn field(path: &str, detail: &str) -> WindowFileError {
    WindowFileError::Field {
        path: path.into(),
        detail: detail.into(),
    }
}

fn limit(path: &str, given: usize, most: usize) -> Result<(), WindowFileError> {
    if given <= most {
        return Ok(());
    }
    Err(field(
        path,
        &format!("{given} entries, at most {most} are taken"),
    ))
}
