//! Stores: where regions live, and the one way to change and read them.
//!
//! A store executes the protocol's steps of a region one after another, each atomic, by its own
//! clock. [`memory::MemoryStore`] calls the pure steps themselves; any other store must answer the
//! same, and shows it by the conformance suite.

pub mod calls;
pub mod clock;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod memory;
pub mod redis;

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{
    domain::{DurationMs, EventId, Generation, NodeId, RegionId, UnixMs, WindowSeq},
    protocol::{Answer, Command, Query, Region, RegionRules, Reply, RulesError, WindowPhase},
};

pub use clock::{Clock, ManualClock, SystemClock};
pub use memory::MemoryStore;
pub use redis::{LinkOptions, RedisAddress, RedisStore};

/// What a store call gives, in time.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store call gave no answer of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The call was not executed, and will not be.
    #[error("the store cannot be reached: {0}")]
    Unavailable(Arc<str>),
    /// The call may have been executed: repeat it as it was, or read what it would have changed
    /// (INV-10).
    #[error("the outcome is not known: {0}")]
    OutcomeUnknown(Arc<str>),
    /// No such region, and the call does not make one.
    #[error("the region is not known")]
    UnknownRegion,
    /// The store holds as many regions as it may.
    #[error("the store holds {0} regions already")]
    TooManyRegions(usize),
    /// The store answered what no step can answer: a defect.
    #[error("the store broke its contract: {0}")]
    Broken(Arc<str>),
}

/// What changed last in a region: enough to know that it is time to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RegionSignal {
    /// The region could not be looked at lately; the rest is as it was seen last.
    #[serde(skip)]
    pub lost: bool,
    /// The life of the data.
    pub generation: Generation,
    /// The newest event.
    pub last_event: EventId,
    /// The oldest unsealed window.
    pub window: Option<WindowSignal>,
    /// When something next ends by itself.
    pub next_due_ms: Option<UnixMs>,
}

impl RegionSignal {
    /// What is to be told of a region.
    pub(crate) fn of(region: &Region) -> Self {
        Self {
            lost: false,
            generation: region.generation(),
            last_event: region.last_event(),
            window: region.windows().next().map(|window| WindowSignal {
                seq: window.seq,
                closes_at_ms: window.closes_at_ms,
                overdue_at_ms: window.overdue_at(),
                taken: matches!(window.phase, WindowPhase::Taken { .. }),
            }),
            next_due_ms: region.next_due(),
        }
    }
}

/// The oldest unsealed window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSignal {
    /// Its number.
    pub seq: WindowSeq,
    /// When it closes, by the store's clock.
    pub closes_at_ms: UnixMs,
    /// When any node may take it over.
    pub overdue_at_ms: UnixMs,
    /// Whether somebody decides it.
    pub taken: bool,
}

/// How a store makes regions.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The rules of a new region.
    pub rules: RegionRules,
    /// The configuration document of a new region.
    pub document: Arc<str>,
    /// Rules and document of new regions that have their own, after data loss too.
    pub named: BTreeMap<RegionId, (RegionRules, Arc<str>)>,
    /// Most regions.
    pub max_regions: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            rules: RegionRules::default(),
            document: "{}".into(),
            named: BTreeMap::new(),
            max_regions: 1_000,
        }
    }
}

impl StoreOptions {
    /// Whether new regions would stand.
    ///
    /// # Errors
    /// The first cross-check of the rules that fails.
    pub fn check(&self) -> Result<(), RulesError> {
        let named = self.named.values().map(|(rules, _)| rules);
        std::iter::once(&self.rules)
            .chain(named)
            .try_for_each(RegionRules::check)
    }

    /// Rules and document of a new region.
    pub fn of(&self, region: &RegionId) -> (&RegionRules, &Arc<str>) {
        self.named
            .get(region)
            .map_or((&self.rules, &self.document), |(rules, document)| {
                (rules, document)
            })
    }
}

/// A place where regions live. Typed calls are in [`calls`].
///
/// Every call has the store's own deadline and ends within it. A call that changes something goes
/// on to its end although the caller stops waiting.
pub trait Store: Send + Sync {
    /// Executes a command as one atomic step of the region, by the store's clock.
    ///
    /// A changed generation is dealt with inside: the command is repeated once under the new one
    /// (where quarantine refuses what it must).
    ///
    /// # Errors
    /// [`StoreError`]; after [`StoreError::OutcomeUnknown`] the same command may be repeated and
    /// gets the first answer.
    fn apply<'a>(&'a self, region: &'a RegionId, command: Command) -> StoreFuture<'a, Answer>;

    /// Reads the region at one instant. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError`], never an unknown outcome.
    fn query<'a>(&'a self, region: &'a RegionId, query: Query) -> StoreFuture<'a, Reply>;

    /// The regions, by id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn regions(&self) -> StoreFuture<'_, Vec<RegionId>>;

    /// Follows a region: the receiver sees its present signal and every later one (the newest only,
    /// when it is slow).
    ///
    /// # Errors
    /// [`StoreError::UnknownRegion`] before the region came to be.
    fn watch<'a>(&'a self, region: &'a RegionId) -> StoreFuture<'a, watch::Receiver<RegionSignal>>;

    /// Follows the number of regions: a change says that a region came to be.
    fn watch_regions(&self) -> watch::Receiver<usize>;

    /// The clock by which the store decides a region, as far as this process can tell: to wake at
    /// the right time.
    fn clock(&self, region: &RegionId) -> Arc<dyn Clock>;

    /// Tells that `node` is alive for `life` from now on (zero: it leaves), and who else is, by
    /// name. A store of one process knows no other node.
    ///
    /// # Errors
    /// [`StoreError`].
    fn alive<'a>(&'a self, node: &'a NodeId, life: DurationMs) -> StoreFuture<'a, Vec<NodeId>>;
}
