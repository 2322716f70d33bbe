//! What no state of the data remembers once data are lost.

use std::collections::BTreeMap;

use crate::{
    domain::{DriverId, Epoch, Fence, Generation, UnixMs},
    protocol::{Answer, Command, Event, GenerationChanged, Region},
};

/// The highest versions ever given out, and when drivers were last taken offline.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Given {
    pub(super) fence: Fence,
    pub(super) epoch: Epoch,
    pub(super) generation: Generation,
    pub(super) removed: BTreeMap<DriverId, UnixMs>,
}

impl Given {
    /// By a region that is new.
    pub(super) fn by(region: &Region) -> Self {
        Self {
            fence: region.last_fence(),
            epoch: region.leadership.epoch,
            generation: region.generation(),
            removed: BTreeMap::new(),
        }
    }

    /// After a step.
    pub(super) fn risen(
        &self,
        command: &Command,
        answer: Result<&Answer, &GenerationChanged>,
        events: &[Event],
        after: &Region,
    ) -> Self {
        let mut given = self.clone();
        let pinged = |driver: &DriverId| {
            let presence = after.drivers().get(driver)?.presence.as_ref()?;
            Some(presence.at_ms)
        };
        if let (Command::RemoveDriver(removal), Ok(Answer::RemoveDriver(Ok(())))) =
            (command, answer)
        {
            let at = pinged(&removal.driver_id).unwrap_or(UnixMs::new(i64::MAX));
            given.removed.insert(removal.driver_id.clone(), at);
        }
        // a newer ping ends what a tombstone promises
        given
            .removed
            .retain(|driver, at| pinged(driver).is_none_or(|newest| newest <= *at));
        for fence in events.iter().filter_map(|event| event.fence) {
            given.fence = given.fence.max(fence);
        }
        if after.leadership.leader.is_some() {
            given.epoch = given.epoch.max(after.leadership.epoch);
        }
        given.generation = given.generation.max(after.generation());
        given
    }

    /// What a loss of data does not take: versions are known elsewhere, tombstones are not.
    pub(super) fn after_loss(&self) -> Self {
        Self {
            removed: BTreeMap::new(),
            ..self.clone()
        }
    }
}
