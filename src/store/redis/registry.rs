//! The registry: which regions there are, and the generation that nodes must know of each.
//!
//! It lies in another slot than the regions, so it may be lost or out of reach while they are not:
//! what a node knows it keeps, and writes back.

use std::{collections::BTreeMap, sync::Arc};

use redis::cmd;

use super::{
    Shared,
    cell::Cell,
    keys::REGISTRY,
    link::Lane,
    reply::{bytes, count, pairs, text},
    scripts::REGISTER,
    unread,
};
use crate::{
    domain::{Generation, RegionId},
    store::StoreError,
};

impl Shared {
    /// The cell of a region; at its first touch the registry is asked for its generation.
    pub(super) async fn cell_for(
        &self,
        region: &RegionId,
        creates: bool,
    ) -> Result<Arc<Cell>, StoreError> {
        if let Some(cell) = self.cells.load().get(region) {
            return Ok(cell.clone());
        }
        let mut ask = cmd("HGET");
        ask.arg(REGISTRY).arg(region.as_str());
        let found = self.link.command(Lane::Read, REGISTRY, &ask).await;
        let found = found.map_err(unread)?;
        let registered = match bytes(&found)? {
            Some(_) => Some(Generation::new(count(&found)?)),
            None if !creates => return Err(StoreError::UnknownRegion),
            None => {
                self.refuse_too_many().await?;
                None
            }
        };
        self.add(region, registered)
    }

    async fn refuse_too_many(&self) -> Result<(), StoreError> {
        let mut ask = cmd("HLEN");
        ask.arg(REGISTRY);
        let held = self.link.command(Lane::Read, REGISTRY, &ask).await;
        let held = count(&held.map_err(unread)?)? as usize;
        if held >= self.options.max_regions {
            return Err(StoreError::TooManyRegions(held));
        }
        Ok(())
    }

    fn add(
        &self,
        region: &RegionId,
        registered: Option<Generation>,
    ) -> Result<Arc<Cell>, StoreError> {
        let _adding = self.adding.lock();
        let before = self.cells.load_full();
        if let Some(cell) = before.get(region) {
            return Ok(cell.clone());
        }
        // regions that were asked for and never came to be are remembered too, so twice as many
        if before.len() >= 2 * self.options.max_regions {
            return Err(StoreError::TooManyRegions(before.len()));
        }
        let cell = Arc::new(Cell::new(region.clone(), registered));
        let mut cells = BTreeMap::clone(&before);
        cells.insert(region.clone(), cell.clone());
        self.cells.store(Arc::new(cells));
        Ok(cell)
    }

    /// Writes a region into the registry that has just come to be.
    pub(super) async fn register_new(&self, cell: &Cell) -> Result<(), StoreError> {
        self.register(cell).await.map_err(|error| {
            // it was executed, and the repeat gets the first answer
            StoreError::OutcomeUnknown(format!("the region was not registered: {error}").into())
        })?;
        self.count.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Writes a region's generation into the registry as soon as that can be reached.
    pub(super) fn register_later(self: &Arc<Self>, cell: &Arc<Cell>) {
        let (shared, cell) = (self.clone(), cell.clone());
        tokio::spawn(async move {
            // what fails is tried again with the next look at the registry
            if let Err(error) = shared.register(&cell).await {
                tracing::debug!(region = %cell.region(), %error, "not registered yet");
            }
        });
    }

    async fn register(&self, cell: &Cell) -> Result<(), StoreError> {
        let Some(generation) = cell.unregistered() else {
            return Ok(());
        };
        let generation = generation.to_string();
        let args = [cell.region().as_str().as_bytes(), generation.as_bytes()];
        let stands = self
            .link
            .script(Lane::Work, &REGISTER, &[REGISTRY], &args)
            .await?;
        cell.registered(Some(Generation::new(count(&stands)?)));
        Ok(())
    }

    /// The regions that the registry knows, and those that this node knows to be.
    pub(super) async fn registered(self: &Arc<Self>) -> Result<Vec<RegionId>, StoreError> {
        let mut ask = cmd("HGETALL");
        ask.arg(REGISTRY);
        let found = match self.link.command(Lane::Read, REGISTRY, &ask).await {
            Ok(found) => found,
            Err(error) => return self.remembered().ok_or_else(|| unread(error)),
        };
        let mut regions: BTreeMap<RegionId, Generation> = BTreeMap::new();
        for (region, generation) in pairs(&found)? {
            if let Ok(region) = RegionId::new(text(region)?) {
                regions.insert(region, Generation::new(count(generation)?));
            }
        }
        for (region, cell) in self.cells.load().iter() {
            let stands = regions.get(region).copied();
            if cell.known().is_some() {
                cell.registered(stands);
                if cell.unregistered().is_some() {
                    self.register_later(cell);
                }
                regions.entry(region.clone()).or_default();
            }
        }
        Ok(regions.into_keys().collect())
    }

    /// The regions that this node knows to be, while the registry is out of reach; if any.
    fn remembered(&self) -> Option<Vec<RegionId>> {
        let cells = self.cells.load();
        let known = cells.iter().filter(|(_, cell)| cell.known().is_some());
        let known: Vec<RegionId> = known.map(|(region, _)| region.clone()).collect();
        (!known.is_empty()).then_some(known)
    }
}
