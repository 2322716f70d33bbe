//! Random windows: clustered places so that radii widen, and every state a driver can be in.

use std::sync::Arc;

use kheya::{
    config::RegionConfig,
    decision::{
        CoolDown, DriverSnapshot, Held, PendingRequest, Presence, RequestSnapshot, SnapshotEdge,
        TripEnd, WindowSnapshot,
    },
    domain::{DriverId, DurationMs, Place, RequestId, RiderId, UnixMs, VehicleClass},
    supply::Position,
};
use proptest::{option, prelude::*};
use serde_json::json;

use crate::chance::Chance;

/// The instant of every random window.
pub(crate) const NOW: UnixMs = UnixMs::new(1_767_720_600_000);

/// A window before it is put in order.
#[derive(Debug, Clone)]
pub(crate) struct WindowParts {
    pub(crate) config: RegionConfig,
    pub(crate) requests: Vec<PendingRequest>,
    pub(crate) drivers: Vec<DriverSnapshot>,
    pub(crate) edges: Option<Vec<SnapshotEdge>>,
}

impl WindowParts {
    pub(crate) fn snapshot(&self) -> WindowSnapshot {
        let drivers = self.drivers.iter().cloned().map(Arc::new).collect();
        WindowSnapshot::new(
            NOW,
            self.config.clone(),
            7,
            self.requests.clone(),
            drivers,
            self.edges.clone(),
        )
        .unwrap()
    }

    pub(crate) fn shuffled(&self, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut parts = self.clone();
        chance.shuffle(&mut parts.requests);
        chance.shuffle(&mut parts.drivers);
        if let Some(edges) = &mut parts.edges {
            chance.shuffle(edges);
        }
        parts
    }

    pub(crate) fn set(&mut self, patch: &serde_json::Value) {
        self.config = config(&self.config, patch);
    }
}

/// `config` with some values changed, each inside its rails.
pub(crate) fn config(config: &RegionConfig, patch: &serde_json::Value) -> RegionConfig {
    let patched = config.patched(patch.as_object().unwrap()).unwrap();
    assert_eq!(patched.clamped, [], "the test asks for what cannot be");
    patched.config
}

/// Windows of up to so many requests and drivers, searched for candidates.
pub(crate) fn searched(requests: usize, drivers: usize) -> impl Strategy<Value = WindowParts> {
    (1..=requests, 0..=drivers).prop_flat_map(|(requests, drivers)| {
        let requests = pending_requests(requests, drivers, places().prop_map(Some).boxed());
        let drivers = every_driver(drivers, places().prop_map(Some).boxed());
        (configs(), requests, drivers).prop_map(|(config, requests, drivers)| WindowParts {
            config,
            requests,
            drivers,
            edges: None,
        })
    })
}

/// Windows that bring their own edges, pairs given twice among them; places may be missing.
pub(crate) fn with_edges(requests: usize, drivers: usize) -> impl Strategy<Value = WindowParts> {
    (1..=requests, 1..=drivers).prop_flat_map(|(requests, drivers)| {
        let edge =
            (0..requests, 0..drivers, seconds(1500.0)).prop_map(|(request, driver, eta_s)| {
                SnapshotEdge {
                    request_id: request_id(request),
                    driver_id: driver_id(driver),
                    eta_s,
                }
            });
        let edges = prop::collection::vec(edge, 0..=4 * requests);
        let requests = pending_requests(requests, drivers, option::of(places()).boxed());
        let drivers = every_driver(drivers, option::of(places()).boxed());
        (configs(), requests, drivers, edges).prop_map(|(config, requests, drivers, edges)| {
            WindowParts {
                config,
                requests,
                drivers,
                edges: Some(edges),
            }
        })
    })
}

/// Ids are not padded, so that their order as bytes differs from the order of the numbers.
pub(crate) fn request_id(index: usize) -> RequestId {
    RequestId::new(&format!("r{index}")).unwrap()
}

pub(crate) fn driver_id(index: usize) -> DriverId {
    DriverId::new(&format!("d{index}")).unwrap()
}

/// Hot spots 2 to 25 km apart. Most places lie freely around one; some on a few corners that others
/// share, so that distances tie and cars stand where riders wait.
pub(crate) fn places() -> impl Strategy<Value = Place> {
    const SPOTS: [(f64, f64); 5] = [
        (23.7500, 90.3900),
        (23.7690, 90.3950),
        (23.7871, 90.4203),
        (23.7105, 90.4411),
        (23.9002, 90.3017),
    ];
    const CORNERS: [(f64, f64); 3] = [(0.0011, -0.0023), (0.0107, 0.0042), (-0.0219, 0.0153)];
    let place = |(lat, lng): (f64, f64), (north, east): (f64, f64)| {
        Place::new(lat + north, lng + east).unwrap()
    };
    let shared = (0..SPOTS.len(), 0..CORNERS.len());
    let free = (0..SPOTS.len(), -0.012..0.012_f64, -0.012..0.012_f64);
    let wide = (0..SPOTS.len(), -0.06..0.06_f64, -0.06..0.06_f64);
    prop_oneof![
        2 => shared.prop_map(move |(spot, corner)| place(SPOTS[spot], CORNERS[corner])),
        5 => free.prop_map(move |(spot, north, east)| place(SPOTS[spot], (north, east))),
        2 => wide.prop_map(move |(spot, north, east)| place(SPOTS[spot], (north, east))),
    ]
}

fn seconds(most: f64) -> impl Strategy<Value = f64> {
    // whole minutes among them, so that sums tie
    prop_oneof![
        0.0..most,
        (0..most as u32 / 60).prop_map(|m| f64::from(m) * 60.0)
    ]
}

/// An instant before now; on, just inside and just outside the limits among them.
fn ago(limit_ms: i64) -> impl Strategy<Value = UnixMs> {
    let exact = prop_oneof![Just(0), Just(limit_ms), Just(limit_ms + 1)];
    prop_oneof![exact, 0..=2 * limit_ms].prop_map(|ms| NOW - DurationMs::new(ms))
}

fn classes() -> impl Strategy<Value = VehicleClass> {
    prop_oneof![Just("car"), Just("moto")].prop_map(|name| VehicleClass::new(name).unwrap())
}

fn riders() -> impl Strategy<Value = RiderId> {
    (0..4).prop_map(|n| RiderId::new(&format!("rider{n}")).unwrap())
}

type MaybePlace = BoxedStrategy<Option<Place>>;

fn pending_requests(
    count: usize,
    drivers: usize,
    places: MaybePlace,
) -> impl Strategy<Value = Vec<PendingRequest>> {
    let excluded = prop::collection::vec((0..drivers.max(1)).prop_map(driver_id), 0..=3);
    let accepted = prop_oneof![
        3 => Just(vec![]),
        1 => classes().prop_map(|class| vec![class]),
    ];
    let request = (
        places,
        option::weighted(0.5, riders()),
        accepted,
        prop_oneof![1 => Just(NOW), 3 => ago(300_000)],
        option::weighted(0.2, prop_oneof![seconds(400.0), Just(86_400.0)]),
        option::weighted(0.2, seconds(1500.0)),
        prop_oneof![3 => Just(vec![]), 1 => excluded],
        prop_oneof![4 => Just(0_u32), 1 => 1..=4_u32],
    );
    prop::collection::vec(request, count).prop_map(|requests| {
        let requests = requests.into_iter().enumerate();
        let requests = requests.map(
            |(i, (place, rider_id, classes, at, cost, eta, out, left))| PendingRequest {
                request: Arc::new(RequestSnapshot {
                    id: request_id(i),
                    rider_id,
                    pickup: place.map(Position::new),
                    vehicle_classes: classes,
                    requested_at_ms: at,
                    unmatched_cost_s: cost,
                    max_pickup_eta_s: eta,
                    exclude_driver_ids: out,
                }),
                left_over: left,
            },
        );
        requests.collect()
    })
}

fn every_driver(count: usize, at: MaybePlace) -> impl Strategy<Value = Vec<DriverSnapshot>> {
    let cooldown =
        ((0..12_usize), option::of(riders()), -1..=1_i64).prop_map(|(request, rider_id, ahead)| {
            CoolDown {
                request_id: request_id(request),
                rider_id,
                until_ms: NOW + DurationMs::new(ahead),
            }
        });
    let trip_end = (places(), 0..900_000_i64).prop_map(|(place, ms)| TripEnd {
        place,
        at_ms: NOW + DurationMs::new(ms),
    });
    let driver = (
        at,
        option::of(ago(15_000)),
        option::of(classes()),
        option::of(0.0..=1.0_f64),
        option::of(ago(600_000)),
        prop_oneof![
            8 => Just(Presence::Available),
            1 => Just(Presence::Busy),
            1 => Just(Presence::Offline)
        ],
        prop_oneof![8 => Just(Held::None), 1 => Just(Held::Offered), 1 => Just(Held::OnTrip)],
        prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(cooldown, 1..=3)],
        option::weighted(0.1, trip_end),
    );
    prop::collection::vec(driver, count).prop_map(|drivers| {
        let drivers = drivers.into_iter().enumerate();
        let drivers = drivers.map(
            |(i, (place, seen, class, rate, idle, presence, held, cooldowns, trip_end))| {
                DriverSnapshot {
                    id: driver_id(i),
                    position: place.map(Position::new),
                    at_ms: seen,
                    vehicle_class: class,
                    acceptance_rate: rate,
                    idle_since_ms: idle,
                    presence,
                    held,
                    cooldowns,
                    trip_end,
                }
            },
        );
        drivers.collect()
    })
}

fn configs() -> impl Strategy<Value = RegionConfig> {
    let radii = prop_oneof![
        3 => Just(json!([2, 4, 7])),
        1 => Just(json!([0.5, 1, 3, 25])),
        1 => Just(json!([3])),
    ];
    let most_snapshot = prop_oneof![4 => Just(2000), 1 => 1..=40_u32];
    let zero_or = |most: f64| prop_oneof![1 => Just(0.0), 2 => 0.0..most];
    (
        (radii, 1..=6_u32, prop_oneof![6..=9_u32, Just(40)]),
        (100.0..1200.0_f64, 5.0..50.0_f64, 1.0..2.0_f64),
        (zero_or(2.0), zero_or(1.0), zero_or(300.0), 1.0..600.0_f64),
        most_snapshot,
    )
        .prop_map(
            |(
                (radii, min_candidates, max_candidates),
                (longest_s, speed, detour),
                (age_weight, idle_share, redispatch_s, idle_cap_s),
                most_snapshot,
            )| {
                // the whole idle bonus stays within the longest pickup, as the cross-check asks
                let idle_weight = (idle_share * longest_s / idle_cap_s * 0.999).min(10.0);
                let patch = json!({
                    "search_radii_km": radii, "min_candidates": min_candidates,
                    "max_candidates": max_candidates, "max_pickup_eta_s": longest_s,
                    "speed_kmh": speed, "detour": detour, "age_weight": age_weight,
                    "idle_weight": idle_weight, "redispatch_s": redispatch_s,
                    "idle_cap_s": idle_cap_s, "max_snapshot_requests": most_snapshot,
                });
                config(&RegionConfig::default(), &patch)
            },
        )
}
