//! Drivers: pings in, states out.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::entries::RejectedEntry;
use crate::{
    domain::{DriverId, Finite, UnixMs, VehicleClass},
    http::fields::{Errors, Object, Read, choice, id, instant, lat_lng, number},
    protocol::{
        Claim, ClaimPhase, ClaimState, DriverState, DriverStatus, DriverView, Ping, TripEnd,
    },
};

/// Most pings of a batch.
pub const MAX_PINGS: usize = 10_000;

/// An id: 1 to 128 printable ASCII characters without `/`.
#[derive(Serialize, ToSchema)]
#[schema(as = Id, pattern = "^[ -.0-~]{1,128}$")]
pub struct IdText(pub String);

/// A place on earth.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Place)]
#[serde(deny_unknown_fields)]
pub struct PlaceBody {
    /// Latitude in degrees.
    #[schema(minimum = -90, maximum = 90)]
    pub lat: f64,
    /// Longitude in degrees.
    #[schema(minimum = -180, maximum = 180)]
    pub lng: f64,
}

/// A batch of pings.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PingsBody {
    /// 1 to 10,000; each stands alone.
    #[schema(min_items = 1, max_items = 10_000)]
    pub drivers: Vec<PingBody>,
}

/// A driver's report of itself. A field left out keeps its value, `null` clears it.
#[derive(Serialize, ToSchema)]
#[schema(as = Ping)]
#[serde(deny_unknown_fields)]
pub struct PingBody {
    /// The driver.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub id: String,
    /// Latitude in degrees.
    #[schema(minimum = -90, maximum = 90)]
    pub lat: f64,
    /// Longitude in degrees.
    #[schema(minimum = -180, maximum = 180)]
    pub lng: f64,
    /// When, by the driver's clock; the newest wins.
    #[schema(minimum = 0)]
    pub at_ms: i64,
    /// Heading in degrees from north.
    #[schema(minimum = 0, maximum = 360)]
    pub heading_deg: Option<f64>,
    /// Speed.
    #[schema(minimum = 0, maximum = 500)]
    pub speed_kmh: Option<f64>,
    /// The class of the car.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub vehicle_class: Option<String>,
    /// Share of offers that the driver accepts.
    #[schema(minimum = 0, maximum = 1)]
    pub acceptance_rate: Option<f64>,
    /// Since when the driver has been without a rider.
    #[schema(minimum = 0)]
    pub idle_since_ms: Option<i64>,
    /// What the driver says of itself; left out: `available`.
    pub status: Option<StatusName>,
    /// Where and when the present trip ends.
    pub trip_end: Option<TripEndBody>,
}

/// What a driver says of itself.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DriverStatus)]
pub enum StatusName {
    /// Ready for a rider.
    Available,
    /// On a trip that the service does not know.
    Busy,
    /// Not working.
    Offline,
}

/// Where and when a trip ends.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = TripEnd)]
#[serde(deny_unknown_fields)]
pub struct TripEndBody {
    /// Latitude in degrees.
    #[schema(minimum = -90, maximum = 90)]
    pub lat: f64,
    /// Longitude in degrees.
    #[schema(minimum = -180, maximum = 180)]
    pub lng: f64,
    /// When.
    #[schema(minimum = 0)]
    pub at_ms: i64,
}

/// What became of a batch of pings: `accepted + stale + rejected` is the number sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct PingsAnswer {
    /// Newer than what was known.
    pub accepted: u32,
    /// Of the accepted: new, or into another cell of the index.
    pub moved: u32,
    /// Not newer than what was known.
    pub stale: u32,
    /// Not usable.
    pub rejected: Vec<RejectedEntry>,
}

/// A driver.
#[derive(Debug, Serialize, ToSchema)]
pub struct DriverAnswer {
    /// Its id.
    pub id: String,
    /// Its claim's state if it has one, else what it says of itself.
    #[schema(value_type = String)]
    pub state: DriverState,
    /// Latitude in degrees; absent before the first ping, as are the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lat: Option<f64>,
    /// Longitude in degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lng: Option<f64>,
    /// When the newest ping was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub at_ms: Option<UnixMs>,
    /// When it was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub received_ms: Option<UnixMs>,
    /// Heading in degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub heading_deg: Option<f64>,
    /// Speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub speed_kmh: Option<f64>,
    /// The class of the car.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub vehicle_class: Option<String>,
    /// Share of offers accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub acceptance_rate: Option<f64>,
    /// Since when without a rider.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub idle_since_ms: Option<UnixMs>,
    /// Where and when the present trip ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub trip_end: Option<TripEndBody>,
    /// What the driver is held for; `null` when it is free.
    pub claim: Option<ClaimBody>,
}

/// What a driver is held for.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimBody {
    /// The request.
    pub request_id: String,
    /// The claim's version.
    pub fence: u64,
    /// `offered` or `on_trip`.
    #[schema(value_type = String)]
    pub state: ClaimState,
    /// Travel time to the pickup.
    pub eta_s: f64,
    /// Cost of the pair.
    pub cost_s: f64,
    /// When it was made.
    #[schema(value_type = i64)]
    pub made_ms: UnixMs,
    /// The region's window that decided it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub window_seq: Option<u64>,
    /// End of the lease, while the driver is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub lease_until_ms: Option<UnixMs>,
    /// Its length when it was last set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lease_ms: Option<i64>,
    /// When the trip is ended if nobody completes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub trip_until_ms: Option<UnixMs>,
}

/// A driver that could be chosen.
#[derive(Debug, Serialize, ToSchema)]
pub struct NearbyDriver {
    /// Its id.
    pub id: String,
    /// Latitude in degrees.
    pub lat: f64,
    /// Longitude in degrees.
    pub lng: f64,
    /// Great-circle distance.
    pub distance_km: f64,
    /// When the newest ping was sent.
    #[schema(value_type = i64)]
    pub at_ms: UnixMs,
    /// The class of the car.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub vehicle_class: Option<String>,
}

/// Drivers near a place, the nearest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct NearbyAnswer {
    /// The drivers.
    pub drivers: Vec<NearbyDriver>,
    /// The store's clock.
    #[schema(value_type = i64)]
    pub now_ms: UnixMs,
}

/// A driver was taken offline.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedDriver {
    /// Its id.
    pub id: String,
    /// `offline`.
    #[schema(value_type = String)]
    pub state: DriverState,
}

/// Reads one ping.
pub(crate) fn ping(value: Value, path: &str, errors: &mut Errors) -> Option<Ping> {
    let statuses = [
        ("available", DriverStatus::Available),
        ("busy", DriverStatus::Busy),
        ("offline", DriverStatus::Offline),
    ];
    let mut object = Object::open(value, path, errors)?;
    let id_read = object.required("id", id(DriverId::new));
    let place = lat_lng(&mut object);
    let at_ms = object.required("at_ms", instant);
    let heading_deg = object.patch("heading_deg", finite(0.0, 360.0));
    let speed_kmh = object.patch("speed_kmh", finite(0.0, 500.0));
    let vehicle_class = object.patch("vehicle_class", id(VehicleClass::new));
    let acceptance_rate = object.patch("acceptance_rate", finite(0.0, 1.0));
    let idle_since_ms = object.patch("idle_since_ms", instant);
    let status = object.optional("status", choice(&statuses));
    let trip_end = object.patch_nested("trip_end", trip_end);
    object.close();
    Some(Ping {
        id: id_read?,
        place: place?,
        at_ms: at_ms?,
        status: status.unwrap_or_default(),
        heading_deg,
        speed_kmh,
        vehicle_class,
        acceptance_rate,
        idle_since_ms,
        trip_end,
    })
}

fn finite(min: f64, max: f64) -> impl Fn(&Value) -> Read<Finite> {
    move |value| number(min, max)(value).map(Finite::or_zero)
}

fn trip_end(value: Value, path: &str, errors: &mut Errors) -> Option<TripEnd> {
    let mut object = Object::open(value, path, errors)?;
    let place = lat_lng(&mut object);
    let at_ms = object.required("at_ms", instant);
    object.close();
    Some(TripEnd {
        place: place?,
        at_ms: at_ms?,
    })
}

impl From<&Claim> for ClaimBody {
    fn from(claim: &Claim) -> Self {
        let (lease, trip_until_ms) = match claim.phase {
            ClaimPhase::Offered {
                lease_until_ms,
                lease_ms,
            } => (Some((lease_until_ms, lease_ms)), None),
            ClaimPhase::OnTrip { until_ms } => (None, Some(until_ms)),
        };
        Self {
            request_id: claim.request_id.to_string(),
            fence: claim.fence.get(),
            state: claim.state(),
            eta_s: claim.eta.as_seconds(),
            cost_s: claim.cost.as_seconds(),
            made_ms: claim.made_ms,
            window_seq: claim.window_seq.map(u64::from),
            lease_until_ms: lease.map(|(until, _)| until),
            lease_ms: lease.map(|(_, length)| length.get()),
            trip_until_ms,
        }
    }
}

impl From<&DriverView> for DriverAnswer {
    fn from(view: &DriverView) -> Self {
        let presence = view.presence.as_ref();
        Self {
            id: view.id.to_string(),
            state: view.state,
            lat: presence.map(|p| p.place.lat()),
            lng: presence.map(|p| p.place.lng()),
            at_ms: presence.map(|p| p.at_ms),
            received_ms: presence.map(|p| p.received_ms),
            heading_deg: presence.and_then(|p| p.heading_deg).map(Finite::get),
            speed_kmh: presence.and_then(|p| p.speed_kmh).map(Finite::get),
            vehicle_class: presence
                .and_then(|p| p.vehicle_class.as_ref())
                .map(ToString::to_string),
            acceptance_rate: presence.and_then(|p| p.acceptance_rate).map(Finite::get),
            idle_since_ms: presence.and_then(|p| p.idle_since_ms),
            trip_end: presence.and_then(|p| p.trip_end).map(|told| TripEndBody {
                lat: told.end.place.lat(),
                lng: told.end.place.lng(),
                at_ms: told.end.at_ms.get(),
            }),
            claim: view.claim.as_ref().map(ClaimBody::from),
        }
    }
}
