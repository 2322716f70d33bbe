//! Looking at regions from outside, as a person on call would.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use kheya_faults::RedisServer;
use redis::Commands as _;
use serde_json::Value;

use crate::{calls::Caller, stage::Stage};

/// Longest time until a region has a leader, after whatever happened before.
const LED_WITHIN: Duration = Duration::from_secs(30);

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The node that leads a region, as soon as one does.
pub(crate) async fn leader_of(caller: &Caller, region: &str) -> usize {
    let give_up = Instant::now() + LED_WITHIN;
    loop {
        let found = caller.read(region).await;
        if let Some(leader) = found.as_ref().and_then(leader) {
            return leader;
        }
        assert!(Instant::now() < give_up, "nobody leads {region}: {found:?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The node that leads a region that was read.
fn leader(region: &Value) -> Option<usize> {
    Stage::number_of(region["leader"]["node"].as_str()?)
}

/// Who leads each region at present, as far as somebody does.
pub(crate) async fn leaders(caller: &Caller, regions: &[String]) -> BTreeMap<String, usize> {
    let mut leaders = BTreeMap::new();
    for region in regions {
        if let Some(leader) = caller.read(region).await.as_ref().and_then(leader) {
            leaders.insert(region.clone(), leader);
        }
    }
    leaders
}

/// How many regions each of the nodes leads.
pub(crate) fn shares(leaders: &BTreeMap<String, usize>, nodes: usize) -> Vec<usize> {
    let mut shares = vec![0; nodes];
    for leader in leaders.values() {
        shares[*leader] += 1;
    }
    shares
}

/// Waits until these nodes lead all regions in even shares, and gives who leads which.
pub(crate) async fn wait_even(
    caller: &Caller,
    regions: &[String],
    nodes: &[usize],
    patience: Duration,
) -> BTreeMap<String, usize> {
    let give_up = Instant::now() + patience;
    loop {
        let leaders = leaders(caller, regions).await;
        let shares = shares(&leaders, caller.nodes());
        let least = regions.len() / nodes.len();
        let even = nodes
            .iter()
            .all(|&node| (least..=least + 1).contains(&shares[node]));
        if even && leaders.len() == regions.len() {
            return leaders;
        }
        assert!(
            Instant::now() < give_up,
            "shares are {shares:?} after {patience:?}"
        );
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The reports of a region's windows.
pub(crate) async fn reports(caller: &Caller, region: &str) -> Vec<Value> {
    let give_up = Instant::now() + LED_WITHIN;
    loop {
        if let Some(page) = caller.read(&format!("{region}/windows?limit=1000")).await {
            return page["windows"].as_array().unwrap().clone();
        }
        assert!(
            Instant::now() < give_up,
            "nobody tells the windows of {region}"
        );
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until a window of the region is taken by somebody and not sealed yet; false if that does
/// not happen for some time.
pub(crate) fn wait_taken(redis: &RedisServer, region: &str, patience: Duration) -> bool {
    let Ok(mut connection) = redis.try_connect() else {
        return false;
    };
    let key = signal_key(region);
    let give_up = Instant::now() + patience;
    while Instant::now() < give_up {
        let signal: Vec<u8> = connection.get(&key).unwrap_or_default();
        if signal.windows(6).any(|bytes| bytes == b"taken\xc3") {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Waits until the regions have no window any more, open or under way.
pub(crate) fn wait_sealed(redis: &RedisServer, regions: &[String]) {
    let mut connection = redis.try_connect().unwrap();
    let give_up = Instant::now() + LED_WITHIN;
    for region in regions {
        loop {
            let signal: Vec<u8> = connection.get(signal_key(region)).unwrap_or_default();
            if !signal.windows(7).any(|bytes| bytes == b"closes_") {
                break;
            }
            assert!(Instant::now() < give_up, "{region} keeps its window");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// What the store itself counts of attempts to break INV-1 and INV-2; nodes tell it with a delay.
pub(crate) fn counted_breaches(redis: &RedisServer, regions: &[String]) -> Vec<String> {
    let mut connection = redis.try_connect().unwrap();
    let mut broken = Vec::new();
    for region in regions {
        let key = format!("kheya:{{{region}}}:meta");
        let state: Vec<u8> = connection.hget(key, "state").unwrap();
        let state: Value = rmp_serde::from_slice(&state).unwrap();
        for counter in ["double_claims", "fences_not_risen"] {
            if state[counter] != 0 {
                broken.push(format!("{region} counts {} {counter}", state[counter]));
            }
        }
    }
    broken
}

/// Where a region tells its newest state in short.
fn signal_key(region: &str) -> String {
    format!("kheya:{{{region}}}:signal")
}

/// Waits until no request of the regions is open; tells those that are after `patience`.
pub(crate) async fn wait_ended(
    caller: &Caller,
    regions: &[String],
    patience: Duration,
) -> Option<String> {
    let since = Instant::now();
    loop {
        let mut open = Vec::new();
        for region in regions {
            open.extend(open_requests(caller, region).await);
        }
        if open.is_empty() {
            return None;
        }
        if since.elapsed() > patience {
            return Some(format!("INV-6: open {patience:?} after healing: {open:?}"));
        }
        tokio::time::sleep(LOOK_EVERY * 2).await;
    }
}

/// Requests that have not ended. Each page is one read: between two reads by state a request may go
/// from one state to the other and be seen in none.
async fn open_requests(caller: &Caller, region: &str) -> Vec<String> {
    let mut open = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("{region}/requests?limit=1000{after}");
        let Some(page) = caller.read(&path).await else {
            return vec![format!("{region} is not answered")];
        };
        let requests = page["requests"].as_array().unwrap();
        let is_open =
            |request: &&Value| request["state"] == "pending" || request["state"] == "assigned";
        open.extend(requests.iter().filter(is_open).map(ToString::to_string));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return open,
        }
    }
}

/// Waits until a region tells that it is quarantined; gives until when.
pub(crate) async fn quarantined(caller: &Caller, region: &str) -> i64 {
    let give_up = Instant::now() + Duration::from_secs(10);
    loop {
        let found = caller.read(region).await;
        if let Some(until) = found
            .as_ref()
            .and_then(|found| found["quarantined_until_ms"].as_i64())
        {
            return until;
        }
        assert!(
            Instant::now() < give_up,
            "{region} tells no quarantine: {found:?}"
        );
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
