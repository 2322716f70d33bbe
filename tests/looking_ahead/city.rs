//! A street with a few cars and riders, in regions of real nodes that are called over HTTP.

use std::time::{Duration, SystemTime};

use kheya_faults::{Node, NodeSettings, RedisServer};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{command_line::run, server::Api};

/// Windows that follow quickly on each other, with pings that stay fresh throughout a test.
const QUICK: [(&str, i64); 4] = [
    ("window_ms", 500),
    ("budget_ms", 450),
    ("grace_ms", 250),
    ("max_location_age_ms", 60_000),
];

/// A leadership that is over soon after its leader is.
const SHORT_LEASE: [(&str, &str); 4] = [
    ("KHEYA_LEADER_LEASE_MS", "1500"),
    ("KHEYA_RENEW_DEADLINE_MS", "1000"),
    ("KHEYA_RETRY_MS", "200"),
    ("KHEYA_MARGIN_MS", "200"),
];

/// Nodes on a store, each with a record of its own. All are killed when it is dropped.
pub(crate) struct Service {
    nodes: Vec<Node>,
    records: TempDir,
    _redis: Option<RedisServer>,
}

impl Service {
    /// One node with the embedded store.
    pub(crate) fn on_memory() -> Self {
        Self::start(1, None, &[])
    }

    /// One node with the embedded store and a configuration file.
    pub(crate) fn on_memory_by(config: &str) -> Self {
        Self::start(1, None, &[("KHEYA_CONFIG", config)])
    }

    /// One node on a Redis server.
    pub(crate) fn on_redis() -> Self {
        Self::start(1, Some(RedisServer::start()), &[])
    }

    /// Two nodes on a Redis server, with the leases that are shipped or with short ones.
    pub(crate) fn of_two(short_lease: bool) -> Self {
        let lease: &[_] = if short_lease { &SHORT_LEASE } else { &[] };
        Self::start(2, Some(RedisServer::start()), lease)
    }

    fn start(nodes: usize, redis: Option<RedisServer>, environment: &[(&str, &str)]) -> Self {
        let records = tempfile::tempdir().unwrap();
        let start = |n: usize| {
            let record = records.path().join(format!("node-{n}"));
            let settings = NodeSettings::new(env!("CARGO_BIN_EXE_kheya"))
                .node_id(format!("node-{n}"))
                .argument("--record")
                .argument(record.display().to_string());
            let settings = match &redis {
                Some(redis) => settings.store(redis.url()),
                None => settings,
            };
            let set = |node: NodeSettings, (name, value): &(&str, &str)| node.env(*name, *value);
            environment.iter().fold(settings, set).start()
        };
        Self {
            nodes: (0..nodes).map(start).collect(),
            records,
            _redis: redis,
        }
    }

    pub(crate) fn node(&self, n: usize) -> &Node {
        &self.nodes[n]
    }

    /// Calls to a region by way of one node.
    pub(crate) fn by_node(&self, n: usize, region: &str) -> Street {
        Street(Api::new(&self.nodes[n].base_url(), region))
    }

    /// Ends all nodes and decides what they recorded again, phantoms and all: at least so many
    /// windows, each as it was.
    pub(crate) async fn decides_the_same_again(&self, windows: u64) {
        // the recorder writes behind the windows
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let records = self.end();
        let mut arguments = vec!["replay", "--verify", "--format", "json"];
        arguments.extend(records.iter().map(String::as_str));
        let decisions = &run(arguments).json()["decisions"];
        assert_eq!(decisions["different"], 0);
        assert!(
            decisions["identical"].as_u64().unwrap() >= windows,
            "{decisions}"
        );
    }

    /// Ends all nodes. Returns the directories of their records.
    fn end(&self) -> Vec<String> {
        self.nodes.iter().for_each(Node::kill9);
        let records = std::fs::read_dir(self.records.path()).unwrap();
        let paths = records.map(|entry| entry.unwrap().path().display().to_string());
        paths.collect()
    }
}

pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(now.unwrap().as_millis()).unwrap()
}

/// A place so many metres north of a corner.
pub(crate) fn place(metres: f64) -> Value {
    json!({"lat": 23.75 + metres / 111_195.0, "lng": 90.4})
}

/// The end of a trip so many milliseconds from now.
pub(crate) fn end_of_trip(metres: f64, in_ms: i64) -> Value {
    let mut end = place(metres);
    end["at_ms"] = (now_ms() + in_ms).into();
    json!({"trip_end": end})
}

pub(crate) fn ping(id: &str, metres: f64, more: &Value) -> Value {
    let mut ping = json!({"id": id, "at_ms": now_ms()});
    for part in [&place(metres), more] {
        for (name, value) in part.as_object().unwrap() {
            ping[name] = value.clone();
        }
    }
    ping
}

/// Looks until something is so.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..300 {
        if let Some(seen) = look().await {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never: {what}");
}

/// A region that is one street.
pub(crate) struct Street(pub(crate) Api);

impl Street {
    /// The node that leads it; none while nobody does.
    pub(crate) async fn leader(&self) -> Option<usize> {
        let (_, view) = self.0.get("").await;
        let node = view["leader"]["node"].as_str()?;
        node.strip_prefix("node-")?.parse().ok()
    }

    /// The epoch of its leader, if that is a certain node.
    pub(crate) async fn epoch_led_by(&self, node: usize) -> Option<u64> {
        let (_, view) = self.0.get("").await;
        let leads = view["leader"]["node"] == format!("node-{node}");
        view["leader"]["epoch"].as_u64().filter(|_| leads)
    }

    /// Sets its windows, and how they look ahead.
    pub(crate) async fn set(&self, ahead: &Value) -> Value {
        let mut settings = ahead.clone();
        for (name, value) in QUICK {
            settings[name] = value.into();
        }
        let (status, answer) = self.0.send(Method::PATCH, "/config", Some(&settings)).await;
        assert_eq!((status, &answer["clamped"]), (200, &json!([])), "{answer}");
        answer["config"].clone()
    }

    pub(crate) async fn pings(&self, pings: &[Value]) {
        let (status, answer) = self.0.post("/drivers", &json!({"drivers": pings})).await;
        let accepted = &answer["accepted"];
        assert_eq!((status, accepted), (200, &json!(pings.len())), "{answer}");
    }

    pub(crate) async fn ask(&self, id: &str, metres: f64) {
        let request = json!({"id": id, "pickup": place(metres)});
        let requests = json!({"requests": [request]});
        let (status, answer) = self.0.post("/requests", &requests).await;
        assert_eq!(status, 202, "{answer}");
    }

    pub(crate) async fn cancel(&self, id: &str) {
        let path = format!("/requests/{id}");
        let (status, answer) = self.0.send(Method::DELETE, &path, None).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// The driver that holds an offer for a request, with the body that confirms it.
    pub(crate) async fn offered(&self, request: &str) -> Option<(String, Value)> {
        let (_, answer) = self.0.get(&format!("/requests/{request}")).await;
        let offer = &answer["assignment"];
        let claim = json!({"request_id": request, "fence": offer["fence"]});
        let driver = offer["driver_id"].as_str()?;
        (answer["state"] == "assigned").then(|| (driver.to_owned(), claim))
    }

    /// Waits until a request is offered to a driver, who it must be.
    pub(crate) async fn gets(&self, request: &str, driver: &str) -> Value {
        let what = format!("{request} gets a car");
        let (offered, claim) = until(&what, async || self.offered(request).await).await;
        assert_eq!(offered, driver, "for {request}");
        claim
    }

    /// Waits until a request is offered to a driver, who accepts.
    pub(crate) async fn drives(&self, request: &str, driver: &str) -> Value {
        let claim = self.gets(request, driver).await;
        let (status, answer) = self
            .0
            .post(&format!("/claims/{driver}/confirm"), &claim)
            .await;
        assert_eq!(status, 200, "{answer}");
        claim
    }

    pub(crate) async fn completes(&self, driver: &str, claim: &Value) {
        let path = format!("/claims/{driver}/complete");
        let (status, answer) = self.0.post(&path, claim).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// The reports of sealed windows, oldest first.
    pub(crate) async fn windows(&self) -> Vec<Value> {
        let (_, page) = self.0.get("/windows?limit=1000").await;
        page["windows"].as_array().unwrap().clone()
    }

    /// The windows so far that planned somebody, oldest first.
    pub(crate) async fn planning(&self) -> Vec<Value> {
        let mut windows = self.windows().await;
        windows.retain(|window| window["unmatched"].get("planned").is_some());
        windows
    }

    /// Waits until a window has planned somebody.
    pub(crate) async fn plans(&self) -> Value {
        let first = async || self.planning().await.first().cloned();
        until("a window plans", first).await
    }

    /// A sealed window with its decisions.
    pub(crate) async fn decisions(&self, window: &Value) -> Value {
        let path = format!("/windows/{}", window["window_seq"]);
        self.0.get(&path).await.1["decisions"].clone()
    }
}
