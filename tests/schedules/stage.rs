//! The stage of a schedule: a Redis server (perhaps with a replica), three nodes, and a proxy between
//! each node and Redis.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use kheya_faults::{AppendOnly, Node, NodeSettings, Proxy, RedisPair, RedisServer, RedisSettings};
use tempfile::TempDir;

pub(crate) const NODES: usize = 3;

/// The service under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_kheya");

/// What the nodes are told about their leaderships and regions.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    /// TOML of the node.
    pub(crate) node: &'static str,
    /// TOML of `[region_defaults]`.
    pub(crate) region: &'static str,
}

/// Everything short, so that a schedule is.
pub(crate) const SHORT: Times = Times {
    node: "leader_lease_ms = 1500\nrenew_deadline_ms = 1000\nretry_ms = 200\nmargin_ms = 200\n",
    region: "window_ms = 500\nbudget_ms = 250\ngrace_ms = 100\noffer_window_ms = 1000\n\
             lease_ms = 3000\nmax_wait_ms = 4000\ndecline_cooldown_ms = 1000\n",
};

/// The service's own defaults, leases of claims aside: a dead city would keep its drivers for long.
pub(crate) const AS_SHIPPED: Times = Times {
    node: "",
    region: "offer_window_ms = 1000\nlease_ms = 3000\nmax_wait_ms = 30000\n",
};

/// One server, or a primary with its replica.
pub(crate) enum Redis {
    Alone(Arc<RedisServer>),
    Pair(RedisPair),
}

impl Redis {
    pub(crate) fn settings() -> RedisSettings {
        RedisSettings::default()
            .append_only(AppendOnly::EverySec)
            .moved_clock()
    }

    pub(crate) fn primary(&self) -> Arc<RedisServer> {
        match self {
            Self::Alone(server) => server.clone(),
            Self::Pair(pair) => pair.primary(),
        }
    }
}

/// The processes of a schedule. All are killed when it is dropped.
pub(crate) struct Stage {
    pub(crate) nodes: Vec<Node>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) redis: Redis,
    _config: TempDir,
}

impl Stage {
    pub(crate) fn start(seed: u64, with_replica: bool, times: &Times, binary: &Path) -> Self {
        let redis = if with_replica {
            Redis::Pair(RedisPair::start(&Redis::settings()))
        } else {
            Redis::Alone(Arc::new(Redis::settings().start()))
        };
        let at = redis.primary().address();
        let proxies: Vec<Proxy> = (0..NODES as u64)
            .map(|node| Proxy::to_redis(at, seed * NODES as u64 + node))
            .collect();
        let (config, file) = config_file(times);
        let urls = proxies.iter().map(Proxy::redis_url);
        let nodes = start_nodes(binary, urls.collect(), &file);
        Self {
            nodes,
            proxies,
            redis,
            _config: config,
        }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Node::base_url).collect()
    }

    /// The node of a name that the service gave.
    pub(crate) fn number_of(name: &str) -> Option<usize> {
        name.strip_prefix('n')?.parse().ok()
    }

    /// Moves the store's wall clock forward, on every server.
    pub(crate) fn advance(&self, by: Duration) {
        match &self.redis {
            Redis::Alone(server) => server.advance(by),
            Redis::Pair(pair) => {
                pair.primary().advance(by);
                pair.replica().advance(by);
            }
        }
    }
}

/// Starts nodes `n0`, `n1`, … at once, each on its own way to the store.
pub(crate) fn start_nodes(binary: &Path, urls: Vec<String>, config: &Path) -> Vec<Node> {
    let starting = urls.into_iter().enumerate().map(|(number, url)| {
        let settings = NodeSettings::new(binary)
            .store(url)
            .node_id(format!("n{number}"))
            .argument("--config")
            .argument(config.to_str().unwrap())
            .argument("--log")
            .argument("info,kheya::window=debug");
        std::thread::spawn(move || settings.start())
    });
    let starting: Vec<_> = starting.collect();
    starting
        .into_iter()
        .map(|node| node.join().unwrap())
        .collect()
}

/// A configuration file of nodes, in a directory of its own.
pub(crate) fn config_file(times: &Times) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kheya.toml");
    let text = format!("{}\n[region_defaults]\n{}", times.node, times.region);
    fs::write(&file, text).unwrap();
    (directory, file)
}

pub(crate) fn machine_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_millis() as i64
}
