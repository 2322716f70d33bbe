//! Reports, and the dispatch tier's own window.

use std::sync::Arc;

use kheya::{
    domain::{Nonce, UnixMs, WindowSeq},
    http::OwnWindowError,
    protocol::{OwnRefusal, ReportBody, ReportSource, Seal, TakeWindow, Taker},
    store::StoreError,
};
use serde_json::{Value, json};

use crate::support::{NOW, Service, dhaka, ping, request};

const WINDOWS: &str = "/v1/regions/dhaka/windows";

async fn seal_one(service: &Service) {
    let body = json!({"requests": [request("a")]});
    service.post("/v1/regions/dhaka/requests", body).await.ok();
    service.advance(5_000);
    let window_seq = WindowSeq::new(1);
    let taker = Taker::Fallback {
        nonce: Nonce::new(7),
    };
    let take = TakeWindow { window_seq, taker };
    let taken = service
        .store()
        .take_window(&dhaka(), take)
        .await
        .unwrap()
        .unwrap();
    let seal = Seal {
        window_seq,
        owner: taken.owner,
        body: ReportBody {
            source: ReportSource::Fallback,
            cause: Some("late".into()),
            requests: 1,
            unmatched: [("no_driver_in_range".into(), 1)].into(),
            ..ReportBody::default()
        },
        decisions: Some(r#"{"unmatched":[{"request_id":"a"}]}"#.into()),
    };
    service.store().seal(&dhaka(), seal).await.unwrap().unwrap();
}

#[tokio::test]
async fn reports_are_listed_and_one_has_its_decisions() {
    let service = Service::new();
    service.get(WINDOWS).await.is_problem(404, "unknown_region");
    seal_one(&service).await;
    let page = service.get(WINDOWS).await.ok();
    assert_eq!(
        (&page["windows"][0]["source"], &page["next"]),
        (&json!("fallback"), &json!(1))
    );
    assert!(page["windows"][0].get("decisions").is_none());
    let one = service.get(&format!("{WINDOWS}/1")).await.ok();
    assert_eq!(one["decisions"]["unmatched"][0]["request_id"], "a");
    assert_eq!(one["unmatched"], json!({"no_driver_in_range": 1}));
    assert_eq!(
        (&one["region"], &one["cause"]),
        (&json!("dhaka"), &json!("late"))
    );
    assert_eq!(one["closed_at_ms"], NOW + 3_000);
    let next = service.get(&format!("{WINDOWS}?after=1")).await.ok();
    assert_eq!(next, json!({"windows": [], "next": 1}));
    service
        .get(&format!("{WINDOWS}/2"))
        .await
        .is_problem(404, "unknown_window");
    service
        .get(&format!("{WINDOWS}/one"))
        .await
        .is_problem(422, "invalid");
    service
        .get(&format!("{WINDOWS}?after=-1"))
        .await
        .is_problem(422, "invalid");
    let region = service.get("/v1/regions/dhaka").await.ok();
    assert_eq!(region["last_window"]["window_seq"], 1);
}

#[tokio::test]
async fn an_own_window_is_checked_and_answered_with_the_runtime_s_bytes() {
    let service = Service::new();
    let path = format!("{WINDOWS}/w%201/solve");
    let body = json!({
        "requests": [request("a"), {"id": "bad"}], "drivers": [ping("d")], "lease_ms": 20_000,
        "edges": [{"request_id": "a", "driver_id": "d", "eta_s": 60}], "budget_ms": 100,
        "constraints": [{"name": "cap", "drivers": ["d"], "max": 1}],
    });
    let got = service.post(&path, body.clone()).await;
    assert_eq!(got.text, r#"{"window_id":"w"}"#);
    assert_eq!(got.headers["content-type"], "application/json");
    let call = service.runtime.calls.lock().pop().unwrap();
    assert_eq!(call.window_id.as_str(), "w 1");
    assert_eq!((call.requests.len(), call.rejected.len()), (1, 1));
    assert_eq!(call.lease_ms.unwrap().get(), 20_000);
    assert_eq!(call.edges.unwrap().len(), 1);
    assert_eq!(call.constraints[0].max, Some(1));

    let until_ms = UnixMs::new(NOW + 5_000);
    let failed: Arc<str> = "secret".into();
    for (error, status, code) in [
        (OwnRefusal::WindowConflict.into(), 409, "window_conflict"),
        (
            OwnRefusal::WindowInProgress { until_ms }.into(),
            409,
            "window_in_progress",
        ),
        (OwnRefusal::WindowLost.into(), 409, "window_in_progress"),
        (
            OwnRefusal::Quarantined { until_ms }.into(),
            503,
            "quarantined",
        ),
        (OwnRefusal::Paused.into(), 503, "paused"),
        (OwnRefusal::RegionFull.into(), 503, "region_full"),
        (OwnRefusal::TooLarge.into(), 413, "too_large"),
        (
            StoreError::OutcomeUnknown("x".into()).into(),
            504,
            "outcome_unknown",
        ),
        (OwnWindowError::Invalid(Vec::new()), 422, "invalid"),
        (OwnWindowError::Failed(failed), 500, "internal"),
    ] {
        *service.runtime.answer.lock() = Err(error);
        let got = service.post(&path, body.clone()).await;
        got.is_problem(status, code);
        assert!(!got.text.contains("secret"));
    }
}

#[tokio::test]
async fn a_wrong_own_window_never_reaches_the_runtime() {
    let service = Service::new();
    let path = format!("{WINDOWS}/w/solve");
    let wrong: Value = json!({"requests": 1, "edges": [{"eta_s": -1}], "lease_ms": 0, "constraints": [{"name": "c", "max": -1, "odd": 1}, 7]});
    let got = service.post(&path, wrong).await;
    got.is_problem(422, "invalid");
    let want = [
        "requests",
        "edges[0].request_id",
        "edges[0].driver_id",
        "edges[0].eta_s",
        "constraints[0].max",
        "constraints[0].odd",
        "constraints[1]",
        "lease_ms",
    ];
    assert_eq!(got.paths(), want);
    service
        .post(&path, json!({"requests": []}))
        .await
        .is_problem(422, "invalid");
    let many = json!({"requests": vec![1; 1_001]});
    service.post(&path, many).await.is_problem(413, "too_large");
    assert!(service.runtime.calls.lock().is_empty());
}
