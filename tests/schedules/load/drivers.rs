//! Drivers answer their offers, which the dispatch tier reads from the outbox.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{PATIENCE, World};
use crate::{
    calls::{Asked, Call, Caller},
    chance::Chance,
};

/// Follows the region's events until the load is over, over whatever node answers, and lets the
/// driver of each new offer answer it; waits for the last of them.
pub(super) async fn answer_offers(world: World) {
    let mut place: Option<String> = None;
    let mut answers = JoinSet::new();
    world.is_to_be().await;
    while !world.is_over() {
        let after = place
            .as_ref()
            .map_or(String::new(), |at| format!("&after={at}"));
        let path = format!("{}/events?limit=1000&wait_ms=300{after}", world.region);
        let page = world.caller.get(world.caller.any_node(), &path).await;
        if page.status() == 410 {
            // a new life of the data, or a rollback: what is there now is told again
            place = page.json()["oldest"].as_str().map(str::to_owned);
            continue;
        }
        if !page.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        let page = page.json();
        place = page["next"].as_str().map(str::to_owned);
        for event in page["events"].as_array().unwrap() {
            let cursor = event["cursor"].as_str().unwrap().to_owned();
            let before = world.seen.lock().unwrap().insert(cursor, event.clone());
            if before.is_none() && event["type"] == "assigned" {
                answers.spawn(answer(world.clone(), event.clone()));
            }
        }
        while answers.try_join_next().is_some() {}
    }
    while let Some(answered) = answers.join_next().await {
        answered.unwrap();
    }
}

/// One driver's part. It depends on the fence alone, so that an offer that is read again, or by
/// another reader, meets the same driver.
async fn answer(world: World, offer: Value) {
    let fence = offer["fence"].as_u64().unwrap();
    let mut chance = Chance::new(world.seed ^ fence);
    let claim = Claim {
        caller: world.caller.clone(),
        region: world.region.clone(),
        driver: offer["driver_id"].as_str().unwrap().to_owned(),
        request: offer["request_id"].as_str().unwrap().to_owned(),
        fence,
    };
    // once the load is over the last riders are served without more ado
    let way = if world.is_loading() {
        chance.below(20)
    } else {
        19
    };
    let millis = |most| Duration::from_millis(most as u64);
    match way {
        // never answers
        0 => return,
        1 | 2 => {
            let reasons = ["declined", "timeout", "undeliverable", "driver_cancelled"];
            let reason = reasons[chance.below(reasons.len())];
            claim.call("release", json!({ "reason": reason })).await;
            return;
        }
        3 => {
            claim.call("extend", json!({ "lease_ms": 3_500 })).await;
            tokio::time::sleep(millis(chance.below(1_000))).await;
        }
        // undecided: both at once, over two nodes
        4 => {
            tokio::join!(
                claim.call("confirm", json!({})),
                claim.call("release", json!({ "reason": "declined" }))
            );
        }
        _ => {}
    }
    if !claim.call("confirm", json!({})).await {
        return;
    }
    if way == 5 {
        claim.call("confirm", json!({})).await;
    }
    tokio::time::sleep(millis(chance.below(800))).await;
    claim.call("complete", json!({ "outcome": "done" })).await;
    if way == 6 {
        claim.call("complete", json!({ "outcome": "done" })).await;
    }
}

/// A trip that was told after a loss ends.
pub(crate) async fn complete(world: &World, driver: String, request: String, fence: u64) {
    let claim = Claim {
        caller: world.caller.clone(),
        region: world.region.clone(),
        driver,
        request,
        fence,
    };
    claim.call("complete", json!({ "outcome": "done" })).await;
}

struct Claim {
    caller: Caller,
    region: String,
    driver: String,
    request: String,
    fence: u64,
}

impl Claim {
    /// Whether the answer is a success.
    async fn call(&self, verb: &'static str, more: Value) -> bool {
        let mut body = json!({"request_id": self.request, "fence": self.fence});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let call = Call {
            region: self.region.clone(),
            asked: Asked::Claim {
                verb,
                driver: self.driver.clone(),
                request: self.request.clone(),
                fence: self.fence,
            },
            method: Method::POST,
            path: format!("/claims/{}/{verb}", self.driver),
            body: Some(body.to_string()),
        };
        self.caller.insist(call, PATIENCE).await.is_ok()
    }
}
