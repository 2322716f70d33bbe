//! What a node keeps of a region: the generation that it knows, and the signal that it saw last.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{clock::ServerClock, keys::RegionKeys, pings::PingLane};
use crate::{
    domain::{Generation, RegionId, StoreTime},
    store::RegionSignal,
};

/// Answers come in another order than their steps were taken; one that is behind by less than this
/// is old. Behind by more, the server's clock was set back.
const OUT_OF_ORDER_MICROS: u64 = 1_000_000;

/// Looks in a row that come to nothing before a region counts as lost.
const LOST_AFTER: u32 = 3;

/// A region as a node knows it.
pub(super) struct Cell {
    region: RegionId,
    keys: RegionKeys,
    known: Mutex<Known>,
    signal: watch::Sender<RegionSignal>,
    seen: Mutex<Option<StoreTime>>,
    /// Looks in a row that came to nothing.
    misses: AtomicU32,
    /// The clock of the server that has the region.
    pub(super) clock: Arc<ServerClock>,
    pub(super) pings: Arc<PingLane>,
}

#[derive(Default)]
struct Known {
    generation: Option<Generation>,
    /// What stands in the registry, as far as this node has seen or written it.
    registered: Option<Generation>,
}

impl Cell {
    /// A region that the registry may know.
    pub(super) fn new(region: RegionId, registered: Option<Generation>) -> Self {
        Self {
            keys: RegionKeys::new(&region),
            region,
            known: Mutex::new(Known {
                generation: registered,
                registered,
            }),
            signal: watch::Sender::new(RegionSignal::default()),
            seen: Mutex::new(None),
            misses: AtomicU32::new(0),
            clock: Arc::default(),
            pings: Arc::default(),
        }
    }

    pub(super) fn region(&self) -> &RegionId {
        &self.region
    }

    pub(super) fn keys(&self) -> &RegionKeys {
        &self.keys
    }

    /// The generation that this node knows.
    pub(super) fn known(&self) -> Option<Generation> {
        self.known.lock().generation
    }

    /// Learns a generation; says whether this node has not seen the region in the registry yet.
    pub(super) fn learn(&self, generation: Generation) -> bool {
        let mut known = self.known.lock();
        known.generation = known.generation.max(Some(generation));
        known.registered.is_none()
    }

    /// What is to be written into the registry, if anything.
    pub(super) fn unregistered(&self) -> Option<Generation> {
        let known = self.known.lock();
        known
            .generation
            .filter(|_| known.registered < known.generation)
    }

    /// What stands in the registry.
    pub(super) fn registered(&self, generation: Option<Generation>) {
        let mut known = self.known.lock();
        known.registered = generation;
        known.generation = known.generation.max(generation);
    }

    /// A signal came with an answer, or was looked up.
    pub(super) fn saw(&self, at: StoreTime, signal: RegionSignal) {
        let mut seen = self.seen.lock();
        let behind = seen.map_or(0, |seen| seen.micros().saturating_sub(at.micros()));
        if behind > 0 && behind < OUT_OF_ORDER_MICROS {
            return;
        }
        *seen = Some(at);
        self.misses.store(0, Ordering::Relaxed);
        // still under the lock: signals come in the order of the steps
        self.signal.send_if_modified(|last| {
            let changed = *last != signal;
            *last = signal;
            changed
        });
    }

    /// The region could not be looked at. Once may be chance.
    pub(super) fn not_seen(&self) {
        let misses = self.misses.fetch_add(1, Ordering::Relaxed) + 1;
        if misses >= LOST_AFTER {
            self.signal
                .send_if_modified(|last| !std::mem::replace(&mut last.lost, true));
        }
    }

    /// Whether a signal was seen.
    pub(super) fn is_seen(&self) -> bool {
        self.seen.lock().is_some()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<RegionSignal> {
        self.signal.subscribe()
    }
}
