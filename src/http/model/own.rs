//! The dispatch tier's own window: body in, the runtime's bytes out.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    constraints::{ConstraintBody, ConstraintReport, constraints},
    drivers::{MAX_PINGS, PingBody, ping},
    entries::{Batch, RejectedEntry},
    requests::{MAX_REQUESTS, RequestBody, request},
    solve::UnmatchedRequest,
};
use crate::{
    decision::{MAX_CLIENT_SECONDS, SnapshotEdge},
    domain::{DriverId, DurationMs, RequestId, WindowId},
    http::{
        fields::{Errors, Object, entries, id, integer, number},
        problem::Problem,
        state::OwnWindowCall,
    },
    protocol::Fingerprint,
};

/// Most edges of one window.
const MAX_EDGES: usize = 400_000;

/// A pair with its travel time.
#[derive(Serialize, ToSchema)]
#[schema(as = Edge)]
#[serde(deny_unknown_fields)]
pub struct EdgeBody {
    /// The request.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub request_id: String,
    /// The driver.
    #[schema(min_length = 1, max_length = 128, pattern = "^[ -.0-~]+$")]
    pub driver_id: String,
    /// Travel time to the pickup.
    #[schema(minimum = 0, maximum = 86400)]
    pub eta_s: f64,
}

/// A window to decide now, with claims.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnWindowBody {
    /// 1 to 1,000; each stands alone. They never enter the region's pending pool.
    #[schema(min_items = 1, max_items = 1_000)]
    pub requests: Vec<RequestBody>,
    /// Left out: the region's supply. Else exactly these, first applied as pings.
    #[schema(max_items = 10_000)]
    pub drivers: Option<Vec<PingBody>>,
    /// Travel times of the caller's own; a pair that is not named is impossible.
    pub edges: Option<Vec<EdgeBody>>,
    /// Caps and floors to keep. Drivers that take no part in the window are passed over.
    #[schema(max_items = 64)]
    pub constraints: Option<Vec<ConstraintBody>>,
    /// Time for the decision; left out: the region's `budget_ms`.
    #[schema(minimum = 1, maximum = 30_000)]
    pub budget_ms: Option<i64>,
    /// Life of the claims, within the rails; left out: the region's `lease_ms`.
    #[schema(minimum = 1, maximum = 60_000)]
    pub lease_ms: Option<i64>,
}

/// A decided window. The same id and body get the same bytes again.
#[derive(Serialize, ToSchema)]
pub struct OwnWindowAnswer {
    /// The caller's name of it.
    pub window_id: String,
    /// The life of the data.
    pub generation: u64,
    /// `own`, or `fallback` when the solver did not end in time.
    pub source: String,
    /// The chosen pairs, with their claims.
    pub assignments: Vec<OwnAssignment>,
    /// Requests without a driver.
    pub unmatched: Vec<UnmatchedRequest>,
    /// Drivers that could not be chosen.
    pub excluded: Vec<ExcludedDriver>,
    /// Requests and pings that could not be read.
    pub rejected: Vec<RejectedEntry>,
    /// Cost of the pairs and of everyone left over.
    pub total_cost_s: f64,
    /// How far the solver came.
    pub status: String,
    /// How it solved.
    pub method: String,
    /// Relative distance to the bound.
    pub gap: f64,
    /// What oldest-first greedy would have cost more.
    pub gain_vs_greedy_s: Option<f64>,
    /// What greedy by edges would have cost more.
    pub gain_vs_greedy_edge_s: Option<f64>,
    /// What became of each constraint, by name; only where there are any. Pairs whose claim was lost
    /// do not count.
    #[schema(nullable = false)]
    pub constraints: Option<Vec<ConstraintReport>>,
    /// `branch_and_bound`, where an optimum is proven by a search and not by prices alone.
    #[schema(nullable = false)]
    pub proof: Option<String>,
    /// When, by the store's clock.
    pub decided_at_ms: i64,
}

/// A chosen pair with its claim.
#[derive(Serialize, ToSchema)]
pub struct OwnAssignment {
    /// The request.
    pub request_id: String,
    /// The driver.
    pub driver_id: String,
    /// The claim's version.
    pub fence: u64,
    /// End of the lease.
    pub lease_until_ms: i64,
    /// Its length.
    pub lease_ms: i64,
    /// Travel time to the pickup.
    pub eta_s: f64,
    /// Cost of the pair.
    pub cost_s: f64,
}

/// A driver that could not be chosen.
#[derive(Serialize, ToSchema)]
pub struct ExcludedDriver {
    /// The driver.
    pub driver_id: String,
    /// Why: the first that applies.
    pub reason: String,
}

/// Reads the body of an own window.
pub(crate) fn own_window(window_id: WindowId, body: Value) -> Result<OwnWindowCall, Problem> {
    // keys of a JSON value are sorted: the same body in another order or spacing is the same
    let fingerprint = Fingerprint::of(body.to_string().as_bytes());
    let mut errors = Errors::default();
    let Some(mut object) = Object::open(body, "", &mut errors) else {
        return Err(Problem::invalid(errors.into_vec()));
    };
    let requests = object
        .required_nested("requests", entries)
        .unwrap_or_default();
    let drivers = object.nested("drivers", entries);
    let edges = object.nested("edges", edges);
    let constraints = object.nested("constraints", constraints);
    let budget_ms = object.optional("budget_ms", integer(1, 30_000));
    let lease_ms = object.optional("lease_ms", integer(1, 60_000));
    object.close();
    limit("requests", requests.len(), MAX_REQUESTS)?;
    limit("drivers", drivers.as_ref().map_or(0, Vec::len), MAX_PINGS)?;
    limit("edges", edges.as_ref().map_or(0, Vec::len), MAX_EDGES)?;
    if requests.is_empty() && errors.is_empty() {
        errors.add(
            "requests",
            "empty",
            &Value::Null,
            "has at least one request",
        );
    }
    if !errors.is_empty() {
        return Err(Problem::invalid(errors.into_vec()));
    }
    let requests = Batch::read(requests, request);
    let mut rejected = requests.rejected;
    let drivers = drivers.map(|drivers| {
        let drivers = Batch::read(drivers, ping);
        rejected.extend(drivers.rejected);
        (drivers.entries, drivers.places)
    });
    let (drivers, driver_places) = drivers.map_or((None, Vec::new()), |(drivers, places)| {
        (Some(drivers), places)
    });
    Ok(OwnWindowCall {
        window_id,
        fingerprint,
        requests: requests.entries,
        request_places: requests.places,
        drivers,
        driver_places,
        edges,
        constraints: constraints.unwrap_or_default(),
        budget_ms: budget_ms.map(DurationMs::new),
        lease_ms: lease_ms.map(DurationMs::new),
        rejected,
    })
}

fn limit(name: &str, given: usize, most: usize) -> Result<(), Problem> {
    if given > most {
        return Err(Problem::too_large(format!(
            "{given} {name}: at most {most} are taken"
        )));
    }
    Ok(())
}

fn edges(value: Value, path: &str, errors: &mut Errors) -> Option<Vec<SnapshotEdge>> {
    let mut edges = Vec::new();
    for (i, entry) in entries(value, path, errors)?.into_iter().enumerate() {
        let Some(mut object) = Object::open(entry, &format!("{path}[{i}]"), errors) else {
            continue;
        };
        let request_id = object.required("request_id", id(RequestId::new));
        let driver_id = object.required("driver_id", id(DriverId::new));
        let eta_s = object.required("eta_s", number(0.0, MAX_CLIENT_SECONDS));
        object.close();
        if let (Some(request_id), Some(driver_id), Some(eta_s)) = (request_id, driver_id, eta_s) {
            edges.push(SnapshotEdge {
                request_id,
                driver_id,
                eta_s,
            });
        }
    }
    Some(edges)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::problem::Code;

    fn read(body: Value) -> Result<OwnWindowCall, Problem> {
        own_window(WindowId::new("w").unwrap(), body)
    }

    #[test]
    fn the_order_of_fields_does_not_make_another_body() {
        let one = serde_json::from_str(
            r#"{"lease_ms": 15000, "requests": [{"id": "a", "pickup": {"lat": 1, "lng": 2}}]}"#,
        );
        let one = one.unwrap();
        let other = serde_json::from_str(
            r#"{"requests":[{"pickup":{"lng":2,"lat":1},"id":"a"}],"lease_ms":15000}"#,
        );
        let other = other.unwrap();
        let (one, other) = (read(one).unwrap(), read(other).unwrap());
        assert_eq!(one.fingerprint, other.fingerprint);
        assert_eq!(one, other);
    }

    #[test]
    fn a_bad_entry_is_told_and_a_bad_body_refused() {
        let call = read(json!({
            "requests": [{"id": "a"}, {"id": "b", "pickup": {"lat": 1, "lng": 2}}],
            "drivers": [{"id": "x", "lat": 1, "lng": 2, "at_ms": 5}, 7],
        }));
        let call = call.unwrap();
        assert_eq!((call.requests.len(), call.rejected.len()), (1, 2));
        assert_eq!(call.drivers.unwrap().len(), 1);
        for bad in [
            json!({}),
            json!({"requests": []}),
            json!({"requests": [1], "constraints": [{"name": "cap", "max": -1}]}),
            json!({"requests": [1], "odd": []}),
        ] {
            assert_eq!(read(bad).unwrap_err().code(), Code::Invalid);
        }
        let long = json!({"requests": vec![1; 1001]});
        assert_eq!(read(long).unwrap_err().code(), Code::TooLarge);
    }
}
