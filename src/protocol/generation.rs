//! The generation: the life of the store's data.
//!
//! A store that lost data may have forgotten claims whose drivers are on their way. It is noticed
//! by a replication id that is not the recorded one, or by a record that is older than what the
//! calling node knows, or missing although the node knows one. Then the region begins a new
//! generation in quarantine: nothing is promised until every lease that might be forgotten is over.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    due::DueKey,
    outbox::{Event, EventType},
    reconcile::Reconciling,
    region::Region,
    rules::{MAX_LEASE_MS, RegionRules},
};
use crate::domain::{Epoch, Fence, Generation, RegionId, StoreTime, UnixMs};

/// What a step is told of the store that executes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreContext {
    /// The store's clock, read once a step.
    pub now: StoreTime,
    /// The generation that the calling node knows of the region.
    pub known: Option<Generation>,
    /// The store's replication id: another one may mean that the tail of the data is lost.
    pub store_id: Arc<str>,
}

/// The step was not executed: the store's data is of another generation than the caller believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[error("the store's data is of generation {generation}")]
pub struct GenerationChanged {
    /// The present generation.
    pub generation: Generation,
    /// The region's quarantine, if there is one.
    pub quarantined_until_ms: Option<UnixMs>,
}

impl Region {
    /// The region that a step meets when the store holds no record of it: fresh when the caller
    /// knows none either, else the first step of a new generation in quarantine.
    pub fn missing(
        id: RegionId,
        rules: RegionRules,
        document: Arc<str>,
        context: &StoreContext,
    ) -> Self {
        let mut region = Self::fresh(id, rules, document, context);
        if let Some(known) = context.known {
            region.begin_generation(known, context);
        }
        region
    }

    /// Compares the generation, first thing in every writing step.
    ///
    /// # Errors
    /// [`GenerationChanged`]: the step must not go on; nothing but the generation was changed.
    pub fn guard(&mut self, context: &StoreContext) -> Result<(), GenerationChanged> {
        let rolled_back = context.known.is_some_and(|known| known > self.generation);
        if rolled_back || self.store_id != context.store_id {
            let known = context.known.unwrap_or(self.generation);
            self.begin_generation(known, context);
        } else if context.known.is_none_or(|known| known == self.generation) {
            return Ok(());
        }
        Err(GenerationChanged {
            generation: self.generation,
            quarantined_until_ms: self.quarantine(context.now),
        })
    }

    /// The end of the quarantine, while it lasts.
    pub fn quarantine(&self, now: StoreTime) -> Option<UnixMs> {
        self.quarantined_until_ms.filter(|&until| now.ms() < until)
    }

    fn begin_generation(&mut self, known: Generation, context: &StoreContext) {
        self.generation = self.generation.max(known).rise(context.now);
        self.store_id = Arc::clone(&context.store_id);
        let until = context.now.ms() + MAX_LEASE_MS;
        self.quarantined_until_ms = Some(until);
        self.due.set(DueKey::Quarantine, until);
        // the lost primary's clock may have been ahead, by less than the quarantine: versions given
        // out from now on, to restored trips too, lie above everything that it can have given
        let ahead = StoreTime::from_ms(until).micros();
        self.fence = self.fence.max(Fence::new(ahead));
        self.leadership.epoch = self.leadership.epoch.max(Epoch::new(ahead));
        self.leadership.leader = None;
        self.reconciling = Reconciling::Idle;
        self.publish(Event::new(EventType::GenerationChanged), context.now);
    }
}
