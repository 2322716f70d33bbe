//! Real servers with clocks that tests move, and a store on them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kheya_faults::{Cluster, RedisServer, RedisSettings};
use parking_lot::Mutex;
use redis::Value;

use crate::{
    domain::{DurationMs, RegionId, StoreTime, UnixMs},
    store::{
        RedisStore, Store, StoreOptions,
        conformance::{CaseFuture, Harness},
        redis::{LinkOptions, RedisAddress, keys::RegionKeys},
    },
};

/// Long enough that a busy machine never times a call out: time-outs have tests of their own.
const PATIENT: Duration = Duration::from_secs(10);

/// A region's keys, as they were dumped.
type Dump = Vec<(String, Option<Vec<u8>>)>;

/// Where the regions lie.
enum Place {
    Server(Arc<RedisServer>),
    Cluster(Cluster),
}

/// A store on servers of its own.
pub(super) struct OnServer {
    place: Place,
    pub(super) store: Arc<RedisStore>,
    earlier: Mutex<BTreeMap<RegionId, Dump>>,
}

impl OnServer {
    /// On one server.
    pub(super) async fn start(options: StoreOptions) -> Self {
        let settings = RedisSettings::default().moved_clock();
        let server = Arc::new(blocking(move || settings.start()).await);
        let url = server.url();
        Self::on(Place::Server(server), &url, options).await
    }

    /// On a cluster of three primaries with a replica each.
    pub(super) async fn start_cluster(options: StoreOptions) -> Self {
        let cluster = blocking(|| {
            // the wall clocks will jump by minutes: nobody is to be missed for that
            let settings = RedisSettings::default()
                .moved_clock()
                .set("repl-timeout", "100000")
                .set("repl-backlog-ttl", "0");
            let cluster = Cluster::start(&settings);
            for node in cluster.nodes() {
                node.call::<()>(&["CONFIG", "SET", "cluster-node-timeout", "100000000"]);
            }
            cluster
        })
        .await;
        let url = cluster.url();
        Self::on(Place::Cluster(cluster), &url, options).await
    }

    async fn on(place: Place, url: &str, options: StoreOptions) -> Self {
        Self {
            place,
            store: Self::open(url, options).await,
            earlier: Mutex::default(),
        }
    }

    /// The server that has a region.
    fn server_of(&self, region: &RegionId) -> Arc<RedisServer> {
        match &self.place {
            Place::Server(server) => server.clone(),
            Place::Cluster(cluster) => cluster.primary_of(&RegionKeys::new(region).meta),
        }
    }

    fn servers(&self) -> Vec<Arc<RedisServer>> {
        match &self.place {
            Place::Server(server) => vec![server.clone()],
            Place::Cluster(cluster) => cluster.nodes().to_vec(),
        }
    }

    /// Lets the clocks stand still at the same instant.
    pub(super) fn stop_clocks(&self) {
        for server in self.servers() {
            server.stop_clock();
        }
    }

    pub(super) async fn open(url: &str, options: StoreOptions) -> Arc<RedisStore> {
        let address = RedisAddress::parse(url).unwrap();
        let link = LinkOptions {
            deadline: PATIENT,
            ..LinkOptions::default()
        };
        let (store, _) = RedisStore::open(&address, options, link).await.unwrap();
        Arc::new(store)
    }

    /// Moves the clocks forward.
    pub(super) fn advance_all(&self, by: Duration) {
        for server in self.servers() {
            server.advance(by);
        }
    }

    /// The servers' clock.
    pub(super) fn now(&self) -> UnixMs {
        let server = self.servers().into_iter().next();
        UnixMs::new(server.map_or(0, |server| server.time_us() / 1_000))
    }

    /// Every key that there is.
    pub(super) fn keys(&self) -> Vec<String> {
        let servers = self.servers().into_iter();
        servers
            .flat_map(|server| server.call::<Vec<String>>(&["KEYS", "*"]))
            .collect()
    }

    /// Sets the servers' clocks.
    pub(super) fn set_clock(&self, now: StoreTime) {
        let machine = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let offset = now.micros() as i64 - machine.as_micros() as i64;
        for server in self.servers() {
            server.set_offset_us(offset);
        }
    }

    /// Deletes a region's keys.
    pub(super) fn delete(&self, region: &RegionId) {
        let keys = RegionKeys::new(region);
        let mut command = vec!["DEL"];
        command.extend(keys.all());
        self.server_of(region).call::<i64>(&command);
    }

    /// Dumps a region's keys.
    pub(super) fn dump(&self, region: &RegionId) {
        let keys = RegionKeys::new(region);
        let server = self.server_of(region);
        let dump = keys.all().into_iter().map(|key| {
            let value: Option<Vec<u8>> = server.call(&["DUMP", key]);
            (key.to_owned(), value)
        });
        self.earlier.lock().insert(region.clone(), dump.collect());
    }

    /// Falls back to what was dumped last, as if written under another replication id.
    pub(super) fn restore(&self, region: &RegionId) {
        let dump = self.earlier.lock().get(region).cloned().unwrap();
        let server = self.server_of(region);
        let mut connection = server.try_connect().unwrap();
        // at once: a look of the store in between would begin a new generation
        let mut fall_back = redis::pipe();
        fall_back.atomic();
        for key in RegionKeys::new(region).all() {
            fall_back.del(key);
        }
        for (key, value) in dump {
            if let Some(value) = value {
                fall_back.cmd("RESTORE").arg(key).arg(0).arg(value);
            }
        }
        let lost = "local state = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'state'))
            state.store_id = 'lost'
            return redis.call('HSET', KEYS[1], 'state', cmsgpack.pack(state))";
        let meta = RegionKeys::new(region).meta;
        fall_back.cmd("EVAL").arg(lost).arg(1).arg(&meta);
        fall_back.query::<Value>(&mut connection).unwrap();
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

impl Harness for OnServer {
    fn store(&self) -> &dyn Store {
        &*self.store
    }

    fn advance(&self, by: DurationMs) -> CaseFuture<'_> {
        Box::pin(async move {
            let by = u64::try_from(by.get()).unwrap();
            self.advance_all(Duration::from_millis(by));
        })
    }

    fn lose<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a> {
        Box::pin(async move { self.delete(region) })
    }

    fn remember<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a> {
        Box::pin(async move { self.dump(region) })
    }

    fn fall_back<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a> {
        Box::pin(async move { self.restore(region) })
    }
}
