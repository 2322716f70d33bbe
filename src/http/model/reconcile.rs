//! Reconciling: what the dispatch tier tells after data loss.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    entries::{Batch, RejectedEntry, placed},
    requests::{MAX_REQUESTS, RequestBody, request},
};
use crate::{
    domain::{DriverId, Generation, MAX_VERSION, RequestId},
    http::{
        fields::{Errors, Object, entries, flag, id, integer},
        problem::Problem,
    },
    protocol::{Reconcile, ReconcileAnswer, TripTold},
};

/// What is true. Long tellings come in several calls, the last of them `done`.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReconcileBody {
    /// The generation that is told.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991u64)]
    pub generation: u64,
    /// Trips under way, at most 1,000 a call.
    #[schema(max_items = 1_000)]
    pub on_trip: Option<Vec<TripBody>>,
    /// Requests that wait, at most 1,000 a call.
    #[schema(max_items = 1_000)]
    pub pending: Option<Vec<RequestBody>>,
    /// Everything is told: trips that the store holds and nobody told are over.
    pub done: Option<bool>,
}

/// A trip that is under way.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TripBody {
    /// The driver.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub driver_id: String,
    /// The request.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub request_id: String,
}

/// What became of the telling.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReconciledAnswer {
    /// Trips that are held, and requests that are pending.
    pub restored: Vec<RestoredEntry>,
    /// What was not restored.
    pub rejected: Vec<RejectedTelling>,
}

/// A trip that is held again, or a request that is pending again.
#[derive(Debug, Serialize, ToSchema)]
pub struct RestoredEntry {
    /// The request.
    pub request_id: String,
    /// The driver of a trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub driver_id: Option<String>,
    /// The fence of a trip that counts from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fence: Option<u64>,
}

/// An entry that was not restored.
#[derive(Debug, Serialize, ToSchema)]
pub struct RejectedTelling {
    /// The list it stands in: `on_trip` or `pending`.
    #[schema(value_type = String)]
    pub list: &'static str,
    /// The entry.
    #[serde(flatten)]
    pub entry: RejectedEntry,
}

/// A telling that can be read, and what of it cannot.
pub(crate) struct Telling {
    pub(crate) reconcile: Reconcile,
    trip_places: Vec<usize>,
    request_places: Vec<usize>,
    rejected: Vec<RejectedTelling>,
}

/// Reads the body of a reconcile.
pub(crate) fn telling(body: Value) -> Result<Telling, Problem> {
    let mut errors = Errors::default();
    let Some(mut object) = Object::open(body, "", &mut errors) else {
        return Err(Problem::invalid(errors.into_vec()));
    };
    let generation = object.required("generation", integer(0, MAX_VERSION as i64));
    let trips = object.nested("on_trip", entries).unwrap_or_default();
    let requests = object.nested("pending", entries).unwrap_or_default();
    let done = object.optional("done", flag).unwrap_or_default();
    object.close();
    let Some(generation) = generation.filter(|_| errors.is_empty()) else {
        return Err(Problem::invalid(errors.into_vec()));
    };
    if trips.len().max(requests.len()) > MAX_REQUESTS {
        return Err(Problem::too_large(
            "a call has at most 1000 trips and 1000 requests",
        ));
    }
    let trips = Batch::read(trips, trip);
    let requests = Batch::read(requests, request);
    let mut rejected = listed("on_trip", trips.rejected);
    rejected.extend(listed("pending", requests.rejected));
    Ok(Telling {
        reconcile: Reconcile {
            generation: Generation::new(generation.unsigned_abs()),
            on_trip: trips.entries,
            pending: requests.entries,
            done,
        },
        trip_places: trips.places,
        request_places: requests.places,
        rejected,
    })
}

fn listed(list: &'static str, entries: Vec<RejectedEntry>) -> Vec<RejectedTelling> {
    let listed = entries
        .into_iter()
        .map(|entry| RejectedTelling { list, entry });
    listed.collect()
}

fn trip(value: Value, path: &str, errors: &mut Errors) -> Option<TripTold> {
    let mut object = Object::open(value, path, errors)?;
    let driver_id = object.required("driver_id", id(DriverId::new));
    let request_id = object.required("request_id", id(RequestId::new));
    object.close();
    Some(TripTold {
        driver_id: driver_id?,
        request_id: request_id?,
    })
}

/// What is needed to tell the answer, once the telling itself is gone to the store.
pub(crate) struct Places {
    trips: Vec<usize>,
    requests: Vec<usize>,
    rejected: Vec<RejectedTelling>,
}

impl Telling {
    pub(crate) fn split(self) -> (Reconcile, Places) {
        let places = Places {
            trips: self.trip_places,
            requests: self.request_places,
            rejected: self.rejected,
        };
        (self.reconcile, places)
    }
}

impl ReconciledAnswer {
    pub(crate) fn new(answer: ReconcileAnswer, places: Places) -> Self {
        let trips = answer.restored.into_iter().map(|trip| RestoredEntry {
            request_id: trip.request_id.to_string(),
            driver_id: Some(trip.driver_id.to_string()),
            fence: Some(trip.fence.get()),
        });
        let pending = answer.pending.into_iter().map(|taken| RestoredEntry {
            request_id: taken.id.to_string(),
            driver_id: None,
            fence: None,
        });
        let restored = trips.chain(pending).collect();
        let mut rejected = places.rejected;
        let trips = placed(answer.rejected_trips, &places.trips).collect();
        rejected.extend(listed("on_trip", trips));
        let requests = placed(answer.rejected_requests, &places.requests).collect();
        rejected.extend(listed("pending", requests));
        Self { restored, rejected }
    }
}
