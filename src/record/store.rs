//! A store that records what it is asked and what it answers.

use std::sync::Arc;

use tokio::sync::watch;

use super::recorder::{Recorder, is_input};
use crate::{
    domain::{DurationMs, NodeId, RegionId},
    protocol::{Answer, Command, Query, Reply},
    store::{Clock, RegionSignal, Store, StoreFuture},
};

/// Wraps a store and records the commands of callers as they are answered.
///
/// A command without an answer (the store could not be reached, the outcome is not known, the
/// caller's task was dropped meanwhile) is not recorded; its repeat is. Commands on one region that
/// are under way at the same time may be recorded in either order.
#[derive(Debug)]
pub struct RecordingStore<S> {
    store: S,
    recorder: Recorder,
}

impl<S: Store> RecordingStore<S> {
    /// Records what `store` answers, by its clock.
    pub fn new(store: S, recorder: Recorder) -> Self {
        Self { store, recorder }
    }

    /// The store inside.
    pub const fn inner(&self) -> &S {
        &self.store
    }
}

impl<S: Store> Store for RecordingStore<S> {
    fn apply<'a>(&'a self, region: &'a RegionId, command: Command) -> StoreFuture<'a, Answer> {
        Box::pin(async move {
            let copy = is_input(&command).then(|| command.clone());
            let answer = self.store.apply(region, command).await?;
            if let Some(copy) = copy {
                let at = self.store.clock(region).now().ms();
                self.recorder.owned_command(region, at, copy, &answer);
            }
            Ok(answer)
        })
    }

    fn query<'a>(&'a self, region: &'a RegionId, query: Query) -> StoreFuture<'a, Reply> {
        self.store.query(region, query)
    }

    fn regions(&self) -> StoreFuture<'_, Vec<RegionId>> {
        self.store.regions()
    }

    fn watch<'a>(&'a self, region: &'a RegionId) -> StoreFuture<'a, watch::Receiver<RegionSignal>> {
        self.store.watch(region)
    }

    fn watch_regions(&self) -> watch::Receiver<usize> {
        self.store.watch_regions()
    }

    fn clock(&self, region: &RegionId) -> Arc<dyn Clock> {
        self.store.clock(region)
    }

    fn alive<'a>(&'a self, node: &'a NodeId, life: DurationMs) -> StoreFuture<'a, Vec<NodeId>> {
        self.store.alive(node, life)
    }
}
