//! `POST /v1/solve`.

use axum::{
    body::Body,
    http::{Request, header},
};
use serde_json::json;

use crate::support::Service;

#[tokio::test]
async fn a_window_with_places_or_edges_is_solved() {
    let service = Service::new();
    let body = json!({
        "requests": [{"id": "r1", "pickup": {"lat": 23.78, "lng": 90.4}}],
        "drivers": [{"id": "far", "lat": 23.79, "lng": 90.4}, {"id": "near", "lat": 23.781, "lng": 90.4}],
        "eta": {"model": "straight_line", "speed_kmh": 30, "detour": 1.3}, "budget_ms": 100,
    });
    let answer = service.post("/v1/solve", body).await.ok();
    assert_eq!(answer["assignments"][0]["driver_id"], "near");
    assert_eq!(
        (&answer["objective"], &answer["status"]),
        (&json!("cost"), &json!("optimal"))
    );
    assert!(answer.get("certificate").is_none());

    let body = json!({
        "requests": [{"id": "r1"}, {"id": "r2"}], "drivers": [{"id": "d"}], "method": "hungarian",
        "edges": [{"request_id": "r1", "driver_id": "d", "eta_s": 60}, {"request_id": "r2", "driver_id": "d", "eta_s": 50}],
    });
    let answer = service.post("/v1/solve?certificate=true", body).await.ok();
    assert_eq!(answer["assignments"][0]["request_id"], "r2");
    assert_eq!(
        answer["unmatched"][0],
        json!({"request_id": "r1", "reason": "outbid"})
    );
    assert_eq!(
        answer["certificate"]["dual_bound_s"],
        answer["total_cost_s"]
    );
}

#[tokio::test]
async fn a_published_driver_price_is_what_one_more_such_driver_saves() {
    let service = Service::new();
    let etas = [
        ("r1", "d1", 60.5),
        ("r1", "d2", 90.0),
        ("r2", "d1", 50.0),
        ("r2", "d3", 400.0),
        ("r3", "d2", 120.25),
        ("r3", "d3", 130.0),
        ("r4", "d1", 70.0),
    ];
    let body = |method: &str, twin_of: Option<&str>| {
        let edge = |(request, driver, eta_s): (&str, &str, f64)| json!({"request_id": request, "driver_id": driver, "eta_s": eta_s});
        let twins = etas.iter().filter(|edge| Some(edge.1) == twin_of);
        let twins = twins.map(|&(request, _, eta_s)| edge((request, "twin", eta_s)));
        let edges: Vec<_> = etas.iter().copied().map(edge).chain(twins).collect();
        json!({
            "requests": [{"id": "r1"}, {"id": "r2"}, {"id": "r3"}, {"id": "r4", "unmatched_cost_s": 300}],
            "drivers": [{"id": "d1"}, {"id": "d2"}, {"id": "d3"}, {"id": "idle"}, {"id": "twin"}],
            "edges": edges, "method": method,
        })
    };
    let total_s = |answer: &serde_json::Value| answer["total_cost_s"].as_f64().unwrap();
    for method in ["sparse", "hungarian"] {
        let path = "/v1/solve?certificate=true";
        let answer = service.post(path, body(method, None)).await.ok();
        let prices = answer["certificate"]["driver_prices"].as_array().unwrap();
        let mut saved = 0;
        for driver in ["d1", "d2", "d3", "idle"] {
            let with_twin = service.post("/v1/solve", body(method, Some(driver))).await;
            let saves_s = total_s(&answer) - total_s(&with_twin.ok());
            let price = prices.iter().find(|price| price["driver_id"] == driver);
            let price_s = price.map_or(0.0, |price| price["price_s"].as_f64().unwrap());
            assert!(
                (price_s - saves_s).abs() < 1e-6,
                "{driver}: {price_s} {saves_s}"
            );
            saved += i32::from(saves_s > 0.0);
        }
        assert!(saved >= 2, "prices of 0 prove little");
    }
}

#[tokio::test]
async fn wrong_bodies_get_the_code_that_tells_what_is_wrong() {
    let service = Service::new();
    let raw = |kind: &str, body: &str| {
        let request = Request::post("/v1/solve").header(header::CONTENT_TYPE, kind);
        service.send(request.body(Body::from(body.to_owned())).unwrap())
    };
    raw("application/json", "{")
        .await
        .is_problem(400, "malformed");
    raw("application/json", "")
        .await
        .is_problem(400, "malformed");
    raw("text/plain", "{}")
        .await
        .is_problem(415, "unsupported_media_type");
    let invalid = raw(
        "application/json",
        r#"{"requests":[{"id":""},{}],"drivers":7,"x":1}"#,
    )
    .await;
    invalid.is_problem(422, "invalid");
    assert_eq!(
        invalid.paths(),
        ["requests[0].id", "requests[1].id", "drivers", "x"]
    );

    let twice = json!({"requests": [], "drivers": [{"id": "d", "lat": 0, "lng": 0}, {"id": "d", "lat": 0, "lng": 0}]});
    service
        .post("/v1/solve", twice)
        .await
        .is_problem(422, "invalid");
    let unknown = service
        .post(
            "/v1/solve?certificat=1",
            json!({"requests": [], "drivers": []}),
        )
        .await;
    unknown.is_problem(422, "invalid");
    let many: Vec<_> = (0..5_001).map(|i| json!({"id": format!("r{i}")})).collect();
    let body = json!({"requests": many, "drivers": [], "edges": []});
    service
        .post("/v1/solve", body)
        .await
        .is_problem(413, "too_large");
    let dense: Vec<_> = (0..301).map(|i| json!({"id": format!("r{i}")})).collect();
    let body = json!({"requests": dense, "drivers": [], "edges": [], "method": "hungarian"});
    assert_eq!(service.post("/v1/solve", body).await.paths(), ["method"]);
    let budget = json!({"requests": [], "drivers": [], "budget_ms": 30_001});
    assert_eq!(
        service.post("/v1/solve", budget).await.paths(),
        ["budget_ms"]
    );
}
