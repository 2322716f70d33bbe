//! Cursor pages, long poll, the stream.

use std::time::Duration;

use axum::{
    body::{Body, BodyDataStream},
    http::{Request, Response},
};
use futures_util::StreamExt as _;
use kheya::http::Phase;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::{NOW, Service, request};

const EVENTS: &str = "/v1/regions/dhaka/events";

async fn take_in(service: &Service, id: &str) {
    let body = json!({"requests": [request(id)]});
    service.post("/v1/regions/dhaka/requests", body).await.ok();
}

fn ids(page: &Value) -> Vec<&str> {
    let events = page["events"].as_array().unwrap().iter();
    events
        .map(|event| event["request_id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn events_are_read_by_cursor() {
    let service = Service::new();
    service.get(EVENTS).await.is_problem(404, "unknown_region");
    for id in ["a", "b", "c"] {
        take_in(&service, id).await;
    }
    let first = service.get(&format!("{EVENTS}?limit=2")).await.ok();
    assert_eq!(ids(&first), ["a", "b"]);
    let event = &first["events"][0];
    assert_eq!(
        (&event["type"], &event["region"]),
        (&json!("requested"), &json!("dhaka"))
    );
    assert_eq!(
        (&event["at_ms"], &event["window_seq"]),
        (&json!(NOW), &json!(1))
    );
    assert_eq!(first["next"], first["events"][1]["cursor"]);
    let next = first["next"].as_str().unwrap();
    let rest = service.get(&format!("{EVENTS}?after={next}")).await.ok();
    assert_eq!(ids(&rest), ["c"]);
    let latest = service.get(&format!("{EVENTS}?after=latest")).await.ok();
    assert_eq!(
        (&latest["events"], &latest["next"]),
        (&json!([]), &rest["next"])
    );
    let gone = service
        .get(&format!("{EVENTS}?after=1-1"))
        .await
        .is_problem(410, "cursor_gone");
    let oldest = gone["oldest"].as_str().unwrap();
    let all = service.get(&format!("{EVENTS}?after={oldest}")).await.ok();
    assert_eq!(ids(&all), ["a", "b", "c"]);
    let wrong = service
        .get(&format!("{EVENTS}?after=x&wait_ms=30001&limit=0"))
        .await;
    assert_eq!(wrong.paths(), ["after", "wait_ms", "limit"]);
}

#[tokio::test]
async fn a_long_poll_waits_for_the_next_event() {
    let service = Service::new();
    take_in(&service, "a").await;
    let started = std::time::Instant::now();
    let none = service
        .get(&format!("{EVENTS}?after=latest&wait_ms=60"))
        .await
        .ok();
    assert_eq!(none["events"], json!([]));
    assert!(started.elapsed() >= Duration::from_millis(60));
    let path = format!("{EVENTS}?after=latest&wait_ms=20000");
    let later = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        take_in(&service, "b").await;
    };
    let (page, ()) = tokio::join!(service.get(&path), later);
    assert_eq!(ids(&page.ok()), ["b"]);
    let ending = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        service.app.lifecycle().advance(Phase::Draining);
    };
    let (page, ()) = tokio::join!(service.get(&path), ending);
    assert_eq!(page.ok()["events"], json!([]));
}

async fn follow(service: &Service, after: Option<&str>) -> Response<Body> {
    let mut request = Request::get(format!("{EVENTS}/stream"));
    if let Some(cursor) = after {
        request = request.header("Last-Event-ID", cursor);
    }
    let request = request.body(Body::empty()).unwrap();
    service.router.clone().oneshot(request).await.unwrap()
}

/// The next event of a stream: its id, type and data.
async fn next(stream: &mut BodyDataStream) -> (String, String, Value) {
    let chunk = tokio::time::timeout(Duration::from_secs(5), stream.next())
        .await
        .unwrap();
    let text = String::from_utf8(chunk.unwrap().unwrap().to_vec()).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    let data = serde_json::from_str(&field("data:")).unwrap();
    (field("id:"), field("event:"), data)
}

#[tokio::test]
async fn a_stream_resumes_after_the_last_event_read() {
    let service = Service::new();
    take_in(&service, "a").await;
    let response = follow(&service, None).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    let (cursor, kind, data) = next(&mut stream).await;
    assert_eq!(
        (kind.as_str(), &data["request_id"]),
        ("requested", &json!("a"))
    );
    assert_eq!(data["cursor"], cursor.as_str());
    take_in(&service, "b").await;
    assert_eq!(next(&mut stream).await.2["request_id"], "b");
    drop(stream);
    take_in(&service, "c").await;
    let mut stream = follow(&service, Some(&cursor))
        .await
        .into_body()
        .into_data_stream();
    assert_eq!(next(&mut stream).await.2["request_id"], "b");
    assert_eq!(next(&mut stream).await.2["request_id"], "c");
    service.app.lifecycle().advance(Phase::Draining);
    let end = tokio::time::timeout(Duration::from_secs(5), stream.next())
        .await
        .unwrap();
    assert!(end.is_none());
}

#[tokio::test]
async fn a_stream_from_a_gone_cursor_does_not_begin() {
    let service = Service::new();
    assert_eq!(follow(&service, None).await.status(), 404);
    take_in(&service, "a").await;
    assert_eq!(follow(&service, Some("1-1")).await.status(), 410);
    assert_eq!(follow(&service, Some("x")).await.status(), 422);
    let wrong = service
        .get(&format!("{EVENTS}/stream?after=x&colour=red"))
        .await;
    assert_eq!(wrong.paths(), ["after", "colour"]);
}

#[tokio::test]
async fn a_region_has_room_for_a_stated_number_of_followers() {
    let service = Service::new();
    take_in(&service, "a").await;
    let mut held = Vec::new();
    for _ in 0..256 {
        let response = follow(&service, None).await;
        assert_eq!(response.status(), 200);
        held.push(response);
    }
    let refused = service.get(&format!("{EVENTS}/stream")).await;
    refused.is_problem(429, "quota");
    service.get(EVENTS).await.ok();
    held.pop();
    assert_eq!(follow(&service, None).await.status(), 200);
}
