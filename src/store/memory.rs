//! The embedded store: regions in this process, gone with it.
//!
//! Promises that regions share no lock (INV-11): the map of regions is read without one, each
//! region has its own, held for one step and never across an await. Data is never lost while the
//! process lives, so no region is ever quarantined, and no outcome is unknown.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Clock, RegionSignal, Store, StoreError, StoreFuture, StoreOptions, SystemClock};
#[cfg(any(test, feature = "mutants"))]
use crate::protocol::Mutation;
use crate::{
    domain::{DurationMs, Generation, NodeId, RegionId},
    protocol::{Answer, Command, Query, Region, Reply, RulesError, StoreContext},
};

/// Regions in memory.
pub struct MemoryStore {
    options: StoreOptions,
    clock: Arc<dyn Clock>,
    store_id: Arc<str>,
    regions: ArcSwap<BTreeMap<RegionId, Arc<Cell>>>,
    /// Held to add a region; readers of the map do without.
    adding: Mutex<()>,
    count: watch::Sender<usize>,
    #[cfg(any(test, feature = "mutants"))]
    planted: Option<Mutation>,
}

/// One region's place.
struct Cell {
    held: Mutex<Held>,
    signal: watch::Sender<RegionSignal>,
}

struct Held {
    /// Absent before the first step; and when a test took it away.
    region: Option<Region>,
    /// What this node knows of the region's generation.
    known: Option<Generation>,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore")
            .field("regions", &self.regions.load().len())
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store by the machine's clock.
    ///
    /// # Errors
    /// The rules of new regions cannot stand together.
    pub fn new(options: StoreOptions) -> Result<Self, RulesError> {
        Self::with_clock(options, Arc::new(SystemClock))
    }

    /// An empty store by another clock.
    ///
    /// # Errors
    /// The rules of new regions cannot stand together.
    pub fn with_clock(options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Self, RulesError> {
        options.check()?;
        Ok(Self {
            options,
            clock,
            store_id: "memory".into(),
            regions: ArcSwap::default(),
            adding: Mutex::new(()),
            count: watch::Sender::new(0),
            #[cfg(any(test, feature = "mutants"))]
            planted: None,
        })
    }

    fn cell(&self, id: &RegionId) -> Option<Arc<Cell>> {
        self.regions.load().get(id).map(Arc::clone)
    }

    fn cell_or_new(&self, id: &RegionId) -> Result<Arc<Cell>, StoreError> {
        if let Some(cell) = self.cell(id) {
            return Ok(cell);
        }
        let _adding = self.adding.lock();
        if let Some(cell) = self.cell(id) {
            return Ok(cell);
        }
        let before = self.regions.load_full();
        if before.len() >= self.options.max_regions {
            return Err(StoreError::TooManyRegions(before.len()));
        }
        let cell = Arc::new(Cell {
            held: Mutex::new(Held {
                region: None,
                known: None,
            }),
            signal: watch::Sender::new(RegionSignal::default()),
        });
        let mut regions = BTreeMap::clone(&before);
        regions.insert(id.clone(), Arc::clone(&cell));
        let count = regions.len();
        self.regions.store(Arc::new(regions));
        self.count.send_replace(count);
        Ok(cell)
    }

    fn step(&self, id: &RegionId, command: Command) -> Result<Answer, StoreError> {
        let cell = if command.creates_region() {
            self.cell_or_new(id)?
        } else {
            self.cell(id).ok_or(StoreError::UnknownRegion)?
        };
        let mut held = cell.held.lock();
        let mut context = StoreContext {
            now: self.clock.now(),
            known: held.known,
            store_id: Arc::clone(&self.store_id),
        };
        let held_region = &mut *held;
        let region = held_region.region.get_or_insert_with(|| {
            let (rules, document) = self.options.of(id);
            Region::missing(id.clone(), rules.clone(), Arc::clone(document), &context)
        });
        // a change found here is this node's to learn: the command goes on under the present one
        if region.guard(&context).is_err() {
            context.known = Some(region.generation());
        }
        held_region.known = Some(region.generation());
        #[cfg(any(test, feature = "mutants"))]
        if let Some(planted) = self.planted {
            region.plant(planted);
        }
        let answer = region.apply(command, &context);
        let signal = RegionSignal::of(region);
        // still under the lock: signals come in the order of the steps
        cell.signal.send_if_modified(|last| {
            let changed = *last != signal;
            *last = signal;
            changed
        });
        drop(held);
        answer.map_err(|changed| StoreError::Broken(changed.to_string().into()))
    }

    fn read(&self, id: &RegionId, query: &Query) -> Result<Reply, StoreError> {
        let cell = self.cell(id).ok_or(StoreError::UnknownRegion)?;
        let held = cell.held.lock();
        let region = held.region.as_ref().ok_or(StoreError::UnknownRegion)?;
        Ok(region.query(query, self.clock.now()))
    }

    /// Plants a bug in every region, to show that a suite would notice.
    #[cfg(any(test, feature = "mutants"))]
    #[must_use]
    pub fn with_planted(mut self, mutation: Mutation) -> Self {
        self.planted = Some(mutation);
        self
    }

    /// Takes a region's data away, as a store does that lost its disk.
    #[cfg(any(test, feature = "conformance"))]
    pub fn lose(&self, id: &RegionId) {
        if let Some(cell) = self.cell(id) {
            cell.held.lock().region = None;
        }
    }

    /// Falls back to an earlier state of a region, as a promoted replica does that missed the tail.
    #[cfg(any(test, feature = "conformance"))]
    pub fn fall_back(&self, id: &RegionId, mut earlier: Region) {
        if let Some(cell) = self.cell(id) {
            // it was written under the lost primary's replication id
            earlier.store_id = "lost".into();
            cell.held.lock().region = Some(earlier);
        }
    }

    /// A copy of a region's state.
    #[cfg(any(test, feature = "conformance"))]
    pub fn state(&self, id: &RegionId) -> Option<Region> {
        self.cell(id)?.held.lock().region.clone()
    }
}

impl Store for MemoryStore {
    fn apply<'a>(&'a self, region: &'a RegionId, command: Command) -> StoreFuture<'a, Answer> {
        Box::pin(async move { self.step(region, command) })
    }

    fn query<'a>(&'a self, region: &'a RegionId, query: Query) -> StoreFuture<'a, Reply> {
        Box::pin(async move { self.read(region, &query) })
    }

    fn regions(&self) -> StoreFuture<'_, Vec<RegionId>> {
        Box::pin(async move { Ok(self.regions.load().keys().cloned().collect()) })
    }

    fn watch<'a>(&'a self, region: &'a RegionId) -> StoreFuture<'a, watch::Receiver<RegionSignal>> {
        Box::pin(async move {
            let cell = self.cell(region).ok_or(StoreError::UnknownRegion)?;
            Ok(cell.signal.subscribe())
        })
    }

    fn watch_regions(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    fn clock(&self, _: &RegionId) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn alive<'a>(&'a self, node: &'a NodeId, _: DurationMs) -> StoreFuture<'a, Vec<NodeId>> {
        Box::pin(async move { Ok(vec![node.clone()]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{DurationMs, UnixMs},
        store::{
            ManualClock,
            conformance::{CaseFuture, Harness, cases},
        },
    };

    struct Memory {
        store: Arc<MemoryStore>,
        handle: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        earlier: Mutex<BTreeMap<RegionId, Region>>,
    }

    impl Memory {
        fn new(planted: Option<Mutation>) -> Self {
            let clock = Arc::new(ManualClock::at(UnixMs::new(1_796_044_599_485)));
            let options = StoreOptions::default();
            let ticking: Arc<dyn Clock> = clock.clone();
            let mut store = MemoryStore::with_clock(options, ticking).unwrap();
            store.planted = planted;
            let store = Arc::new(store);
            Self {
                handle: store.clone(),
                store,
                clock,
                earlier: Mutex::default(),
            }
        }
    }

    impl Harness for Memory {
        fn store(&self) -> &dyn Store {
            &*self.handle
        }

        fn advance(&self, by: DurationMs) -> CaseFuture<'_> {
            Box::pin(async move { self.clock.advance(by) })
        }

        fn lose<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a> {
            Box::pin(async move { self.store.lose(region) })
        }

        fn remember<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a> {
            Box::pin(async move {
                let state = self.store.state(region).unwrap();
                self.earlier.lock().insert(region.clone(), state);
            })
        }

        fn fall_back<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a> {
            Box::pin(async move {
                let state = self.earlier.lock().remove(region).unwrap();
                self.store.fall_back(region, state);
            })
        }
    }

    #[tokio::test]
    async fn the_memory_store_conforms() {
        let memory = Memory::new(None);
        for case in cases() {
            case.check(&memory).await;
        }
    }

    /// A case fails by panicking, so each runs as a task of its own.
    #[tokio::test]
    async fn the_suite_notices_planted_bugs() {
        let mut missed = Vec::new();
        for mutation in Mutation::ALL {
            let memory = Arc::new(Memory::new(Some(mutation)));
            let mut noticed = None;
            for case in cases() {
                let memory = memory.clone();
                let run = tokio::spawn(async move { case.check(&*memory).await });
                if run.await.is_err() {
                    noticed = Some(case.name);
                    break;
                }
            }
            match noticed {
                Some(case) => eprintln!("{mutation:?}: {case}"),
                None => missed.push(mutation),
            }
        }
        assert_eq!(missed, []);
    }
}
