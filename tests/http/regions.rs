//! The list, one region, tuning it.

use axum::{
    body::Body,
    http::{Request, header},
};
use kheya::config::ServeConfig;
use serde_json::{Value, json};

use crate::support::{Got, Service, dhaka};

const CONFIG: &str = "/v1/regions/dhaka/config";

async fn patch(service: &Service, path: &str, body: Value, if_match: Option<&str>) -> Got {
    let mut request =
        Request::patch(path).header(header::CONTENT_TYPE, "application/merge-patch+json");
    if let Some(version) = if_match {
        request = request.header(header::IF_MATCH, version);
    }
    service
        .send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

#[tokio::test]
async fn a_region_tells_how_it_is_served() {
    let service = Service::new();
    service
        .get("/v1/regions/dhaka")
        .await
        .is_problem(404, "unknown_region");
    assert_eq!(
        service.get("/v1/regions").await.ok(),
        json!({"regions": []})
    );
    service.ping("d").await;
    let got = service.get("/v1/regions/dhaka").await;
    let region = got.ok();
    assert_eq!(got.headers[header::ETAG], "\"1\"");
    assert_eq!(region["config"]["window_ms"], 3000);
    assert_eq!(region["level"], "batch_straight_line");
    assert_eq!(
        region["supply"],
        json!({"available": 1, "offered": 0, "on_trip": 0})
    );
    assert!(region["leader"].is_null() && region["last_window"].is_null());
    let list = service.get("/v1/regions").await.ok();
    assert_eq!(
        list["regions"],
        json!([{"region": "dhaka", "level": "batch_straight_line"}])
    );
}

#[tokio::test]
async fn a_patch_is_merged_clamped_and_versioned() {
    let service = Service::new();
    let got = patch(
        &service,
        CONFIG,
        json!({"window_ms": 99_000, "budget_ms": 700}),
        None,
    )
    .await;
    let answer = got.ok();
    assert_eq!(
        answer["clamped"],
        json!([{"path": "window_ms", "asked": 99_000, "used": 30_000}])
    );
    assert_eq!(
        answer["changes"]["budget_ms"],
        json!({"from": 500, "to": 700})
    );
    assert_eq!(answer["config_version"], 2);
    assert_eq!(got.headers[header::ETAG], "\"2\"");

    let dry = patch(
        &service,
        &format!("{CONFIG}?dry_run=true"),
        json!({"paused": true}),
        None,
    )
    .await
    .ok();
    assert_eq!(
        (&dry["dry_run"], &dry["config"]["paused"]),
        (&json!(true), &json!(true))
    );
    let region = service.get("/v1/regions/dhaka").await.ok();
    assert_eq!(
        (&region["config"]["paused"], &region["config_version"]),
        (&json!(false), &json!(2))
    );

    let stale = patch(&service, CONFIG, json!({"window_ms": null}), Some("\"1\"")).await;
    assert_eq!(
        stale.is_problem(412, "version_mismatch")["config_version"],
        2
    );
    let back = patch(&service, CONFIG, json!({"window_ms": null}), Some("\"2\""))
        .await
        .ok();
    assert_eq!(
        (&back["config"]["window_ms"], &back["config_version"]),
        (&json!(3000), &json!(3))
    );
    let same = patch(&service, CONFIG, json!({}), Some("*")).await.ok();
    assert_eq!(
        (&same["changes"], &same["config_version"]),
        (&json!({}), &json!(3))
    );

    let events = service.get("/v1/regions/dhaka/events").await.ok();
    let event = &events["events"][1];
    assert_eq!(
        (&event["type"], &event["actor"]),
        (&json!("config_changed"), &json!("local"))
    );
    assert_eq!(
        event["changes"],
        json!({"window_ms": {"from": 30_000, "to": 3_000}})
    );
    assert_eq!(event["config_version"], 3);
}

#[tokio::test]
async fn a_wrong_patch_changes_nothing_and_tells_everything() {
    let service = Service::new();
    let wrong = json!({"window_ms": "long", "paused": 1, "colour": "red"});
    let got = patch(&service, CONFIG, wrong, None).await;
    got.is_problem(422, "invalid");
    let mut paths = got.paths();
    paths.sort();
    assert_eq!(paths, ["colour", "paused", "window_ms"]);
    let crossed = patch(&service, CONFIG, json!({"lease_ms": 5_000}), None).await;
    assert_eq!(
        crossed.is_problem(422, "invalid")["errors"][0]["code"],
        "cross_check"
    );
    patch(&service, CONFIG, json!([]), None)
        .await
        .is_problem(422, "invalid");
    patch(&service, CONFIG, json!({}), Some("two"))
        .await
        .is_problem(422, "invalid");
    patch(&service, CONFIG, json!({}), Some("*"))
        .await
        .is_problem(412, "version_mismatch");
    let long = json!({"colour": "x".repeat(70_000)});
    patch(&service, CONFIG, long, None)
        .await
        .is_problem(413, "too_large");
    service
        .get("/v1/regions/dhaka")
        .await
        .is_problem(404, "unknown_region");
}

#[tokio::test]
async fn null_restores_the_node_s_default_and_named_regions_have_their_own() {
    let file = "[region_defaults]\nwindow_ms = 2000\n[regions.dhaka]\nwindow_ms = 4000";
    let path = std::path::Path::new("kheya.toml");
    let config = ServeConfig::load(Some((path, file)), [], Vec::new()).unwrap();
    let service = Service::with(config, None);
    service
        .app
        .config()
        .configure_regions(service.store())
        .await
        .unwrap();
    assert_eq!(
        service.get("/v1/regions/dhaka").await.ok()["config"]["window_ms"],
        4000
    );
    patch(&service, CONFIG, json!({"window_ms": 9000}), None)
        .await
        .ok();
    service
        .app
        .config()
        .configure_regions(service.store())
        .await
        .unwrap();
    assert_eq!(
        service
            .store()
            .overview(&dhaka())
            .await
            .unwrap()
            .rules
            .window_ms
            .get(),
        9000
    );
    let back = patch(&service, CONFIG, json!({"window_ms": null}), None)
        .await
        .ok();
    assert_eq!(back["config"]["window_ms"], 4000);
    let other = patch(
        &service,
        "/v1/regions/sylhet/config",
        json!({"budget_ms": 100}),
        None,
    )
    .await;
    assert_eq!(other.ok()["config"]["window_ms"], 2000);
}

#[tokio::test]
async fn patches_that_meet_are_merged() {
    let service = Service::new();
    let changes = [
        json!({"budget_ms": 600}),
        json!({"grace_ms": 300}),
        json!({"max_pending": 7}),
    ];
    let patches = changes.map(|change| patch(&service, CONFIG, change, None));
    futures_util::future::join_all(patches)
        .await
        .iter()
        .for_each(|got| drop(got.ok()));
    let config = &service.get("/v1/regions/dhaka").await.ok()["config"];
    assert_eq!(
        (&config["budget_ms"], &config["grace_ms"]),
        (&json!(600), &json!(300))
    );
    assert_eq!(config["max_pending"], 7);
}
