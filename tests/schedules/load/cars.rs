//! Cars tell their places.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{CARS, World, place};

/// Time between two pings of a car.
const EVERY: Duration = Duration::from_millis(400);

/// Pings until the load is over. A ping that is lost is made up for by the next.
pub(super) async fn tell_places(world: World) {
    let mut chance = world.chance("cars");
    world.is_to_be().await;
    while !world.is_over() {
        let at_ms = world.now_ms();
        let cars: Vec<Value> = (0..CARS)
            .map(|car| {
                let (lat, lng) = place(&mut chance);
                json!({"id": format!("car{car}"), "lat": lat, "lng": lng, "at_ms": at_ms})
            })
            .collect();
        let body = json!({ "drivers": cars }).to_string();
        let path = format!("{}/drivers", world.region);
        let node = world.caller.any_node();
        let sent = world.caller.send(node, Method::POST, &path, Some(body));
        let _ = sent.await;
        tokio::time::sleep(EVERY.mul_f64(world.slower)).await;
    }
}
