//! The generation: the life of the store's data.
//!
//! A store that lost data may have forgotten claims whose drivers are on their way. It is noticed
//! by a replication id that is not the recorded one, or by a record that is older than what the
//! calling node knows, or missing although the node knows one; or that began as that of a new region
//! although the node knows an older one, since a node that knew of none came first after the loss.
//! Then the region begins a new generation in quarantine: nothing is promised until every lease that
//! might be forgotten is over.

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
        let known = context.known.unwrap_or(self.generation);
        let rolled_back = known > self.generation;
        // every generation but that of a new region begins with a quarantine
        let begun_unaware = known < self.generation && self.quarantined_until_ms.is_none();
        if rolled_back || begun_unaware || self.store_id != context.store_id {
            self.begin_generation(known, context);
        } else if known == self.generation {
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
        let lease_micros = StoreTime::from_ms(UnixMs::default() + MAX_LEASE_MS).micros();
        let last = self.generation.max(known);
        let by_clock = Generation::new(context.now.micros());
        // a clock that is behind the last generation's beginning: data were lost twice in a short
        // time, and the versions of that generation lie as far above its number as the new ones do
        self.generation = if last < by_clock {
            by_clock
        } else {
            Generation::new(last.get() + lease_micros)
        };
        self.store_id = Arc::clone(&context.store_id);
        let until = context.now.ms() + MAX_LEASE_MS;
        self.quarantined_until_ms = Some(until);
        self.due.set(DueKey::Quarantine, until);
        // the lost primary's clock may have been ahead, by less than the quarantine: versions given
        // out from now on, to restored trips too, lie above everything that it can have given
        let ahead = self.generation.get() + lease_micros;
        self.fence = self.fence.max(Fence::new(ahead));
        self.leadership.epoch = self.leadership.epoch.max(Epoch::new(ahead));
        self.leadership.leader = None;
        self.reconciling = Reconciling::Idle;
        self.publish(Event::new(EventType::GenerationChanged), context.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{DriverId, RequestId},
        protocol::{Answer, Command, Reconcile, TripTold},
    };

    /// The region is lost altogether at `now`, and a trip that is under way is told.
    fn restored_after_a_loss(known: Generation, now: StoreTime) -> (Generation, Fence) {
        let mut context = StoreContext {
            now,
            known: Some(known),
            store_id: "promoted".into(),
        };
        let id = RegionId::new("dhaka").unwrap();
        let mut region = Region::missing(id, RegionRules::default(), "{}".into(), &context);
        let generation = region.generation();
        context.known = Some(generation);
        let telling = Reconcile {
            generation,
            on_trip: vec![TripTold {
                driver_id: DriverId::new("d").unwrap(),
                request_id: RequestId::new("r").unwrap(),
            }],
            pending: Vec::new(),
            done: false,
        };
        match region.apply(Command::Reconcile(telling), &context) {
            Ok(Answer::Reconcile(Ok(told))) => (generation, told.restored.first().unwrap().fence),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_loss_is_noticed_although_a_node_that_knew_nothing_came_first() {
        let id = RegionId::new("dhaka").unwrap();
        let begun = StoreTime::from_ms(UnixMs::new(1_796_044_600_000));
        let mut context = StoreContext {
            now: begun,
            known: None,
            store_id: "empty".into(),
        };
        let rules = RegionRules::default();
        let mut region = Region::missing(id, rules, "{}".into(), &context);
        let born = region.generation();
        assert_eq!(region.guard(&context), Ok(()));
        context.known = Some(born);
        assert_eq!(region.guard(&context), Ok(()));

        context.known = Some(Generation::new(born.get() - 1_000_000));
        let changed = region.guard(&context).unwrap_err();
        assert!(changed.generation > born);
        let until = context.now.ms() + MAX_LEASE_MS;
        assert_eq!(changed.quarantined_until_ms, Some(until));
        // once: whoever still knows the older one learns the present one
        let again = region.guard(&context).unwrap_err();
        assert_eq!(again, changed);
        context.now = StoreTime::from_ms(until + MAX_LEASE_MS);
        let later = region.guard(&context).unwrap_err();
        assert_eq!(
            (later.generation, later.quarantined_until_ms),
            (changed.generation, None)
        );
    }

    #[test]
    fn fences_rise_over_losses_in_a_row_by_primaries_whose_clocks_are_each_behind_the_last() {
        let mut now = StoreTime::from_ms(UnixMs::new(1_796_044_600_000));
        let mut known = Generation::new(now.micros());
        let mut last = Fence::default();
        for _ in 0..5 {
            now = StoreTime::from_micros(now.micros() - 20_000_000);
            let (generation, fence) = restored_after_a_loss(known, now);
            assert!(generation > known, "{generation} after {known}");
            assert!(fence > last, "{fence} after {last}");
            (known, last) = (generation, fence);
        }
    }
}
