//! What windows remember of each other outlives the node that decided them: since when a request is
//! planned, and where riders came from lately.

use std::{collections::VecDeque, time::Duration};

use serde_json::{Value, json};

use crate::{
    city::{Service, Street, ping, until},
    live::{a_car_drives_and_another_is_far, a_rider_asks_in_vain, two_cars_and_a_rider},
};

const REGION: &str = "dhaka";

/// Longer than a change of leaders takes on a busy machine, so that some of it is left afterwards.
const LONGEST_MS: i64 = 15_000;

/// Looks, a tenth of a second apart, in which the same leadership is seen before it counts as settled
/// where there are no windows: the dead node counts as alive for 3 s.
const LOOKS: usize = 40;

fn at(window: &Value, name: &str) -> i64 {
    window[name].as_i64().unwrap()
}

/// Every window that planned the one request counted from the first that did.
fn counted_on(planned: &[Value]) {
    let first = &planned[0];
    for window in planned {
        let age_ms = (window["planned_age_s"].as_f64().unwrap() * 1e3).round() as i64;
        let least = at(window, "closed_at_ms") - at(first, "sealed_at_ms");
        let most = at(window, "sealed_at_ms") - at(first, "closed_at_ms");
        assert!((least..=most).contains(&age_ms), "{first} … {window}");
    }
}

fn sealed_by_fallback(windows: &[Value], after: &Value, before: &Value) -> usize {
    let between = at(after, "window_seq")..at(before, "window_seq");
    let fallback = windows.iter().filter(|window| {
        window["source"] == "fallback" && between.contains(&at(window, "window_seq"))
    });
    fallback.count()
}

/// A rider is planned, with no free car about. Returns the window that planned first.
async fn a_rider_is_planned(street: &Street) -> Value {
    street
        .set(&json!({
            "plan_ahead_ms": 60_000, "demand_ahead_ms": 60_000, "max_planned_ms": LONGEST_MS,
        }))
        .await;
    a_car_drives_and_another_is_far(street, false).await;
    street.ask("second", 1_050.0).await;
    street.plans().await
}

/// Windows of one leadership in a row after which it counts as settled: while the dead node counts
/// as alive, the region may be handed to and fro, and a window that is late for it is decided alone.
const SETTLED: usize = 4;

/// Waits until leaders plan again after a window that a fallback sealed, and one of them stays.
async fn plans_after_a_fallback(street: &Street, first: &Value) -> Vec<Value> {
    until("a leader plans after a fallback", async || {
        let (windows, planned) = (street.windows().await, street.planning().await);
        let newest = planned
            .len()
            .checked_sub(SETTLED)
            .map(|from| &planned[from..])?;
        let (from, last) = (newest.first()?, newest.last()?);
        let stays = newest.iter().all(|window| window["epoch"] == last["epoch"]);
        (stays && sealed_by_fallback(&windows, first, from) > 0).then(|| planned.clone())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_leader_knows_since_when_a_request_is_planned() {
    let service = Service::of_two(true);
    let street = service.by_node(0, REGION);
    street.set(&json!({})).await;
    let leader = until("somebody leads", async || street.leader().await).await;
    let street = service.by_node(1 - leader, REGION);
    let first = a_rider_is_planned(&street).await;
    let epoch = &first["epoch"];

    service.node(leader).kill9();
    let planned = plans_after_a_fallback(&street, &first).await;
    let newest = planned.last().unwrap();
    assert_ne!(&newest["epoch"], epoch, "the same leader: {newest}");
    counted_on(&planned);
    let gone = at(newest, "sealed_at_ms") - at(&first, "closed_at_ms");
    assert!(gone < LONGEST_MS, "invalid: the change took {gone} ms");

    // a free car comes, far away: it is taken when the longest wait is over, from the first plan on
    street.pings(&[ping("b", 4_500.0, &json!({}))]).await;
    street.gets("second", "b").await;
    let planned = street.planning().await;
    counted_on(&planned);
    let windows = street.windows().await;
    let assigning = windows.iter().rfind(|window| window["assigned"] == 1);
    let assigning = assigning.unwrap();
    assert_eq!(assigning["source"], "batch");
    let waited = at(assigning, "sealed_at_ms") - at(&first, "closed_at_ms");
    assert!(waited >= LONGEST_MS, "{waited} ms: {windows:#?}");
    let last = planned.last().unwrap();
    assert_eq!(at(assigning, "window_seq"), at(last, "window_seq") + 1);

    // and the new leader took the rider's pickup for known
    let mut noted = 0;
    for window in &windows[windows.len().saturating_sub(50)..] {
        let ahead = &street.decisions(window).await["ahead"];
        let pickups = ahead["pickups"].as_array().map_or(&[][..], Vec::as_slice);
        let seconds = pickups
            .iter()
            .filter(|asked| asked["request_id"] == "second");
        noted += seconds.count();
    }
    assert_eq!(noted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_slept_through_a_window_counts_on() {
    let service = Service::of_two(false);
    let street = service.by_node(0, REGION);
    street.set(&json!({})).await;
    let leader = until("somebody leads", async || street.leader().await).await;
    let street = service.by_node(1 - leader, REGION);
    let first = a_rider_is_planned(&street).await;

    service.node(leader).pause();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    service.node(leader).resume();
    let planned = plans_after_a_fallback(&street, &first).await;
    let newest = planned.last().unwrap();
    assert_eq!(newest["epoch"], first["epoch"], "invalid: another leads");
    counted_on(&planned);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_leader_knows_where_riders_came_from() {
    let service = Service::of_two(true);
    let street = service.by_node(0, REGION);
    street.set(&json!({"demand_ahead_ms": 60_000})).await;
    let leader = until("somebody leads", async || street.leader().await).await;
    let survivor = 1 - leader;
    let street = service.by_node(survivor, REGION);
    a_rider_asks_in_vain(&street).await;
    service.node(leader).kill9();
    let mut looks = VecDeque::new();
    until("the other leads, and stays", async || {
        looks.push_back(street.epoch_led_by(survivor).await);
        if looks.len() > LOOKS {
            looks.pop_front();
        }
        let stays = looks.iter().all(|look| look.is_some() && *look == looks[0]);
        (stays && looks.len() == LOOKS).then_some(())
    })
    .await;
    two_cars_and_a_rider(&street).await;
    street.gets("between", "beyond").await;
    let windows = street.windows().await;
    assert_eq!(windows.last().unwrap()["source"], "batch");
}
