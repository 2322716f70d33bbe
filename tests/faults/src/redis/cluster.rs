//! A Redis Cluster: three primaries with a replica each.

use std::{
    collections::BTreeSet,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{RedisServer, RedisSettings, Takeover};
use crate::waiting::{wait_for, wait_until};

const PRIMARIES: usize = 3;
const NODES: usize = 2 * PRIMARIES;

/// A node that does not answer for so long is failing.
const NODE_TIMEOUT_MS: &str = "1000";

/// Longest time that the cluster takes to agree, and to replace a primary.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

/// Six nodes. All are killed when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Arc<RedisServer>>,
}

/// A line of `CLUSTER NODES`.
#[derive(Debug)]
struct Seen {
    id: String,
    port: u16,
    primary: bool,
    failing: bool,
    follows: String,
    linked: bool,
    slots: Vec<(u16, u16)>,
}

impl Cluster {
    /// Starts the nodes, joins them with `redis-cli --cluster create`, and waits until all agree.
    pub fn start(settings: &RedisSettings) -> Self {
        let settings = settings
            .clone()
            .cluster()
            .set("cluster-node-timeout", NODE_TIMEOUT_MS)
            // a replica takes over however old its data is
            .set("cluster-replica-validity-factor", "0");
        let nodes: Vec<Arc<RedisServer>> = (0..NODES)
            .map(|_| Arc::new(settings.clone().start()))
            .collect();
        let addresses = nodes.iter().map(|node| node.address().to_string());
        let created = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(addresses)
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&created.stdout);
        assert!(created.status.success(), "{told}");
        let cluster = Self { nodes };
        cluster.wait_settled();
        cluster
    }

    /// The cluster as a store's address: `redis+cluster://host:port,host:port,…`.
    pub fn url(&self) -> String {
        let addresses = self.nodes.iter().map(|node| node.address().to_string());
        format!(
            "redis+cluster://{}",
            addresses.collect::<Vec<_>>().join(",")
        )
    }

    /// All nodes, whatever they are at the moment.
    pub fn nodes(&self) -> &[Arc<RedisServer>] {
        &self.nodes
    }

    /// The primary that serves the slot of a key.
    pub fn primary_of(&self, key: &str) -> Arc<RedisServer> {
        self.serves(key).expect("a primary serves every slot")
    }

    /// The replicas of the primary that serves the slot of a key.
    pub fn replicas_of(&self, key: &str) -> Vec<Arc<RedisServer>> {
        let seen = seen_by(&self.witness());
        let serving = self.primary_of(key).port();
        let id = &seen.iter().find(|node| node.port == serving).unwrap().id;
        let follows = seen.iter().filter(|node| node.follows == *id);
        follows.filter_map(|node| self.at(node.port)).collect()
    }

    /// Kills the primary that serves a key and waits until its replica has taken over.
    pub fn fail_over(&self, key: &str) -> Takeover {
        self.replaced_after(key, RedisServer::kill9)
    }

    /// Pauses the primary that serves a key and waits until its replica has taken over.
    pub fn fail_over_by_pause(&self, key: &str) -> Takeover {
        self.replaced_after(key, RedisServer::pause)
    }

    fn replaced_after(&self, key: &str, fault: impl FnOnce(&RedisServer)) -> Takeover {
        let from = self.primary_of(key);
        let started = Instant::now();
        fault(&from);
        let (to, _) = wait_for("a replica takes over", SETTLES_WITHIN, || {
            self.serves(key).filter(|to| !Arc::ptr_eq(to, &from))
        });
        // clients that ask any node are sent to it
        self.wait_agreed();
        Takeover {
            from,
            to,
            took: started.elapsed(),
        }
    }

    /// Brings back every node that was killed or paused, and waits until each primary has its
    /// replica.
    pub fn heal(&self) {
        for node in &self.nodes {
            if node.is_paused() {
                node.resume();
            } else if !node.is_serving() {
                node.restart();
            }
        }
        self.wait_settled();
    }

    fn serves(&self, key: &str) -> Option<Arc<RedisServer>> {
        let witness = self.witness();
        let slot: u16 = witness.try_call(&["CLUSTER", "KEYSLOT", key]).ok()?;
        let has = |node: &&Seen| {
            let mut slots = node.slots.iter();
            node.primary && slots.any(|(first, last)| (*first..=*last).contains(&slot))
        };
        self.at(seen_by(&witness).iter().find(has)?.port)
    }

    fn at(&self, port: u16) -> Option<Arc<RedisServer>> {
        let is_there = |node: &&Arc<RedisServer>| node.port() == port;
        self.nodes.iter().find(is_there).cloned()
    }

    /// A node that can be asked.
    fn witness(&self) -> Arc<RedisServer> {
        let serving = |node: &&Arc<RedisServer>| node.is_serving();
        self.nodes.iter().find(serving).unwrap().clone()
    }

    /// Waits until all nodes that serve say the same of the slots, and that all are served.
    fn wait_agreed(&self) {
        wait_until("the nodes agree", SETTLES_WITHIN, || {
            let serving = self.nodes.iter().filter(|node| node.is_serving());
            let mut views = BTreeSet::new();
            for node in serving {
                let state: String = node.try_call(&["CLUSTER", "INFO"]).unwrap_or_default();
                if !state.contains("cluster_state:ok") {
                    return false;
                }
                let primaries = seen_by(node).into_iter().filter(|seen| seen.primary);
                let held = primaries.filter(|seen| !seen.slots.is_empty());
                let mut view: Vec<_> = held.map(|seen| (seen.port, seen.slots)).collect();
                view.sort();
                views.insert(view);
            }
            views.len() == 1 && views.iter().all(|view| view.len() == PRIMARIES)
        });
    }

    fn wait_settled(&self) {
        self.wait_agreed();
        wait_until("each primary has its replica", SETTLES_WITHIN, || {
            self.nodes.iter().all(|node| {
                let seen = seen_by(node);
                let following = seen.iter().filter(|node| !node.primary).count();
                let sound = seen.iter().all(|node| node.linked && !node.failing);
                let link = node.info("replication", "master_link_status");
                sound && following == NODES - PRIMARIES && link.is_none_or(|link| link == "up")
            })
        });
    }
}

/// What a node says of all; nothing if it does not answer.
fn seen_by(node: &RedisServer) -> Vec<Seen> {
    let told: String = node.try_call(&["CLUSTER", "NODES"]).unwrap_or_default();
    told.lines().filter_map(Seen::read).collect()
}

impl Seen {
    /// `id host:port@bus flags primary sent received epoch link slot-slot …`
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [id, at, flags, follows, _, _, _, link, slots @ ..] = words.as_slice() else {
            return None;
        };
        let range = |word: &&str| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            // slots on the move stand in brackets
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        let flags: Vec<&str> = flags.split(',').collect();
        Some(Self {
            id: (*id).to_owned(),
            port: at.split_once('@')?.0.rsplit_once(':')?.1.parse().ok()?,
            primary: flags.contains(&"master"),
            failing: flags.iter().any(|flag| flag.starts_with("fail")),
            follows: (*follows).to_owned(),
            linked: *link == "connected",
            slots: slots.iter().filter_map(range).collect(),
        })
    }
}
