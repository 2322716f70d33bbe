//! What is there to look at after a schedule.

use std::{collections::BTreeMap, time::Duration};

use kheya::protocol::Event;
use serde_json::Value;

use super::Loss;
use crate::{
    calls::{Caller, Told},
    load::World,
};

/// How often a read is tried again: everything is healed, but the machine is busy.
const READS: usize = 40;

/// Everything that is known of one region.
pub(crate) struct Evidence {
    pub(crate) region: String,
    /// Its outbox from the oldest event, as JSON, the same on every node.
    pub(crate) outbox: Vec<Value>,
    /// The same, read.
    pub(crate) events: Vec<Event>,
    /// Reports of its windows, the same on every node.
    pub(crate) reports: Vec<Value>,
    /// State of each of its requests.
    pub(crate) requests: BTreeMap<String, String>,
    /// Live claims: driver → (request, fence).
    pub(crate) claims: BTreeMap<String, (String, u64)>,
    /// What callers asked and were told.
    pub(crate) told: Vec<Told>,
    /// Events as a follower saw them while they happened, by cursor.
    pub(crate) seen: BTreeMap<String, Value>,
    /// New lives of the data.
    pub(crate) losses: Vec<Loss>,
    /// Whether the store's clock was set back.
    pub(crate) clock_set_back: bool,
    /// What nodes answered differently.
    pub(crate) differences: Vec<String>,
}

impl Evidence {
    pub(crate) async fn collect(caller: &Caller, world: &World, losses: &[Loss]) -> Self {
        let region = world.region.clone();
        let mut differences = Vec::new();
        let mut same = |what: &str, read: Vec<Vec<String>>| {
            for (node, other) in read.iter().enumerate().skip(1) {
                if *other != read[0] {
                    differences.push(format!("{what} of {region} differ between n0 and n{node}"));
                }
            }
            read.into_iter().next().unwrap()
        };
        let mut events = Vec::new();
        let mut windows = Vec::new();
        for node in 0..caller.nodes() {
            events.push(
                pages(
                    caller,
                    node,
                    &format!("{region}/events?limit=1000"),
                    "events",
                )
                .await,
            );
            windows.push(
                pages(
                    caller,
                    node,
                    &format!("{region}/windows?limit=1000"),
                    "windows",
                )
                .await,
            );
        }
        let outbox = entries(&same("events", events), "events");
        let reports = entries(&same("reports", windows), "windows");
        let requests = pages(
            caller,
            0,
            &format!("{region}/requests?limit=1000"),
            "requests",
        )
        .await;
        let requests = entries(&requests, "requests").into_iter().map(|request| {
            let text = |name: &str| request[name].as_str().unwrap().to_owned();
            (text("id"), text("state"))
        });
        let claims = pages(caller, 0, &format!("{region}/claims?limit=1000"), "claims").await;
        let claims = entries(&claims, "claims").into_iter().map(|claim| {
            let text = |name: &str| claim[name].as_str().unwrap().to_owned();
            let fence = claim["fence"].as_u64().unwrap();
            (text("driver_id"), (text("request_id"), fence))
        });
        let told = caller.witness.told();
        Self {
            events: outbox.iter().map(read_event).collect(),
            outbox,
            reports,
            requests: requests.collect(),
            claims: claims.collect(),
            told: told
                .into_iter()
                .filter(|told| told.region == region)
                .collect(),
            seen: world.seen.lock().unwrap().clone(),
            losses: losses.to_vec(),
            clock_set_back: false,
            differences,
            region,
        }
    }

    /// Whether acknowledged writes were lost.
    pub(crate) fn lost_writes(&self) -> bool {
        self.losses.iter().any(|loss| loss.of_writes)
    }

    /// Whether a call was sent after the last loss of writes, or there was none.
    pub(crate) fn is_kept(&self, sent: std::time::Instant) -> bool {
        let mut losses = self.losses.iter().filter(|loss| loss.of_writes);
        losses.all(|loss| sent > loss.over)
    }
}

/// Every page of a list, as its bytes, over one node.
async fn pages(caller: &Caller, node: usize, path: &str, list: &str) -> Vec<String> {
    let mut pages = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let from = after
            .as_ref()
            .map_or(String::new(), |after| format!("&after={after}"));
        let body = page(caller, node, &format!("{path}{from}")).await;
        let read: Value = serde_json::from_str(&body).unwrap();
        let empty = read[list].as_array().unwrap().is_empty();
        let next = match &read["next"] {
            Value::String(next) => Some(next.clone()),
            Value::Number(next) => Some(next.to_string()),
            _ => None,
        };
        pages.push(body);
        if empty || next.is_none() {
            return pages;
        }
        after = next;
    }
}

async fn page(caller: &Caller, node: usize, path: &str) -> String {
    for _ in 0..READS {
        let read = caller.get(node, path).await;
        if let crate::calls::Outcome::Answered {
            status: 200, body, ..
        } = read
        {
            return body;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("n{node} does not answer {path}");
}

fn entries(pages: &[String], list: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for page in pages {
        let mut page: Value = serde_json::from_str(page).unwrap();
        all.append(page[list].as_array_mut().unwrap());
    }
    all
}

/// An event as the protocol knows it.
fn read_event(told: &Value) -> Event {
    let mut event = told.clone();
    let fields = event.as_object_mut().unwrap();
    let cursor = fields.remove("cursor").unwrap();
    let (_, id) = cursor.as_str().unwrap().split_once('-').unwrap();
    fields.insert("id".into(), id.parse::<u64>().unwrap().into());
    // told in seconds; the books do without
    for name in ["region", "eta_s", "cost_s", "changes"] {
        fields.remove(name);
    }
    serde_json::from_value(event).unwrap_or_else(|error| panic!("{error}: {told}"))
}
