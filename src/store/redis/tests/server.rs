//! A real server with a clock that tests move, and a store on it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kheya_faults::{RedisServer, RedisSettings};
use parking_lot::Mutex;
use redis::Value;

use crate::{
    domain::{DurationMs, RegionId, StoreTime},
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

/// A store on a server of its own.
pub(super) struct OnServer {
    pub(super) server: RedisServer,
    pub(super) store: Arc<RedisStore>,
    earlier: Mutex<BTreeMap<RegionId, Dump>>,
}

impl OnServer {
    pub(super) async fn start(options: StoreOptions) -> Self {
        let server = tokio::task::spawn_blocking(|| RedisSettings::default().moved_clock().start())
            .await
            .unwrap();
        let store = Self::open(&server.url(), options).await;
        Self {
            server,
            store,
            earlier: Mutex::default(),
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

    /// Sets the server's clock.
    pub(super) fn set_clock(&self, now: StoreTime) {
        let machine = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let offset = now.micros() as i64 - machine.as_micros() as i64;
        self.server.set_offset_us(offset);
    }

    /// Deletes a region's keys.
    pub(super) fn delete(&self, region: &RegionId) {
        let keys = RegionKeys::new(region);
        let mut command = vec!["DEL"];
        command.extend(keys.all());
        self.server.call::<i64>(&command);
    }

    /// Dumps a region's keys.
    pub(super) fn dump(&self, region: &RegionId) {
        let keys = RegionKeys::new(region);
        let dump = keys.all().into_iter().map(|key| {
            let value: Option<Vec<u8>> = self.server.call(&["DUMP", key]);
            (key.to_owned(), value)
        });
        self.earlier.lock().insert(region.clone(), dump.collect());
    }

    /// Falls back to what was dumped last, as if written under another replication id.
    pub(super) fn restore(&self, region: &RegionId) {
        self.delete(region);
        let dump = self.earlier.lock().get(region).cloned().unwrap();
        let mut connection = self.server.try_connect().unwrap();
        for (key, value) in dump {
            if let Some(value) = value {
                let mut command = redis::cmd("RESTORE");
                command.arg(key).arg(0).arg(value);
                command.query::<Value>(&mut connection).unwrap();
            }
        }
        let lost = "local state = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'state'))
            state.store_id = 'lost'
            return redis.call('HSET', KEYS[1], 'state', cmsgpack.pack(state))";
        let meta = RegionKeys::new(region).meta;
        self.server.call::<i64>(&["EVAL", lost, "1", &meta]);
    }
}

impl Harness for OnServer {
    fn store(&self) -> &dyn Store {
        &*self.store
    }

    fn advance(&self, by: DurationMs) -> CaseFuture<'_> {
        Box::pin(async move {
            let by = u64::try_from(by.get()).unwrap();
            self.server.advance(Duration::from_millis(by));
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
