//! Pings, who is near, one driver.

use std::io::Write as _;

use axum::{
    body::Body,
    http::{Request, header},
};
use serde_json::{Value, json};

use crate::support::{Got, NOW, Service, ping};

const DRIVERS: &str = "/v1/regions/dhaka/drivers";

async fn lines(service: &Service, text: &str, coding: Option<&str>) -> Got {
    let mut request = Request::post(DRIVERS).header(header::CONTENT_TYPE, "application/x-ndjson");
    let mut body = text.as_bytes().to_vec();
    if let Some(coding) = coding {
        request = request.header(header::CONTENT_ENCODING, coding);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&body).unwrap();
        body = encoder.finish().unwrap();
    }
    service.send(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn one_bad_ping_costs_the_others_nothing() {
    let service = Service::new();
    let body = json!({"drivers": [
        ping("a"), {"id": "b", "lat": 95, "lng": 1, "at_ms": 1, "colour": "red"},
        {"id": "c", "lat": 1, "lng": 1, "at_ms": NOW + 60_000}, ping("a"), 7,
    ]});
    let answer = service.post(DRIVERS, body).await.ok();
    assert_eq!(answer["accepted"], 1);
    assert_eq!(answer["moved"], 1);
    assert_eq!(answer["stale"], 1);
    let rejected = answer["rejected"].as_array().unwrap();
    let codes: Vec<(&Value, &Value)> = rejected.iter().map(|r| (&r["index"], &r["code"])).collect();
    let want = [
        (json!(1), json!("invalid")),
        (json!(2), json!("at_ms_in_future")),
        (json!(4), json!("invalid")),
    ];
    assert_eq!(codes, want.iter().map(|(i, c)| (i, c)).collect::<Vec<_>>());
    assert_eq!(rejected[0]["id"], "b");
    let detail = rejected[0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("lat") && detail.contains("colour"),
        "{detail}"
    );
    assert!(rejected[2]["id"].is_null());
}

#[tokio::test]
async fn pings_come_one_a_line_too() {
    let service = Service::new();
    let text = format!("{}\n\nnot json\n{}", ping("a"), ping("b"));
    let answer = lines(&service, &text, None).await.ok();
    assert_eq!(
        (&answer["accepted"], &answer["rejected"][0]["index"]),
        (&json!(2), &json!(1))
    );
    let again = lines(&service, &text, Some("gzip")).await.ok();
    assert_eq!(
        (&again["accepted"], &again["stale"]),
        (&json!(0), &json!(2))
    );
    lines(&service, "\n\n", None)
        .await
        .is_problem(422, "invalid");
    let many = "1\n".repeat(10_001);
    lines(&service, &many, None)
        .await
        .is_problem(413, "too_large");
}

#[tokio::test]
async fn batches_have_limits_in_number_and_inflated_size() {
    let service = Service::new();
    service
        .post(DRIVERS, json!({"drivers": []}))
        .await
        .is_problem(422, "invalid");
    service
        .post(DRIVERS, json!({}))
        .await
        .is_problem(422, "invalid");
    service
        .post(DRIVERS, json!([]))
        .await
        .is_problem(422, "invalid");
    let many = json!({"drivers": vec![1; 10_001]});
    service
        .post(DRIVERS, many)
        .await
        .is_problem(413, "too_large");
    let bomb = " ".repeat(20 << 20);
    lines(&service, &bomb, Some("gzip"))
        .await
        .is_problem(413, "too_large");
    lines(&service, "{}", Some("br"))
        .await
        .is_problem(415, "unsupported_media_type");
    let all = json!({"drivers": (0..10_000).map(|i| ping(&format!("d{i}"))).collect::<Vec<_>>()});
    assert_eq!(service.post(DRIVERS, all).await.ok()["accepted"], 10_000);
}

#[tokio::test]
async fn a_field_left_out_keeps_its_value_and_null_clears_it() {
    let service = Service::new();
    let mut full = ping("a");
    let more = json!({
        "heading_deg": 90, "speed_kmh": 30.5, "vehicle_class": "van", "acceptance_rate": 0.5,
        "idle_since_ms": NOW, "status": "busy", "trip_end": {"lat": 1, "lng": 2, "at_ms": NOW},
    });
    full.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    service.post(DRIVERS, json!({"drivers": [full]})).await.ok();
    let driver = service.get("/v1/regions/dhaka/drivers/a").await.ok();
    assert_eq!(
        (&driver["state"], &driver["heading_deg"]),
        (&json!("busy"), &json!(90.0))
    );
    assert_eq!(
        driver["trip_end"],
        json!({"lat": 1.0, "lng": 2.0, "at_ms": NOW})
    );
    assert!(driver["claim"].is_null());

    let update = json!({"id": "a", "lat": 1, "lng": 2, "at_ms": NOW + 1, "heading_deg": null, "trip_end": null});
    service
        .post(DRIVERS, json!({"drivers": [update]}))
        .await
        .ok();
    let driver = service.get("/v1/regions/dhaka/drivers/a").await.ok();
    assert_eq!(
        (&driver["state"], &driver["vehicle_class"]),
        (&json!("available"), &json!("van"))
    );
    assert!(driver.get("heading_deg").is_none() && driver.get("trip_end").is_none());
}

#[tokio::test]
async fn the_nearest_available_drivers_come_first() {
    let service = Service::new();
    let at = |id: &str, lat: f64| json!({"id": id, "lat": lat, "lng": 90.4, "at_ms": NOW});
    let mut busy = at("busy", 23.78);
    busy["status"] = json!("busy");
    let drivers = json!([
        at("b", 23.79),
        at("c", 23.79),
        at("a", 23.785),
        at("far", 24.5),
        busy
    ]);
    service
        .post(DRIVERS, json!({"drivers": drivers}))
        .await
        .ok();
    let found = service
        .get("/v1/regions/dhaka/drivers?lat=23.78&lng=90.4&radius_km=5&limit=2")
        .await
        .ok();
    let ids: Vec<&Value> = found["drivers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| &d["id"])
        .collect();
    assert_eq!(ids, [&json!("a"), &json!("b")]);
    let km = found["drivers"][0]["distance_km"].as_f64().unwrap();
    assert!((0.5..0.6).contains(&km), "{km}");
    service.advance(15_001);
    let stale = service
        .get("/v1/regions/dhaka/drivers?lat=23.78&lng=90.4")
        .await
        .ok();
    assert_eq!(stale["drivers"], json!([]));
    let wrong = service
        .get("/v1/regions/dhaka/drivers?lat=x&radius_km=-1&limit=0&colour=red")
        .await;
    wrong.is_problem(422, "invalid");
    assert_eq!(
        wrong.paths(),
        ["lat", "lng", "radius_km", "limit", "colour"]
    );
}

#[tokio::test]
async fn a_driver_goes_offline_unless_it_is_held() {
    let service = Service::new();
    service
        .get("/v1/regions/dhaka/drivers/a")
        .await
        .is_problem(404, "unknown_region");
    service.ping("a").await;
    service.ping("b").await;
    service
        .get("/v1/regions/dhaka/drivers/x")
        .await
        .is_problem(404, "unknown_driver");
    service
        .delete("/v1/regions/dhaka/drivers/x")
        .await
        .is_problem(404, "unknown_driver");
    service
        .get("/v1/regions/dhaka/drivers/a%2Fb")
        .await
        .is_problem(422, "invalid");
    service
        .get("/v1/regions/Dhaka/drivers/a")
        .await
        .is_problem(422, "invalid");
    let fence = service.assign("r", "a").await;
    service
        .delete("/v1/regions/dhaka/drivers/a")
        .await
        .is_problem(409, "held");
    let driver = service.get("/v1/regions/dhaka/drivers/a").await.ok();
    assert_eq!(driver["state"], "offered");
    assert_eq!(driver["claim"]["fence"], fence.get());
    assert_eq!(driver["claim"]["eta_s"], 1.5);
    let gone = service.delete("/v1/regions/dhaka/drivers/b").await.ok();
    assert_eq!(gone, json!({"id": "b", "state": "offline"}));
}
