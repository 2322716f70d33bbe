//! Ops tune the window while it is busy.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::World;

/// Time between two changes, at most.
const EVERY: Duration = Duration::from_secs(2);

/// Lengths of a window; the last is the longest.
pub(crate) const WINDOWS_MS: [i64; 3] = [500, 600, 800];

/// Changes `window_ms` again and again as long as the load is on. A change that is lost is made up
/// for by the next.
pub(super) async fn is_done(world: World) {
    let mut chance = world.chance("tuning");
    world.is_to_be().await;
    loop {
        tokio::time::sleep(EVERY.mul_f64(world.slower * chance.unit())).await;
        if !world.is_loading() {
            return;
        }
        let window_ms = WINDOWS_MS[chance.below(WINDOWS_MS.len())];
        let body = json!({ "window_ms": window_ms }).to_string();
        let path = format!("{}/config", world.region);
        let node = world.caller.any_node();
        let _ = world
            .caller
            .send(node, Method::PATCH, &path, Some(body))
            .await;
    }
}
