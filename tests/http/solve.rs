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

#[tokio::test]
async fn constraints_are_kept_proven_and_told() {
    let service = Service::new();
    let edge = |request: &str, driver: &str, eta_s: i64| json!({"request_id": request, "driver_id": driver, "eta_s": eta_s});
    let mut body = json!({
        "requests": [{"id": "r1"}, {"id": "r2"}, {"id": "r3"}],
        "drivers": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
        "edges": [edge("r1", "a", 60), edge("r2", "b", 50), edge("r3", "c", 70), edge("r3", "b", 90)],
        "constraints": [
            {"name": "airport", "requests": ["r1", "r2"], "max": 1},
            {"name": "van", "drivers": ["b"], "requests": ["r3"], "min": 2},
        ],
    });
    let answer = service
        .post("/v1/solve?certificate=true", body.clone())
        .await
        .ok();
    let pairs: Vec<_> = answer["assignments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            (
                pair["request_id"].as_str().unwrap(),
                pair["driver_id"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(pairs, [("r1", "a"), ("r3", "b")], "{answer}");
    assert_eq!(
        (&answer["status"], &answer["method"]),
        (&json!("optimal"), &json!("lp"))
    );
    assert_eq!(answer["unmatched"][0]["reason"], "outbid");
    let [airport, van] = [&answer["constraints"][0], &answer["constraints"][1]];
    assert_eq!((&airport["count"], &airport["max"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&van["count"], &van["min"], &van["shortfall"]),
        (&json!(1), &json!(2), &json!(1))
    );
    assert!(airport.get("shortfall").is_none());

    // the published prices and multipliers prove the cost: by hand, from the answer alone
    let proof = &answer["certificate"];
    let named = |list: &str, key: &str, id: &str, value: &str| {
        let entries = proof[list].as_array().unwrap().iter();
        let mut entries = entries.filter(|entry| entry[key] == id);
        entries
            .next()
            .map_or(0.0, |entry| entry[value].as_f64().unwrap())
    };
    let u = |id: &str| named("request_prices", "request_id", id, "price_s");
    let v = |id: &str| named("driver_prices", "driver_id", id, "price_s");
    let m = |name: &str| named("multipliers", "name", name, "multiplier_s");
    for (request, driver, eta_s, shift) in [
        ("r1", "a", 60.0, m("airport")),
        ("r2", "b", 50.0, m("airport")),
        ("r3", "c", 70.0, 0.0),
        ("r3", "b", 90.0, m("van")),
    ] {
        assert!(u(request) - v(driver) <= eta_s + shift + 1e-9);
    }
    assert!(m("airport") >= 0.0 && m("van") <= 0.0);
    let bound = u("r1") + u("r2") + u("r3") - v("a") - v("b") - v("c") - m("airport") - m("van");
    assert!(
        (bound - answer["total_cost_s"].as_f64().unwrap()).abs() < 1e-9,
        "{answer}"
    );
    assert_eq!(proof["dual_bound_s"], answer["total_cost_s"]);

    body["constraints"] = json!([{"name": "cap", "max": 0}]);
    let none = service.post("/v1/solve", body.clone()).await.ok();
    assert_eq!(none["unmatched"][2]["reason"], "constraint");
    body["constraints"] =
        json!([{"name": "cap", "drivers": ["a", "x"], "requests": ["y"], "max": 1}]);
    let unknown = service.post("/v1/solve", body.clone()).await;
    unknown.is_problem(422, "invalid");
    assert_eq!(
        unknown.paths(),
        ["constraints[0].drivers[1]", "constraints[0].requests[0]"]
    );
    body["constraints"] = json!([{"name": "cap"}, {"name": "cap", "max": 1}]);
    let unbounded = service.post("/v1/solve", body.clone()).await;
    assert_eq!(unbounded.paths(), ["constraints[0]", "constraints[1].name"]);
    body["constraints"] = json!([{"max": "many"}]);
    let shapeless = service.post("/v1/solve", body).await;
    assert_eq!(
        shapeless.paths(),
        ["constraints[0].name", "constraints[0].max"]
    );
}
