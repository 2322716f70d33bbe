//! Real nodes, on the embedded store and on Redis, called over HTTP: the ends of trips come with
//! pings, a rider waits for the car round the corner and not for ever, cars stay where riders come
//! from, and what was recorded is decided the same again.

use serde_json::{Value, json};

use crate::city::{Service, Street, end_of_trip, ping, until};

/// One car takes the first rider, and tells where and when that trip ends: 1 km up the street.
/// Another is free, further away than that end. Returns the first rider's claim.
pub(crate) async fn a_car_drives_and_another_is_far(street: &Street, free_car: bool) -> Value {
    street.pings(&[ping("a", 0.0, &json!({}))]).await;
    street.ask("first", 50.0).await;
    let claim = street.drives("first", "a").await;
    street
        .pings(&[ping("a", 300.0, &end_of_trip(1_000.0, 45_000))])
        .await;
    if free_car {
        street.pings(&[ping("b", 4_500.0, &json!({}))]).await;
    }
    claim
}

async fn a_rider_waits_for_a_trip_that_ends_round_the_corner(service: Service) {
    let street = service.by_node(0, "dhaka");
    let config = street
        .set(&json!({"plan_ahead_ms": 60_000, "demand_ahead_ms": 60_000}))
        .await;
    assert_eq!(config["max_planned_ms"], 60_000);
    let claim = a_car_drives_and_another_is_far(&street, true).await;

    street.ask("second", 1_050.0).await;
    let window = street.plans().await;
    assert_eq!(window["source"], "batch");
    assert_eq!(window["assigned"], 0);
    assert!(window["planned_age_s"].is_number(), "{window}");
    assert!(window["gain_vs_greedy_s"].is_null());
    let ahead = &street.decisions(&window).await["ahead"];
    assert_eq!(ahead["planned"][0]["request_id"], "second");
    assert!(street.offered("second").await.is_none());

    // the trip ends early: its car takes the rider who waited for it
    street.completes("a", &claim).await;
    street.pings(&[ping("a", 1_000.0, &json!({}))]).await;
    let claim = street.drives("second", "a").await;

    // the end that was told is that of the trip before: nobody waits for it
    street.pings(&[ping("a", 1_100.0, &json!({}))]).await;
    street.ask("third", 1_000.0).await;
    let third = street.drives("third", "b").await;
    // until it is told again
    street.completes("b", &third).await;
    let news = ping("a", 1_150.0, &end_of_trip(1_000.0, 40_000));
    street.pings(&[news, ping("b", 4_500.0, &json!({}))]).await;
    let before = street.planning().await.len();
    street.ask("fourth", 1_000.0).await;
    until("the fourth rider is planned", async || {
        (street.planning().await.len() > before).then_some(())
    })
    .await;
    street.completes("a", &claim).await;
    street.pings(&[ping("a", 1_000.0, &json!({}))]).await;
    street.gets("fourth", "a").await;

    service.decides_the_same_again(5).await;
}

async fn a_plan_ends_with_max_planned_ms(service: Service) {
    const LONGEST_MS: i64 = 3_000;
    let street = service.by_node(0, "dhaka");
    street
        .set(&json!({"plan_ahead_ms": 60_000, "max_planned_ms": LONGEST_MS}))
        .await;
    a_car_drives_and_another_is_far(&street, true).await;
    street.ask("second", 1_050.0).await;
    street.gets("second", "b").await;

    let planned = street.planning().await;
    assert!(planned.len() >= 3, "{planned:?}");
    for window in &planned {
        let age = window["planned_age_s"].as_f64().unwrap();
        assert!(age * 1e3 < LONGEST_MS as f64, "{window}");
    }
    // it got its car in the first window that might not plan it any more
    let windows = street.windows().await;
    let assigning = windows.iter().rfind(|window| window["assigned"] == 1);
    let at = |window: &Value, name: &str| window[name].as_i64().unwrap();
    let [first, last] = [planned.first(), planned.last()].map(Option::unwrap);
    let assigning = assigning.unwrap();
    assert!(at(assigning, "sealed_at_ms") - at(first, "closed_at_ms") >= LONGEST_MS);
    assert_eq!(at(assigning, "window_seq"), at(last, "window_seq") + 1);
}

/// Somebody asks for a car at the corner and gives up, where there is none yet.
pub(crate) async fn a_rider_asks_in_vain(street: &Street) {
    let before = street.windows().await.len();
    street.ask("in-vain", 0.0).await;
    until("a window has seen the rider", async || {
        (street.windows().await.len() > before).then_some(())
    })
    .await;
    street.cancel("in-vain").await;
}

/// One car stands at the corner. Another stands a little further from the rider who asks next, and
/// too far from the corner to serve it.
pub(crate) async fn two_cars_and_a_rider(street: &Street) {
    let cars = [
        ping("corner", 0.0, &json!({})),
        ping("beyond", 2_700.0, &json!({})),
    ];
    street.pings(&cars).await;
    street.ask("between", 1_300.0).await;
}

async fn a_car_stays_where_riders_come_from(service: Service) {
    for (region, demand_ahead_ms, takes) in [("plain", 0, "corner"), ("ahead", 60_000, "beyond")] {
        let street = service.by_node(0, region);
        street
            .set(&json!({"demand_ahead_ms": demand_ahead_ms}))
            .await;
        a_rider_asks_in_vain(&street).await;
        two_cars_and_a_rider(&street).await;
        street.gets("between", takes).await;
        let windows = street.windows().await;
        let mut requests = windows.iter().map(|window| &window["requests"]);
        assert!(requests.all(|n| *n == 1), "phantoms are no requests");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rider_waits_for_a_trip_on_the_embedded_store() {
    a_rider_waits_for_a_trip_that_ends_round_the_corner(Service::on_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rider_waits_for_a_trip_on_redis() {
    a_rider_waits_for_a_trip_that_ends_round_the_corner(Service::on_redis()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_ends_with_max_planned_ms_on_the_embedded_store() {
    a_plan_ends_with_max_planned_ms(Service::on_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_ends_with_max_planned_ms_on_redis() {
    a_plan_ends_with_max_planned_ms(Service::on_redis()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_car_stays_where_riders_come_from_on_the_embedded_store() {
    a_car_stays_where_riders_come_from(Service::on_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_car_stays_where_riders_come_from_on_redis() {
    a_car_stays_where_riders_come_from(Service::on_redis()).await;
}
