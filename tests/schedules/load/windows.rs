//! The dispatch tier's own windows.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{CARS, PATIENCE, World, place};
use crate::calls::{Asked, Call};

/// Longest time between two windows.
const EVERY: Duration = Duration::from_millis(500);

/// One window in so many is asked for twice at once, over two nodes.
const TWICE_ONE_IN: usize = 4;

/// One window in so many has a rival: another one at the same time, over another node, that wants
/// the same cars.
const RIVAL_ONE_IN: usize = 3;

/// One window in so many brings its drivers along.
const WITH_DRIVERS_ONE_IN: usize = 3;

/// Asks for windows as long as the load is on, and waits for their answers.
pub(super) async fn are_asked_for(world: World) {
    let mut chance = world.chance("windows");
    let mut calls = JoinSet::new();
    world.is_to_be().await;
    for number in 0.. {
        tokio::time::sleep(EVERY.mul_f64(world.slower * chance.unit())).await;
        if !world.is_loading() {
            break;
        }
        let ids: Vec<String> = (0..=chance.below(4))
            .map(|rider| format!("o{number}-{rider}"))
            .collect();
        let riders: Vec<Value> = ids
            .iter()
            .map(|id| {
                let (lat, lng) = place(&mut chance);
                json!({"id": id, "pickup": {"lat": lat, "lng": lng}})
            })
            .collect();
        let mut body = json!({ "requests": riders });
        if chance.below(WITH_DRIVERS_ONE_IN) == 0 {
            let at_ms = world.now_ms();
            let cars: Vec<Value> = (0..8)
                .map(|_| {
                    let (lat, lng) = place(&mut chance);
                    let id = format!("car{}", chance.below(CARS));
                    json!({"id": id, "lat": lat, "lng": lng, "at_ms": at_ms})
                })
                .collect();
            body["drivers"] = cars.into();
        }
        let call = |window: String, requests: Vec<String>, body: &Value| Call {
            region: world.region.clone(),
            path: format!("/windows/{window}/solve"),
            asked: Asked::Own { window, requests },
            method: Method::POST,
            body: Some(body.to_string()),
        };
        let rival = (chance.below(RIVAL_ONE_IN) == 0).then(|| {
            let ids: Vec<String> = ids.iter().map(|id| format!("{id}-rival")).collect();
            let mut body = body.clone();
            for (rider, id) in body["requests"]
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .zip(&ids)
            {
                rider["id"] = id.as_str().into();
            }
            call(format!("w{number}-rival"), ids, &body)
        });
        let call = call(format!("w{number}"), ids, &body);
        let twice = chance.below(TWICE_ONE_IN) == 0;
        let caller = world.caller.clone();
        calls.spawn(async move {
            if let Some(rival) = rival {
                tokio::join!(
                    caller.insist(call, PATIENCE),
                    caller.insist(rival, PATIENCE)
                );
            } else if twice {
                tokio::join!(
                    caller.insist(call.clone(), PATIENCE),
                    caller.insist(call, PATIENCE)
                );
            } else {
                caller.insist(call, PATIENCE).await;
            }
        });
        while calls.try_join_next().is_some() {}
    }
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
}
