//! Intake, states, cancelling.

use kheya::{
    domain::UnixMs,
    http::Level,
    protocol::{Answer, IntakeRefusal},
    store::StoreError,
};
use serde_json::{Value, json};

use crate::support::{NOW, Service, request};

const REQUESTS: &str = "/v1/regions/dhaka/requests";

#[tokio::test]
async fn requests_are_taken_in_once_and_repeated_calls_get_the_first_answer() {
    let service = Service::new();
    let mut full = request("full");
    let more = json!({
        "rider_id": "rider", "dropoff": {"lat": 1, "lng": 2}, "vehicle_classes": ["van"],
        "requested_at_ms": NOW - 5, "max_wait_ms": 60_000, "unmatched_cost_s": 900.5,
        "max_pickup_eta_s": 300, "exclude_driver_ids": ["x"],
    });
    full.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let body = json!({"requests": [request("a"), full, {"id": "bad", "pickup": {"lat": 1}}, request("a")]});
    let got = service.post(REQUESTS, body).await;
    assert_eq!(got.status, 202);
    let answer = got.json();
    let want = json!({"id": "a", "state": "pending", "window_seq": 1, "closes_at_ms": NOW + 3000});
    assert_eq!(answer["requests"][0], want);
    assert_eq!(answer["requests"][1]["id"], "full");
    let codes: Vec<&Value> = answer["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["code"])
        .collect();
    assert_eq!(codes, [&json!("invalid"), &json!("duplicate_in_batch")]);
    assert_eq!(answer["rejected"][1]["index"], 3);

    service.advance(5_000);
    let again = service
        .post(REQUESTS, json!({"requests": [request("a")]}))
        .await
        .ok();
    assert_eq!(again["requests"][0]["closes_at_ms"], NOW + 3000);
    assert_eq!(again["requests"][0]["replayed"], true);
}

#[tokio::test]
async fn a_batch_of_which_nothing_is_taken_says_why() {
    let service = Service::new();
    service
        .post(REQUESTS, json!({"requests": []}))
        .await
        .is_problem(422, "invalid");
    service
        .post(REQUESTS, json!({"requests": vec![1; 1_001]}))
        .await
        .is_problem(413, "too_large");
    let old = json!({"id": "old", "pickup": {"lat": 1, "lng": 1}, "requested_at_ms": 5});
    let future =
        json!({"id": "new", "pickup": {"lat": 1, "lng": 1}, "requested_at_ms": NOW + 60_000});
    let got = service
        .post(REQUESTS, json!({"requests": [old, future]}))
        .await;
    let body = got.is_problem(422, "invalid");
    assert_eq!(got.paths(), ["requests[0]", "requests[1]"]);
    assert_eq!(body["errors"][0]["code"], "already_expired");
    assert_eq!(body["errors"][1]["code"], "requested_at_in_future");

    service
        .post(REQUESTS, json!({"requests": [request("a")]}))
        .await
        .ok();
    let mut other = request("a");
    other["rider_id"] = json!("somebody");
    let conflict = json!({"requests": [other]});
    service
        .post(REQUESTS, conflict)
        .await
        .is_problem(409, "id_conflict");

    let patch = json!({"max_pending": 1});
    service
        .call("PATCH", "/v1/regions/dhaka/config", Some(patch))
        .await
        .ok();
    service
        .post(REQUESTS, json!({"requests": [request("b"), {}]}))
        .await
        .is_problem(503, "region_full");
    service
        .call(
            "PATCH",
            "/v1/regions/dhaka/config",
            Some(json!({"paused": true})),
        )
        .await
        .ok();
    service
        .post(REQUESTS, json!({"requests": [request("b")]}))
        .await
        .is_problem(503, "paused");
}

#[tokio::test]
async fn an_outage_is_told_at_once_and_a_quarantine_says_when_to_come_again() {
    let service = Service::new();
    let body = json!({"requests": [request("a")]});
    service.post(REQUESTS, body.clone()).await.ok();
    let until_ms = UnixMs::new(NOW + 42_500);
    let refusal = Answer::Intake(Err(IntakeRefusal::Quarantined { until_ms }));
    *service.store.answers.lock() = Some(refusal);
    let got = service.post(REQUESTS, body.clone()).await;
    got.is_problem(503, "quarantined");
    assert_eq!(got.headers["retry-after"], "43");
    for (error, status, code) in [
        (
            StoreError::Unavailable("x".into()),
            503,
            "store_unavailable",
        ),
        (
            StoreError::OutcomeUnknown("x".into()),
            504,
            "outcome_unknown",
        ),
        (StoreError::TooManyRegions(9), 503, "too_many_regions"),
        (StoreError::Broken("secret".into()), 500, "internal"),
    ] {
        *service.store.fails.lock() = Some(error);
        let got = service.post(REQUESTS, body.clone()).await;
        got.is_problem(status, code);
        assert!(!got.text.contains("secret"));
    }
    *service.runtime.level.lock() = Level::Unavailable;
    service
        .post(REQUESTS, body)
        .await
        .is_problem(503, "store_unavailable");
}

#[tokio::test]
async fn requests_are_listed_by_page_and_state() {
    let service = Service::new();
    service
        .get(REQUESTS)
        .await
        .is_problem(404, "unknown_region");
    let body = json!({"requests": [request("a"), request("b"), request("c")]});
    service.post(REQUESTS, body).await.ok();
    service.delete(&format!("{REQUESTS}/b")).await.ok();
    let page = service
        .get(&format!("{REQUESTS}?state=pending&limit=1"))
        .await
        .ok();
    assert_eq!(
        (&page["requests"][0]["id"], &page["next"]),
        (&json!("a"), &json!("a"))
    );
    let page = service
        .get(&format!("{REQUESTS}?state=pending&after=a"))
        .await
        .ok();
    assert_eq!(
        (&page["requests"][0]["id"], &page["next"]),
        (&json!("c"), &json!(null))
    );
    let wrong = service
        .get(&format!("{REQUESTS}?state=lost&after=a/b&limit=1001"))
        .await;
    wrong.is_problem(422, "invalid");
    assert_eq!(wrong.paths(), ["state", "after", "limit"]);
    service
        .get(&format!("{REQUESTS}/x"))
        .await
        .is_problem(404, "unknown_request");
    let one = service.get(&format!("{REQUESTS}/a")).await.ok();
    assert_eq!(
        (&one["state"], &one["attempts"]),
        (&json!("pending"), &json!(0))
    );
}

#[tokio::test]
async fn a_cancelled_request_frees_its_driver() {
    let service = Service::new();
    service.ping("d").await;
    let fence = service.assign("r", "d").await;
    let one = service.get(&format!("{REQUESTS}/r")).await.ok();
    assert_eq!(one["assignment"]["driver_id"], "d");
    assert_eq!(one["assignment"]["lease_ms"], 15_000);
    let cancelled = service.delete(&format!("{REQUESTS}/r")).await.ok();
    let want = json!({"id": "r", "state": "cancelled", "cancelled_at_ms": NOW, "driver_id": "d", "fence": fence.get()});
    assert_eq!(cancelled, want);
    service.advance(100);
    assert_eq!(service.delete(&format!("{REQUESTS}/r")).await.ok(), want);
    service
        .delete(&format!("{REQUESTS}/x"))
        .await
        .is_problem(404, "unknown_request");
    let fence = service.assign("r2", "d").await;
    let confirm = json!({"request_id": "r2", "fence": fence.get()});
    service
        .post("/v1/regions/dhaka/claims/d/confirm", confirm)
        .await
        .ok();
    service
        .delete(&format!("{REQUESTS}/r2"))
        .await
        .is_problem(409, "already_confirmed");
}
