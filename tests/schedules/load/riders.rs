//! Riders come, and some give up.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{PATIENCE, World, place};
use crate::calls::{Asked, Call};

/// Longest time between two calls with new riders.
const EVERY: Duration = Duration::from_millis(80);

/// One call in so many is not repeated when it was not executed.
const IMPATIENT_ONE_IN: usize = 5;

/// One call in so many is sent twice at once, over two nodes.
const TWICE_ONE_IN: usize = 6;

/// One call in so many is taken back again.
const CANCEL_ONE_IN: usize = 5;

/// Brings riders as long as the load is on, and waits for the answers to all of them.
pub(super) async fn come(world: World) {
    let mut chance = world.chance("riders");
    let mut calls = JoinSet::new();
    world.is_to_be().await;
    for number in 0.. {
        if !world.is_loading() {
            break;
        }
        let ids: Vec<String> = (0..=chance.below(3))
            .map(|rider| format!("r{number}-{rider}"))
            .collect();
        let riders: Vec<Value> = ids
            .iter()
            .map(|id| {
                let (lat, lng) = place(&mut chance);
                json!({"id": id, "pickup": {"lat": lat, "lng": lng}})
            })
            .collect();
        let patience = match chance.below(IMPATIENT_ONE_IN) {
            0 => Duration::ZERO,
            _ => PATIENCE,
        };
        let twice = chance.below(TWICE_ONE_IN) == 0;
        let cancelled = (chance.below(CANCEL_ONE_IN) == 0).then(|| ids[0].clone());
        let pause = Duration::from_millis(chance.below(900) as u64);
        let call = Call {
            region: world.region.clone(),
            asked: Asked::Intake { requests: ids },
            method: Method::POST,
            path: "/requests".into(),
            body: Some(json!({ "requests": riders }).to_string()),
        };
        let caller = world.caller.clone();
        calls.spawn(async move {
            let region = call.region.clone();
            if twice {
                tokio::join!(
                    caller.insist(call.clone(), patience),
                    caller.insist(call, patience)
                );
            } else {
                caller.insist(call, patience).await;
            }
            let Some(request) = cancelled else { return };
            tokio::time::sleep(pause).await;
            let cancel = Call {
                region,
                path: format!("/requests/{request}"),
                asked: Asked::Cancel { request },
                method: Method::DELETE,
                body: None,
            };
            caller.insist(cancel, PATIENCE).await;
        });
        while calls.try_join_next().is_some() {}
        tokio::time::sleep(EVERY.mul_f64(world.slower * chance.unit())).await;
    }
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
}
