//! A real server on the memory store, called over HTTP: the ends of trips come with pings, a rider
//! waits for the car round the corner, and what was recorded is decided the same again.

use std::time::{Duration, SystemTime};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::{
    command_line::run,
    server::{Api, Server},
};

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(now.unwrap().as_millis()).unwrap()
}

/// A place so many metres north of a corner.
fn place(metres: f64) -> Value {
    json!({"lat": 23.75 + metres / 111_195.0, "lng": 90.4})
}

fn ping(id: &str, metres: f64, more: &Value) -> Value {
    let mut ping = json!({"id": id, "at_ms": now_ms()});
    for part in [&place(metres), more] {
        for (name, value) in part.as_object().unwrap() {
            ping[name] = value.clone();
        }
    }
    ping
}

async fn send_pings(api: &Api, pings: &[Value]) {
    let (status, answer) = api.post("/drivers", &json!({"drivers": pings})).await;
    assert_eq!(
        (status, &answer["accepted"]),
        (200, &json!(pings.len())),
        "{answer}"
    );
}

async fn ask(api: &Api, id: &str, metres: f64) {
    let request = json!({"id": id, "pickup": place(metres)});
    let (status, answer) = api.post("/requests", &json!({"requests": [request]})).await;
    assert_eq!(status, 202, "{answer}");
}

/// Looks until something is so.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..150 {
        if let Some(seen) = look().await {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never: {what}");
}

async fn assignment(api: &Api, request: &str) -> Option<Value> {
    let (_, answer) = api.get(&format!("/requests/{request}")).await;
    (answer["state"] == "assigned").then(|| answer["assignment"].clone())
}

/// The newest window that planned somebody, with its decisions.
async fn planning_window(api: &Api) -> Option<Value> {
    let (_, page) = api.get("/windows?limit=1000").await;
    let windows = page["windows"].as_array().unwrap().iter();
    let seq = windows
        .filter(|window| window["unmatched"].get("planned").is_some())
        .filter_map(|window| window["window_seq"].as_u64())
        .next_back()?;
    Some(api.get(&format!("/windows/{seq}")).await.1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rider_waits_for_a_trip_that_ends_round_the_corner() {
    let dir = tempdir().unwrap();
    let record = dir.path().display().to_string();
    let mut server = Server::start(&["--record", &record]);
    let api = Api::new(&server.url, "dhaka");
    let settings = json!({
        "window_ms": 500, "budget_ms": 250, "grace_ms": 250, "max_location_age_ms": 60_000,
        "plan_ahead_ms": 60_000, "demand_ahead_ms": 60_000,
    });
    let (status, answer) = api.send(Method::PATCH, "/config", Some(&settings)).await;
    assert_eq!((status, &answer["clamped"]), (200, &json!([])), "{answer}");
    assert_eq!(answer["config"]["max_planned_ms"], 60_000);

    // one car takes the first rider, and tells where and when that trip ends
    send_pings(&api, &[ping("a", 0.0, &json!({}))]).await;
    ask(&api, "first", 50.0).await;
    let taken = until("the first rider gets a car", async || {
        assignment(&api, "first").await
    })
    .await;
    assert_eq!(taken["driver_id"], "a");
    let claim = json!({"request_id": "first", "fence": taken["fence"]});
    assert_eq!(api.post("/claims/a/confirm", &claim).await.0, 200);
    let end = json!({"lat": place(1_000.0)["lat"], "lng": 90.4, "at_ms": now_ms() + 20_000});
    let busy = ping("a", 300.0, &json!({"trip_end": end}));
    // the other car is free, and further away than the trip's end
    send_pings(&api, &[busy, ping("b", 4_500.0, &json!({}))]).await;

    ask(&api, "second", 1_050.0).await;
    let window = until("a window plans", async || planning_window(&api).await).await;
    assert_eq!(window["source"], "batch");
    assert_eq!(window["assigned"], 0);
    assert!(window["planned_age_s"].is_number(), "{window}");
    assert!(window["gain_vs_greedy_s"].is_null());
    let ahead = &window["decisions"]["ahead"];
    assert_eq!(ahead["planned"][0]["request_id"], "second");
    assert!(assignment(&api, "second").await.is_none());

    // the trip ends: its car takes the rider who waited for it
    assert_eq!(api.post("/claims/a/complete", &claim).await.0, 200);
    send_pings(&api, &[ping("a", 1_000.0, &json!({"trip_end": null}))]).await;
    let taken = until("the second rider gets a car", async || {
        assignment(&api, "second").await
    })
    .await;
    assert_eq!(taken["driver_id"], "a");

    // what was recorded, phantoms and all, is decided the same again
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    server.kill();
    let verified = run(["replay", "--verify", &record, "--format", "json"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let report: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!(report["decisions"]["different"], 0);
    assert!(
        report["decisions"]["identical"].as_u64().unwrap() >= 3,
        "{report}"
    );
}
