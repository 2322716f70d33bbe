//! What is over leaves nothing behind, and no script holds the server for long.

use std::time::Duration;

use super::server::OnServer;
use crate::{
    domain::{DriverId, Place, RegionId, RequestId, UnixMs},
    protocol::{Intake, Ping, Pings, RequestDraft, Sweep},
    store::{Store, StoreOptions, redis::keys::RegionKeys},
};

/// Drivers and requests that come and go at once, each. `KHEYA_ROUNDS` says how often; 250 rounds are
/// a million of each.
const MANY: usize = 4_000;

fn place(n: usize) -> Place {
    Place::new(
        23.7 + (n % 100) as f64 / 1_000.0,
        90.3 + (n / 100) as f64 / 1_000.0,
    )
    .unwrap()
}

async fn fill(store: &dyn Store, region: &RegionId, round: usize, now: UnixMs) {
    let ping = |n: usize| {
        Ping::at(
            DriverId::new(&format!("d{round}-{n}")).unwrap(),
            place(n),
            now,
        )
    };
    let pings = (0..MANY).map(ping).collect();
    let answer = store.ping(region, Pings { pings }).await.unwrap();
    assert_eq!(answer.accepted as usize, MANY);
    for from in (0..MANY).step_by(1_000) {
        let draft = |n: usize| {
            RequestDraft::at(RequestId::new(&format!("r{round}-{n}")).unwrap(), place(n))
        };
        let requests = (from..from + 1_000).map(draft).collect();
        let answer = store.intake(region, Intake { requests }).await.unwrap();
        assert_eq!(answer.unwrap().requests.len(), 1_000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_over_leaves_nothing_behind() {
    let on = OnServer::start(StoreOptions::default()).await;
    let region = RegionId::new("dhaka").unwrap();
    let store: &dyn Store = &*on.store;
    let asked = std::env::var("KHEYA_ROUNDS").ok();
    let rounds: usize = asked.and_then(|n| n.parse().ok()).unwrap_or(2);
    let mut generation = None;
    for round in 0..rounds {
        fill(store, &region, round, on.now()).await;
        let full = store.overview(&region).await.unwrap();
        assert_eq!((full.drivers, full.pending), (MANY as u32, MANY as u32));
        // waits, then memories, then events end
        for _ in 0..3 {
            on.advance_all(Duration::from_secs(3_700));
            while store.sweep(&region, Sweep {}).await.unwrap().more {}
        }
        for _ in 0..20 {
            store.sweep(&region, Sweep {}).await.unwrap();
        }
        let empty = store.overview(&region).await.unwrap();
        assert_eq!((empty.drivers, empty.requests, empty.pending), (0, 0, 0));
        assert_eq!((empty.events_kept, empty.next_due_ms), (0, None));
        assert_eq!(empty.last_event.get(), (2 * MANY * (round + 1)) as u64);
        assert_eq!(empty.generation, *generation.get_or_insert(full.generation));
    }
    let keys = RegionKeys::new(&region);
    let stay = [
        // of windows that no node came to seal
        keys.reports.clone(),
        keys.meta.clone(),
        keys.fence.clone(),
        keys.signal.clone(),
        // an empty stream remembers its last id; the window waits for a node that seals it
        keys.events.clone(),
        keys.windows.clone(),
        super::super::keys::REGISTRY.to_owned(),
        // left by the check of permissions
        super::super::keys::PERMISSIONS[3].to_owned(),
    ];
    let mut left = on.keys();
    left.retain(|key| !stay.contains(key));
    assert_eq!(left, [""; 0]);
}
