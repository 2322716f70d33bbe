//! Confirm, release, complete, extend, the list, reconcile.

use kheya::domain::{DriverId, Fence, Generation, RequestId};
use kheya::protocol::{Answer, ReconcileAnswer, ReconcileRefusal, Restored};
use serde_json::{Value, json};

use crate::support::{NOW, Service, request};

async fn verb(service: &Service, verb: &str, body: Value) -> crate::support::Got {
    service
        .post(&format!("/v1/regions/dhaka/claims/d/{verb}"), body)
        .await
}

#[tokio::test]
async fn a_trip_from_offer_to_end() {
    let service = Service::new();
    service.ping("d").await;
    let fence = service.assign("r", "d").await.get();
    let claim = json!({"request_id": "r", "fence": fence});
    let mut longer = claim.clone();
    longer["lease_ms"] = json!(30_000);
    let extended = verb(&service, "extend", longer).await.ok();
    assert_eq!(extended["lease_until_ms"], NOW + 30_000);
    verb(&service, "complete", claim.clone())
        .await
        .is_problem(409, "not_confirmed");
    let confirmed = verb(&service, "confirm", claim.clone()).await.ok();
    let want = json!({"driver_id": "d", "request_id": "r", "fence": fence, "state": "on_trip", "now_ms": NOW});
    assert_eq!(confirmed, want);
    service.advance(10);
    assert_eq!(verb(&service, "confirm", claim.clone()).await.ok(), want);
    let mut release = claim.clone();
    release["reason"] = json!("declined");
    verb(&service, "release", release)
        .await
        .is_problem(409, "already_confirmed");
    let listed = service
        .get("/v1/regions/dhaka/claims?state=on_trip")
        .await
        .ok();
    assert_eq!(listed["claims"][0]["driver_id"], "d");
    assert_eq!(listed["claims"][0]["fence"], fence);
    let mut complete = claim;
    complete["outcome"] = json!("no_show");
    assert_eq!(
        verb(&service, "complete", complete).await.ok()["state"],
        "available"
    );
    let listed = service.get("/v1/regions/dhaka/claims").await.ok();
    assert_eq!(listed, json!({"claims": [], "next": null}));
}

#[tokio::test]
async fn refusals_have_their_codes() {
    let service = Service::new();
    let claim = |fence: u64| json!({"request_id": "r", "fence": fence});
    verb(&service, "confirm", claim(1))
        .await
        .is_problem(404, "unknown_region");
    service.ping("d").await;
    verb(&service, "confirm", claim(1))
        .await
        .is_problem(404, "unknown_request");
    let fence = service.assign("r", "d").await.get();
    verb(&service, "confirm", claim(fence - 1))
        .await
        .is_problem(409, "fence_stale");
    let mut release = claim(fence);
    release["reason"] = json!("timeout");
    assert_eq!(
        verb(&service, "release", release).await.ok()["state"],
        "available"
    );
    verb(&service, "confirm", claim(fence))
        .await
        .is_problem(409, "request_closed");
    service.ping("d2").await;
    let fence = service.assign("late", "d2").await.get();
    service.advance(15_000);
    let late = json!({"request_id": "late", "fence": fence});
    let late = service
        .post("/v1/regions/dhaka/claims/d2/confirm", late)
        .await;
    late.is_problem(409, "lease_expired");

    let wrong = verb(
        &service,
        "release",
        json!({"fence": -1, "reason": "bored", "x": 1}),
    )
    .await;
    wrong.is_problem(422, "invalid");
    assert_eq!(wrong.paths(), ["request_id", "fence", "reason", "x"]);
    let wrong = verb(
        &service,
        "extend",
        json!({"request_id": "r", "fence": 1, "lease_ms": 86_400_001}),
    )
    .await;
    assert_eq!(wrong.paths(), ["lease_ms"]);
    let wrong = verb(
        &service,
        "complete",
        json!({"request_id": "r", "fence": 1, "outcome": "?"}),
    )
    .await;
    assert_eq!(wrong.paths(), ["outcome"]);
}

#[tokio::test]
async fn reconcile_tells_what_was_restored_and_what_was_not() {
    let service = Service::new();
    let path = "/v1/regions/dhaka/reconcile";
    service.ping("d").await;
    let told = json!({"generation": 1, "on_trip": [], "pending": [], "done": true});
    let got = service.post(path, told.clone()).await;
    let generation = got.is_problem(409, "generation_changed")["generation"].clone();
    let told = json!({"generation": generation, "on_trip": [{"driver_id": "d", "request_id": "r"}, {}], "pending": [request("p"), 7]});
    service.post(path, told.clone()).await.ok();
    *service.store.answers.lock() = Some(Answer::Reconcile(Ok(ReconcileAnswer {
        restored: vec![Restored {
            driver_id: DriverId::new("d").unwrap(),
            request_id: RequestId::new("r").unwrap(),
            fence: Fence::new(9),
        }],
        ..ReconcileAnswer::default()
    })));
    let answer = service.post(path, told).await.ok();
    assert_eq!(
        answer["restored"],
        json!([{"request_id": "r", "driver_id": "d", "fence": 9}])
    );
    let lists: Vec<(&Value, &Value)> = answer["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (&r["list"], &r["index"]))
        .collect();
    assert_eq!(
        lists,
        [
            (&json!("on_trip"), &json!(1)),
            (&json!("pending"), &json!(1))
        ]
    );
    let refusal = ReconcileRefusal::GenerationChanged {
        generation: Generation::new(5),
    };
    *service.store.answers.lock() = Some(Answer::Reconcile(Err(refusal)));
    service
        .post(path, json!({"generation": 4}))
        .await
        .is_problem(409, "generation_changed");
    service
        .post(path, json!({"on_trip": 1}))
        .await
        .is_problem(422, "invalid");
    let many = json!({"generation": 4, "pending": vec![1; 1_001]});
    service.post(path, many).await.is_problem(413, "too_large");
}
