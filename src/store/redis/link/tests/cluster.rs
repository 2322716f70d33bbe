//! Redis Cluster.

use std::time::Duration;

use redis::Value;
use tokio::time::{Instant, sleep};

use super::kit::{Caller, SLACK, Server, add, connect, get, timed, until};
use crate::store::redis::link::{CallError, Lane, Link, Script, slot::slot_of};

/// Three primaries, and a replica of each.
struct Cluster {
    servers: Vec<Server>,
}

impl Cluster {
    async fn start() -> Self {
        // else a cluster refuses every slot when one is not served
        let settings = "--cluster-enabled yes --cluster-node-timeout 1000 \
                        --cluster-require-full-coverage no";
        let settings: Vec<_> = settings.split_whitespace().collect();
        let servers: Vec<_> = (0..6).map(|_| Server::start(&settings)).collect();
        let mut create: Vec<String> = vec!["--cluster".into(), "create".into()];
        for server in &servers {
            server.answers().await;
            create.push(format!("127.0.0.1:{}", server.port));
        }
        create.extend(["--cluster-replicas", "1", "--cluster-yes"].map(Into::into));
        let create: Vec<_> = create.iter().map(String::as_str).collect();
        let created = servers[0].cli(&create);
        assert!(created.contains("All 16384 slots covered"), "{created}");
        until("each primary has its replica", async || {
            servers.iter().all(|server| {
                let nodes = server.cli(&["CLUSTER", "NODES"]);
                nodes.matches("slave").count() == 3
            })
        })
        .await;
        let cluster = Self { servers };
        cluster.is_whole().await;
        cluster
    }

    /// Waits until nobody misses anybody, and every replica has its data: one that has not is never
    /// promoted.
    async fn is_whole(&self) {
        until("the cluster is whole", async || {
            self.servers.iter().all(|server| {
                let replication = server.cli(&["INFO", "replication"]);
                server
                    .cli(&["CLUSTER", "INFO"])
                    .contains("cluster_state:ok")
                    && !server.cli(&["CLUSTER", "NODES"]).contains("fail")
                    && (replication.contains("role:master")
                        || replication.contains("master_link_status:up"))
            })
        })
        .await;
    }

    async fn link(&self) -> Link {
        let seeds = [0, 5].map(|i| format!("127.0.0.1:{}", self.servers[i].port));
        connect(&format!("redis+cluster://{}", seeds.join(","))).await
    }

    fn id(&self, i: usize) -> String {
        self.servers[i].cli(&["CLUSTER", "MYID"])
    }

    /// The primary of the slot, as the others see it.
    fn owner(&self, slot: u16) -> usize {
        let one = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.parse::<u16>(), last.parse::<u16>());
            matches!((first, last), (Ok(first), Ok(last)) if (first..=last).contains(&slot))
        };
        let nodes = self.servers[5].cli(&["CLUSTER", "NODES"]);
        let line = nodes
            .lines()
            .find(|line| line.split(' ').skip(8).any(one))
            .unwrap();
        let of_line = |server: &Server| line.contains(&format!(":{}@", server.port));
        self.servers.iter().position(of_line).unwrap()
    }

    /// A key of each primary's slots.
    fn keys(&self) -> [String; 3] {
        [0, 1, 2].map(|primary| {
            let keys = (0..).map(|i| format!("{{{i}}}:sum"));
            let mut own = keys.filter(|key| self.owner(slot_of(key.as_bytes())) == primary);
            own.next().unwrap()
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_or_hanging_shard_costs_only_its_own_slots_until_its_replica_is_promoted() {
    let mut cluster = Cluster::start().await;
    let link = cluster.link().await;
    let keys = cluster.keys();
    for (victim, hang) in [(0, false), (1, true)] {
        let callers: Vec<_> = keys
            .iter()
            .map(|key| Caller::begin(&link, key.clone()))
            .collect();
        sleep(Duration::from_millis(300)).await;
        if hang {
            cluster.servers[victim].signal("-STOP");
        } else {
            cluster.servers[victim].kill();
        }
        let slot = slot_of(keys[victim].as_bytes());
        let start = Instant::now();
        until("a replica is promoted", async || {
            cluster.owner(slot) != victim
        })
        .await;
        let promoted = start.elapsed();
        until("calls succeed", async || {
            get(&link, &keys[victim]).await.is_ok()
        })
        .await;
        let back = start.elapsed();
        sleep(Duration::from_millis(300)).await;
        println!("hang {hang}: promoted after {promoted:?}, back after {back:?}");
        for (shard, caller) in callers.into_iter().enumerate() {
            let called = caller.end().await;
            println!("  shard {shard}: {called:?}");
            assert!(called.successes > 10);
            if shard == victim {
                assert!(called.failures > 0, "nothing was injured: {called:?}");
                assert!(called.longest_gap < back + SLACK, "{called:?}");
            } else {
                let outage = format!("{called:?} while {victim} was away for {back:?}");
                assert!(called.failures * 20 < called.successes, "{shard}: {outage}");
                assert!(called.longest_gap < back / 2, "{shard}: {outage}");
            }
        }
        assert!(
            back < promoted + Duration::from_millis(600) + SLACK,
            "{back:?}"
        );
        if hang {
            cluster.servers[victim].signal("-CONT");
        } else {
            cluster.servers[victim].restart();
        }
        cluster.is_whole().await;
        for key in &keys {
            assert!(add(&link, key).await.is_ok());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_on_its_way_is_followed() {
    let cluster = Cluster::start().await;
    let link = cluster.link().await;
    let [key, _, third] = cluster.keys();
    let (from, to) = (&cluster.servers[0], &cluster.servers[1]);
    let slot = slot_of(key.as_bytes()).to_string();
    let tag = key.trim_end_matches("sum");
    let other = format!("{tag}other");
    assert_eq!(add(&link, &key).await, Ok(1));
    to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &cluster.id(0)]);
    from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &cluster.id(1)]);

    // one that is still there, one that is not (nor was: a script is loaded on the way), and both
    assert_eq!(add(&link, &key).await, Ok(2));
    let redirects = link.counters().redirects;
    assert_eq!(add(&link, &other).await, Ok(1));
    assert_eq!(link.counters().redirects, redirects + 1);
    assert_eq!(to.cli(&["DBSIZE"]), "1");
    let mut reads = redis::pipe();
    reads.atomic().cmd("GET").arg(&other).cmd("TTL").arg(&other);
    let values = Ok(vec![Value::BulkString(b"1".into()), Value::Int(-1)]);
    assert_eq!(link.read(Lane::Read, &other, &reads).await, values);
    let mut reads = redis::pipe();
    reads.cmd("GET").arg(&other).cmd("TTL").arg(&other);
    assert_eq!(link.read(Lane::Read, &other, &reads).await, values);
    let both = Script::new("return redis.call('EXISTS', KEYS[1], KEYS[2])");
    let (result, _) = timed(link.script(Lane::Work, &both, &[&key, &other], &[])).await;
    assert!(matches!(&result, Err(CallError::NotExecuted(text)) if text.contains("TRYAGAIN")));

    let port = to.port.to_string();
    from.cli(&["MIGRATE", "127.0.0.1", &port, &key, "0", "1000"]);
    for server in [to, from, &cluster.servers[2]] {
        server.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &cluster.id(1)]);
    }
    // moved: followed once, known afterwards
    assert_eq!(add(&link, &key).await, Ok(3));
    let redirects = link.counters().redirects;
    assert_eq!(add(&link, &key).await, Ok(4));
    assert_eq!(link.counters().redirects, redirects);
    let both = link.script(Lane::Work, &both, &[&key, &other], &[]).await;
    assert_eq!(both, Ok(Value::Int(2)));

    // a slot that nobody serves
    let slot = slot_of(third.as_bytes()).to_string();
    for server in &cluster.servers[..3] {
        server.cli(&["CLUSTER", "DELSLOTS", &slot]);
    }
    let (result, _) = timed(add(&link, &third)).await;
    assert!(
        matches!(&result, Err(CallError::NotExecuted(_))),
        "{result:?}"
    );
    assert!(add(&link, &key).await.is_ok());
}
