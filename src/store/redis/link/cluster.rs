//! Redis Cluster: each slot has its own primary, found through a map that the nodes tell.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    channel::jittered,
    counters::Counters,
    dial::{Dialer, Task, text},
    endpoint::Endpoint,
    error::{CallError, text_of},
    finder::{Finder, Place},
    gather::gather,
    lane::Lane,
    server::{Ready, Server},
    slot_map::{Node, SlotMap, read_nodes},
};

/// Most nodes that are asked for the map at once.
const MAX_ASKED: usize = 16;

/// The map is read at most this often.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// The nodes of a cluster and the map of its slots.
///
/// Every node is a [`Server`] for itself: one that is dead or hangs costs only the calls in its
/// slots. The map is read in the background whenever a call had reason to doubt it; no call waits
/// for that but one whose slot has no server, or whose server cannot be reached, and such a call
/// goes on with the new map as soon as there is one.
pub(super) struct Cluster {
    shared: Arc<Shared>,
    _refresher: Task,
}

struct Shared {
    dialer: Dialer,
    seeds: Vec<Endpoint>,
    /// Whom to ask besides the seeds.
    known: Mutex<Vec<Endpoint>>,
    servers: Mutex<HashMap<Endpoint, Arc<Server>>>,
    map: watch::Sender<SlotMap<ByPlace>>,
    doubted: Notify,
    counters: Arc<Counters>,
    runtime: Handle,
}

/// A server, compared by identity.
#[derive(Clone)]
struct ByPlace(Arc<Server>);

impl PartialEq for ByPlace {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Cluster {
    /// Reads the map for the first time.
    ///
    /// # Errors
    /// Why nobody tells it.
    pub(super) async fn connect(
        seeds: &[Endpoint],
        dialer: Dialer,
        counters: &Arc<Counters>,
        runtime: &Handle,
    ) -> Result<Self, Arc<str>> {
        let shared = Arc::new(Shared {
            dialer,
            seeds: seeds.to_vec(),
            known: Mutex::default(),
            servers: Mutex::default(),
            map: watch::Sender::new(SlotMap::default()),
            doubted: Notify::new(),
            counters: Arc::clone(counters),
            runtime: runtime.clone(),
        });
        shared.refresh().await?;
        if shared.map.borrow().servers().is_empty() {
            return Err("no node of the cluster has a slot".into());
        }
        let refresher = Task::spawn_on(runtime, Arc::clone(&shared).keep_fresh());
        Ok(Self {
            shared,
            _refresher: refresher,
        })
    }

    /// The server of the slot, with a connection to it.
    ///
    /// # Errors
    /// Never anything but [`CallError::NotExecuted`].
    pub(super) async fn ready(
        &self,
        lane: Lane,
        slot: u16,
        deadline: Instant,
    ) -> Result<(Arc<Server>, Ready), CallError> {
        let mut map = self.shared.map.subscribe();
        loop {
            let server = map.borrow_and_update().get(slot).cloned();
            if let Some(ByPlace(server)) = server {
                tokio::select! {
                    ready = server.ready(lane, slot, deadline) => {
                        return ready.map(|ready| (Arc::clone(&server), ready));
                    }
                    _ = map.changed() => {}
                }
            } else {
                self.doubt();
                if timeout_at(deadline, map.changed()).await.is_err() {
                    let reason = format!("slot {slot} is served by no node");
                    return Err(CallError::NotExecuted(reason.into()));
                }
            }
        }
    }

    /// The map may be old: it is read again soon.
    pub(super) fn doubt(&self) {
        self.shared.doubted.notify_one();
    }

    /// A node said that the slot has moved.
    pub(super) fn moved(&self, slot: u16, to: &Arc<Server>) {
        let to = ByPlace(Arc::clone(to));
        self.shared.map.send_if_modified(|map| {
            let news = map.get(slot) != Some(&to);
            if news {
                map.set(slot, &to);
            }
            news
        });
        self.doubt();
    }

    pub(super) fn server_at(&self, endpoint: &Endpoint) -> Arc<Server> {
        self.shared.server_at(endpoint)
    }

    /// The primaries that have slots.
    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        let map = self.shared.map.borrow();
        map.servers()
            .iter()
            .map(|ByPlace(server)| Arc::clone(server))
            .collect()
    }
}

impl Shared {
    async fn keep_fresh(self: Arc<Self>) {
        loop {
            self.doubted.notified().await;
            if let Err(reason) = self.refresh().await {
                tracing::debug!(reason = &*reason, "the slot map cannot be read");
            }
            sleep(jittered(REFRESH_PAUSE)).await;
        }
    }

    async fn refresh(&self) -> Result<(), Arc<str>> {
        let asked = self.whom_to_ask();
        let until = Instant::now() + self.dialer.options.connect_time();
        let asks: Vec<_> = asked.iter().map(|node| self.ask(node)).collect();
        let (views, failure) = gather(asks, until).await;
        if views.is_empty() {
            return Err(failure.unwrap_or_else(|| "no node of the cluster answers".into()));
        }
        self.counters.map_refreshes.add();
        let map = SlotMap::of_views(&views, |endpoint| ByPlace(self.server_at(endpoint)));
        let nodes: Vec<&Node> = views.iter().flatten().collect();
        self.servers.lock().retain(|place, _| {
            nodes
                .iter()
                .any(|node| node.primary && node.endpoint == *place)
        });
        *self.known.lock() = nodes.iter().map(|node| node.endpoint.clone()).collect();
        self.map.send_replace(map);
        Ok(())
    }

    /// Nodes and seeds, beginning at another one each time, lest the same few are asked always.
    fn whom_to_ask(&self) -> Vec<Endpoint> {
        let mut all = self.known.lock().clone();
        all.extend_from_slice(&self.seeds);
        all.sort_unstable();
        all.dedup();
        let start = getrandom::u32().unwrap_or(0) as usize % all.len().max(1);
        all.rotate_left(start);
        all.truncate(MAX_ASKED);
        all
    }

    async fn ask(&self, endpoint: &Endpoint) -> Result<Vec<Node>, Arc<str>> {
        let mut opened = self.dialer.open(endpoint, "kheya-map").await?;
        let mut command = redis::cmd("CLUSTER");
        command.arg("NODES");
        let call = opened.connection.send_packed_command(&command);
        let reason = match timeout(self.dialer.options.connect_time(), call).await {
            Ok(Ok(redis::Value::ServerError(error))) => text_of(&error),
            Ok(Ok(reply)) => {
                let by_name = self.dialer.tls.is_some();
                return Ok(read_nodes(text(&reply), endpoint, by_name));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".into(),
        };
        Err(format!("{endpoint}: {reason}").into())
    }

    fn server_at(&self, endpoint: &Endpoint) -> Arc<Server> {
        let new = || {
            let finder = Finder::new(self.dialer.clone(), Place::Node(endpoint.clone()));
            let counters = Arc::clone(&self.counters);
            Server::new(finder, self.dialer.options, counters, self.runtime.clone())
        };
        let mut servers = self.servers.lock();
        Arc::clone(servers.entry(endpoint.clone()).or_insert_with(new))
    }
}
