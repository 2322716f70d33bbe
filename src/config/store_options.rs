//! What a node's configuration means for its store.

use std::sync::Arc;

use super::ServeConfig;
use crate::{
    protocol::Configure,
    store::{Store, StoreError, StoreOptions},
};

impl ServeConfig {
    /// How the store makes regions.
    pub fn store_options(&self) -> StoreOptions {
        StoreOptions {
            rules: self.region_defaults.rules(),
            document: self.region_defaults.document(),
            named: self
                .regions
                .iter()
                .map(|(region, config)| (region.clone(), (config.rules(), config.document())))
                .collect(),
            max_regions: self.max_regions,
        }
    }

    /// Makes the regions that the configuration names and the store does not know yet, so that
    /// their own settings hold from their first window. A region that exists keeps what it was
    /// tuned to.
    ///
    /// # Errors
    /// [`StoreError`]: the store cannot be reached, or has no room.
    pub async fn configure_regions(&self, store: &dyn Store) -> Result<(), StoreError> {
        for (region, config) in &self.regions {
            match store.overview(region).await {
                Ok(_) => continue,
                Err(StoreError::UnknownRegion) => {}
                Err(error) => return Err(error),
            }
            let configure = Configure {
                rules: config.rules(),
                document: config.document(),
                expected: None,
                actor: "node configuration".into(),
                changes: Arc::from("{}"),
            };
            if let Err(refusal) = store.configure(region, configure).await? {
                // a checked configuration passes the protocol's own checks
                return Err(StoreError::Broken(refusal.to_string().into()));
            }
        }
        Ok(())
    }
}
