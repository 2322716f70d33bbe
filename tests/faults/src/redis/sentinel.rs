//! A primary, its replicas, and three Sentinels that replace it.

use std::{
    collections::HashMap,
    fs,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    RedisServer, RedisSettings, Takeover,
    server::{answering, call},
};
use crate::{
    port::Port,
    process::Process,
    waiting::{wait_for, wait_until},
};

/// The name under which the Sentinels know the primary.
const NAME: &str = "kheya";

/// How many Sentinels there are, and how many must agree.
const SENTINELS: usize = 3;
const QUORUM: usize = 2;

/// A primary that does not answer for so long is down.
const DOWN_AFTER_MS: u64 = 500;

/// Longest time that the set takes to know itself, and to replace a primary.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

/// Sentinel's own rhythms, which are made for production (seconds), made fast. While a primary is
/// down, replicas are asked once a second, and one whose answer is older than five ping periods
/// (2 s) is not chosen: pings must not come faster.
const RHYTHM_MS: [(&str, &str); 4] = [
    ("publish-period", "100"),
    ("info-period", "200"),
    ("ping-period", "400"),
    ("ask-period", "100"),
];

/// A set of servers under Sentinel. Everything is killed when this is dropped.
#[derive(Debug)]
pub struct SentinelSet {
    servers: Vec<Arc<RedisServer>>,
    sentinels: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    port: Port,
    process: Process,
    // dropped last
    _directory: TempDir,
}

impl SentinelSet {
    /// Starts one primary, so many replicas and three Sentinels, and waits until all know each
    /// other.
    pub fn start(replicas: usize, settings: &RedisSettings) -> Self {
        let servers: Vec<Arc<RedisServer>> = (0..=replicas)
            .map(|_| Arc::new(settings.clone().start()))
            .collect();
        for replica in &servers[1..] {
            replica.replica_of(&servers[0]);
        }
        let sentinels = (0..SENTINELS)
            .map(|_| Sentinel::start(servers[0].port()))
            .collect();
        let set = Self { servers, sentinels };
        set.wait_settled();
        set
    }

    /// The set as a store's address: `redis+sentinel://host:port,host:port,host:port/name`.
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.addresses().map(|a| a.to_string()).collect();
        format!("redis+sentinel://{}/{NAME}", addresses.join(","))
    }

    /// Where the Sentinels listen.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.sentinels
            .iter()
            .map(|sentinel| sentinel.port.address())
    }

    /// The name under which they know the primary.
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// All servers, whatever they are at the moment.
    pub fn servers(&self) -> &[Arc<RedisServer>] {
        &self.servers
    }

    /// Whom a majority of the Sentinels name as primary.
    pub fn primary(&self) -> Arc<RedisServer> {
        self.named().expect("the Sentinels agree on a primary")
    }

    fn named(&self) -> Option<Arc<RedisServer>> {
        let mut votes: HashMap<u16, usize> = HashMap::new();
        for sentinel in self.addresses() {
            let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
            if let Ok((_, port)) = call::<(String, u16)>(sentinel, &asked) {
                *votes.entry(port).or_default() += 1;
            }
        }
        let (port, _) = votes.into_iter().find(|(_, votes)| *votes >= QUORUM)?;
        let is_named = |server: &&Arc<RedisServer>| server.port() == port;
        self.servers.iter().find(is_named).cloned()
    }

    /// Kills the primary and waits until another is in its place.
    pub fn fail_over(&self) -> Takeover {
        self.replaced_after(RedisServer::kill9)
    }

    /// Pauses the primary and waits until another is in its place. Once it is resumed there are two
    /// for a moment, until the Sentinels tell the old one.
    pub fn fail_over_by_pause(&self) -> Takeover {
        self.replaced_after(RedisServer::pause)
    }

    fn replaced_after(&self, fault: impl FnOnce(&RedisServer)) -> Takeover {
        let from = self.primary();
        let started = Instant::now();
        fault(&from);
        let (to, _) = wait_for("the Sentinels replace the primary", SETTLES_WITHIN, || {
            self.named()
                .filter(|named| !Arc::ptr_eq(named, &from) && named.is_primary())
        });
        Takeover {
            from,
            to,
            took: started.elapsed(),
        }
    }

    /// Brings back every server that was killed or paused, and waits until one is primary and the
    /// others follow it.
    pub fn heal(&self) {
        for server in &self.servers {
            if server.is_paused() {
                server.resume();
            } else if !server.is_serving() {
                server.restart();
            }
        }
        self.wait_settled();
    }

    /// Kills one Sentinel; with two killed no primary is replaced any more.
    pub fn kill9_sentinel(&self, index: usize) {
        self.sentinels[index].process.kill9();
    }

    fn wait_settled(&self) {
        let following = self.servers.len() - 1;
        wait_until("the Sentinels know everyone", SETTLES_WITHIN, || {
            let Some(primary) = self.named() else {
                return false;
            };
            let follows = |server: &Arc<RedisServer>| {
                server.info("replication", "master_link_status").as_deref() == Some("up")
                    && server.info("replication", "master_port") == Some(primary.port().to_string())
            };
            let running = self.sentinels.iter().filter(|s| s.process.is_running());
            primary.is_primary()
                && self.servers.iter().filter(|s| follows(s)).count() == following
                && running
                    .map(|s| s.port.address())
                    .all(|at| knows_all(at, following))
        });
    }
}

/// Whether a Sentinel knows so many replicas, all other Sentinels, and nobody as down.
fn knows_all(sentinel: SocketAddr, replicas: usize) -> bool {
    type Fields = HashMap<String, String>;
    let Ok(primary) = call::<Fields>(sentinel, &["SENTINEL", "MASTER", NAME]) else {
        return false;
    };
    let Ok(known) = call::<Vec<Fields>>(sentinel, &["SENTINEL", "REPLICAS", NAME]) else {
        return false;
    };
    primary["flags"] == "master"
        && primary["num-other-sentinels"] == (SENTINELS - 1).to_string()
        && known.len() == replicas
        && known.iter().all(|replica| {
            replica["flags"] == "slave"
                && replica.get("master-link-status").is_some_and(|s| s == "ok")
        })
}

impl Sentinel {
    fn start(primary: u16) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("kheya-sentinel-")
            .tempdir()
            .unwrap();
        let port = Port::take();
        let file = format!(
            "port {}\n\
             bind 127.0.0.1\n\
             dir \"{}\"\n\
             sentinel monitor {NAME} 127.0.0.1 {primary} {QUORUM}\n\
             sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}\n\
             # Sentinels that stood against each other try again after twice this\n\
             sentinel failover-timeout {NAME} 1500\n\
             sentinel parallel-syncs {NAME} 2\n",
            port.number(),
            directory.path().display()
        );
        fs::write(directory.path().join("sentinel.conf"), file).unwrap();
        let process = Process::start(
            Path::new("redis-server"),
            ["sentinel.conf", "--sentinel"],
            directory.path(),
            &directory.path().join("sentinel.log"),
            |_| {},
        );
        assert!(answering(&process, port.number()), "a Sentinel starts");
        for (name, ms) in RHYTHM_MS {
            let changed = call::<()>(port.address(), &["SENTINEL", "DEBUG", name, ms]);
            changed.unwrap();
        }
        Self {
            port,
            process,
            _directory: directory,
        }
    }
}
