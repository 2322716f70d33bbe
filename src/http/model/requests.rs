//! Requests: bodies in, states out.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    drivers::{IdText, PlaceBody},
    entries::RejectedEntry,
};
use crate::{
    decision::MAX_CLIENT_SECONDS,
    domain::{CostMs, DriverId, DurationMs, RequestId, RiderId, UnixMs, VehicleClass},
    http::fields::{Errors, Object, id, instant, integer, list, number, place},
    protocol::{Cancelled, RequestDraft, RequestState, RequestView, Taken},
};

/// Most requests of a batch.
pub const MAX_REQUESTS: usize = 1_000;
/// Most drivers that a request may exclude, and classes that it may name.
const MAX_NAMED: usize = 32;

/// A batch of requests.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestsBody {
    /// 1 to 1,000; each stands alone.
    #[schema(min_items = 1, max_items = 1_000)]
    pub requests: Vec<RequestBody>,
}

/// A rider waiting for a driver.
#[derive(Serialize, ToSchema)]
#[schema(as = Request)]
#[serde(deny_unknown_fields)]
pub struct RequestBody {
    /// Its id; the same id with the same body is the same request.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub id: String,
    /// The rider, who is kept apart from drivers that declined.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub rider_id: Option<String>,
    /// Where the rider waits.
    pub pickup: PlaceBody,
    /// Where the rider goes.
    pub dropoff: Option<PlaceBody>,
    /// Classes that will do; left out: any.
    #[schema(max_items = 32)]
    pub vehicle_classes: Option<Vec<IdText>>,
    /// Since when the rider waits; left out: since it arrives.
    #[schema(minimum = 0)]
    pub requested_at_ms: Option<i64>,
    /// How long the rider waits; left out: the region's `max_wait_ms`.
    #[schema(minimum = 1000, maximum = 86_400_000)]
    pub max_wait_ms: Option<i64>,
    /// Cost of leaving the request over.
    #[schema(minimum = 0, maximum = 86400)]
    pub unmatched_cost_s: Option<f64>,
    /// Longest way of a driver to the pickup.
    #[schema(minimum = 0, maximum = 86400)]
    pub max_pickup_eta_s: Option<f64>,
    /// Drivers that will not do.
    #[schema(max_items = 32)]
    pub exclude_driver_ids: Option<Vec<IdText>>,
}

/// What became of a batch of requests.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequestsAnswer {
    /// Taken in, in the order sent.
    pub requests: Vec<TakenRequest>,
    /// Not taken.
    pub rejected: Vec<RejectedEntry>,
}

/// A request that was taken in.
#[derive(Debug, Serialize, ToSchema)]
pub struct TakenRequest {
    /// Its id.
    pub id: String,
    /// Where it stood at the first answer.
    #[schema(value_type = String)]
    pub state: RequestState,
    /// The window that decides it first.
    pub window_seq: u64,
    /// When that window closes: no later than this, bar an outage.
    #[schema(value_type = i64)]
    pub closes_at_ms: UnixMs,
    /// This is the first answer again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// A request.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequestAnswer {
    /// Its id.
    pub id: String,
    /// `pending`, `assigned`, `confirmed`, `cancelled`, `expired` or `released`.
    #[schema(value_type = String)]
    pub state: RequestState,
    /// Claims made for it so far.
    pub attempts: u32,
    /// Its present claim, or the one it ended with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub assignment: Option<AssignmentBody>,
    /// Since when the rider waits.
    #[schema(value_type = i64)]
    pub requested_at_ms: UnixMs,
    /// The last instant at which it may be matched.
    #[schema(value_type = i64)]
    pub deadline_ms: UnixMs,
    /// When it ended, its trip included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub ended_at_ms: Option<UnixMs>,
}

/// Whom a request was given.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssignmentBody {
    /// The driver.
    pub driver_id: String,
    /// The claim's version.
    pub fence: u64,
    /// Travel time to the pickup; absent when the trip is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub eta_s: Option<f64>,
    /// End of the lease, while the driver is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub lease_until_ms: Option<UnixMs>,
    /// Its length.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lease_ms: Option<i64>,
}

/// A page of requests, by id.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequestsPage {
    /// The requests.
    pub requests: Vec<RequestAnswer>,
    /// Go on after this id; `null` at the end.
    pub next: Option<String>,
}

/// A request was taken back.
#[derive(Debug, Serialize, ToSchema)]
pub struct CancelledAnswer {
    /// Its id.
    pub id: String,
    /// `cancelled`.
    #[schema(value_type = String)]
    pub state: RequestState,
    /// When.
    #[schema(value_type = i64)]
    pub cancelled_at_ms: UnixMs,
    /// The driver that was held for it and is free now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub driver_id: Option<String>,
    /// The fence of that claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fence: Option<u64>,
}

/// The states of a request, by their names.
pub(crate) const STATES: [(&str, RequestState); 6] = [
    ("pending", RequestState::Pending),
    ("assigned", RequestState::Assigned),
    ("confirmed", RequestState::Confirmed),
    ("cancelled", RequestState::Cancelled),
    ("expired", RequestState::Expired),
    ("released", RequestState::Released),
];

/// Reads one request.
pub(crate) fn request(value: Value, path: &str, errors: &mut Errors) -> Option<RequestDraft> {
    let mut object = Object::open(value, path, errors)?;
    let id_read = object.required("id", id(RequestId::new));
    let rider_id = object.optional("rider_id", id(RiderId::new));
    let pickup = object.required_nested("pickup", place);
    let dropoff = object.nested("dropoff", place);
    let classes = object.optional("vehicle_classes", list(MAX_NAMED, id(VehicleClass::new)));
    let requested_at_ms = object.optional("requested_at_ms", instant);
    let max_wait_ms = object.optional("max_wait_ms", integer(1_000, 86_400_000));
    let unmatched_cost_s = object.optional("unmatched_cost_s", number(0.0, MAX_CLIENT_SECONDS));
    let max_pickup_eta_s = object.optional("max_pickup_eta_s", number(0.0, MAX_CLIENT_SECONDS));
    let exclude = object.optional("exclude_driver_ids", list(MAX_NAMED, id(DriverId::new)));
    object.close();
    Some(RequestDraft {
        id: id_read?,
        rider_id,
        pickup: pickup?,
        dropoff,
        vehicle_classes: classes.unwrap_or_default(),
        requested_at_ms,
        max_wait_ms: max_wait_ms.map(DurationMs::new),
        unmatched_cost: unmatched_cost_s.map(CostMs::from_seconds),
        max_pickup_eta: max_pickup_eta_s.map(DurationMs::from_seconds),
        exclude_driver_ids: exclude.unwrap_or_default(),
    })
}

impl From<Taken> for TakenRequest {
    fn from(taken: Taken) -> Self {
        Self {
            id: taken.id.to_string(),
            state: taken.state,
            window_seq: taken.place.window_seq.get(),
            closes_at_ms: taken.place.closes_at_ms,
            replayed: taken.replayed,
        }
    }
}

impl From<&RequestView> for RequestAnswer {
    fn from(view: &RequestView) -> Self {
        Self {
            id: view.id.to_string(),
            state: view.state,
            attempts: view.attempts,
            assignment: view.assignment.as_ref().map(|assignment| AssignmentBody {
                driver_id: assignment.driver_id.to_string(),
                fence: assignment.fence.get(),
                eta_s: assignment.eta.map(DurationMs::as_seconds),
                lease_until_ms: assignment.lease_until_ms,
                lease_ms: assignment.lease_ms.map(DurationMs::get),
            }),
            requested_at_ms: view.requested_at_ms,
            deadline_ms: view.deadline_ms,
            ended_at_ms: view.ended_at_ms,
        }
    }
}

impl From<Cancelled> for CancelledAnswer {
    fn from(cancelled: Cancelled) -> Self {
        let (driver, fence) = cancelled.freed.unzip();
        Self {
            id: cancelled.request_id.to_string(),
            state: RequestState::Cancelled,
            cancelled_at_ms: cancelled.at_ms,
            driver_id: driver.map(|driver| driver.to_string()),
            fence: fence.map(u64::from),
        }
    }
}
