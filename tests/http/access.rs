//! Who may do what, where; rotation.

use std::fmt::Write as _;

use axum::{
    body::Body,
    http::{Request, header},
};
use kheya::{
    config::ServeConfig,
    http::{Server, TokenFile},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::support::{Got, Service, ping, request};

fn entry(name: &str, token: &str, role: &str, regions: &str) -> String {
    let mut sha256 = String::new();
    for byte in Sha256::digest(token) {
        write!(sha256, "{byte:02x}").unwrap();
    }
    format!("[[token]]\nname=\"{name}\"\nsha256=\"{sha256}\"\nrole=\"{role}\"\nregions={regions}\n")
}

fn guarded() -> (Service, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    let text = ["read", "dispatch", "ops"].map(|role| entry(role, role, role, "[\"dhaka\"]"));
    std::fs::write(
        &path,
        text.concat() + &entry("all", "all", "dispatch", "[\"*\"]"),
    )
    .unwrap();
    let tokens = TokenFile::open(path).unwrap();
    (Service::with(ServeConfig::default(), Some(tokens)), dir)
}

async fn send(service: &Service, token: &str, method: &str, path: &str, body: &Value) -> Got {
    let mut request = Request::builder().method(method).uri(path);
    if !token.is_empty() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.header(header::CONTENT_TYPE, "application/json");
    service
        .send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

/// Every guarded route: its method, its path in a region, and a body for it.
fn routes(region: &str) -> Vec<(&'static str, String, Value)> {
    let at = |path: &str| format!("/v1/regions/{region}{path}");
    let claim = json!({"request_id": "r", "fence": 1, "reason": "declined", "lease_ms": 1});
    vec![
        ("GET", at(""), json!(null)),
        ("PATCH", at("/config"), json!({})),
        ("POST", at("/drivers"), json!({"drivers": [ping("d")]})),
        ("GET", at("/drivers?lat=1&lng=1"), json!(null)),
        ("GET", at("/drivers/d"), json!(null)),
        ("DELETE", at("/drivers/d"), json!(null)),
        ("POST", at("/requests"), json!({"requests": [request("r")]})),
        ("GET", at("/requests"), json!(null)),
        ("GET", at("/requests/r"), json!(null)),
        ("DELETE", at("/requests/r"), json!(null)),
        (
            "POST",
            at("/windows/w/solve"),
            json!({"requests": [request("r")]}),
        ),
        ("GET", at("/windows"), json!(null)),
        ("GET", at("/windows/1"), json!(null)),
        ("GET", at("/events"), json!(null)),
        ("GET", at("/events/stream?after=1-1"), json!(null)),
        ("GET", at("/claims"), json!(null)),
        ("POST", at("/claims/d/confirm"), claim.clone()),
        ("POST", at("/claims/d/release"), claim.clone()),
        ("POST", at("/claims/d/complete"), claim.clone()),
        ("POST", at("/claims/d/extend"), claim),
        ("POST", at("/reconcile"), json!({"generation": 1})),
    ]
}

#[tokio::test]
async fn every_role_on_every_route_in_every_region() {
    let (service, _dir) = guarded();
    for region in ["dhaka", "sylhet"] {
        for (method, path, body) in routes(region) {
            send(&service, "", method, &path, &body)
                .await
                .is_problem(401, "unauthenticated");
            let unknown = send(&service, "guess", method, &path, &body).await;
            unknown.is_problem(401, "unauthenticated");
            assert!(
                unknown.headers[header::WWW_AUTHENTICATE]
                    .to_str()
                    .unwrap()
                    .starts_with("Bearer")
            );
            for role in ["read", "dispatch", "ops"] {
                let may = match method {
                    "GET" => true,
                    "PATCH" => role == "ops",
                    _ => role == "dispatch",
                };
                let got = send(&service, role, method, &path, &body).await;
                if may && region == "dhaka" {
                    assert!(
                        got.status != 401 && got.status != 403,
                        "{role} {method} {path}: {}",
                        got.text
                    );
                } else {
                    got.is_problem(403, "forbidden");
                }
            }
        }
    }
}

#[tokio::test]
async fn routes_without_a_region_follow_the_role_alone() {
    let (service, _dir) = guarded();
    let window = json!({"requests": [], "drivers": []});
    for (role, status) in [("", 401), ("read", 403), ("ops", 403), ("dispatch", 200)] {
        let got = send(&service, role, "POST", "/v1/solve", &window).await;
        assert_eq!(got.status, status, "{role}");
    }
    for path in ["/metrics", "/docs", "/openapi.json", "/v1/regions"] {
        send(&service, "", "GET", path, &json!(null))
            .await
            .is_problem(401, "unauthenticated");
        assert_eq!(
            send(&service, "read", "GET", path, &json!(null))
                .await
                .status,
            200
        );
    }
    assert_eq!(
        send(&service, "", "GET", "/livez", &json!(null))
            .await
            .status,
        200
    );
    send(&service, "", "GET", "/readyz", &json!(null))
        .await
        .is_problem(503, "not_ready");
}

#[tokio::test]
async fn other_regions_are_absent_from_lists_and_changes_have_their_actor() {
    let (service, _dir) = guarded();
    let body = json!({"drivers": [ping("d")]});
    for region in ["dhaka", "sylhet"] {
        send(
            &service,
            "all",
            "POST",
            &format!("/v1/regions/{region}/drivers"),
            &body,
        )
        .await
        .ok();
    }
    let all = send(&service, "all", "GET", "/v1/regions", &json!(null))
        .await
        .ok();
    assert_eq!(all["regions"].as_array().unwrap().len(), 2);
    let one = send(&service, "read", "GET", "/v1/regions", &json!(null))
        .await
        .ok();
    assert_eq!(one["regions"].as_array().unwrap().len(), 1);
    let metrics = send(&service, "read", "GET", "/metrics", &json!(null)).await;
    assert!(metrics.text.contains("kheya_pings_total{region=\"dhaka\""));
    assert!(!metrics.text.contains("sylhet"), "{}", metrics.text);
    send(
        &service,
        "ops",
        "PATCH",
        "/v1/regions/dhaka/config",
        &json!({"grace_ms": 300}),
    )
    .await
    .ok();
    let events = send(
        &service,
        "read",
        "GET",
        "/v1/regions/dhaka/events",
        &json!(null),
    )
    .await
    .ok();
    assert_eq!(events["events"][0]["actor"], "ops");
}

#[tokio::test]
async fn several_tokens_live_at_once_and_old_ones_go() {
    let (service, dir) = guarded();
    let tokens = service.app.tokens().unwrap().clone();
    let path = dir.path().join("tokens.toml");
    let get = |token: &'static str| {
        let service = &service;
        async move {
            send(service, token, "GET", "/v1/regions", &json!(null))
                .await
                .status
        }
    };
    std::fs::write(
        &path,
        entry("a", "read", "read", "[]") + &entry("a", "new", "read", "[]"),
    )
    .unwrap();
    tokens.reload().unwrap();
    assert_eq!(
        (get("read").await, get("new").await),
        (200.try_into().unwrap(), 200.try_into().unwrap())
    );
    std::fs::write(&path, "[[token]]").unwrap();
    tokens.reload().unwrap_err();
    assert_eq!(get("new").await, 200);
    std::fs::write(&path, entry("a", "new", "read", "[]")).unwrap();
    tokens.reload().unwrap();
    assert_eq!(
        (get("read").await, get("new").await),
        (401.try_into().unwrap(), 200.try_into().unwrap())
    );
}

#[tokio::test]
async fn without_tokens_only_loopback_is_listened_on() {
    let config = ServeConfig {
        listen: "0.0.0.0:0".parse().unwrap(),
        ..ServeConfig::default()
    };
    let error = Server::bind(Service::with(config, None).app)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("--tokens"), "{error}");
}
