//! A region's configuration as the store keeps it: the rules that the protocol obeys, and the whole
//! of it as a document.

use std::sync::Arc;

use super::RegionConfig;
use crate::protocol::RegionRules;

/// A stored document is not a configuration: another version wrote it.
#[derive(Debug, thiserror::Error)]
#[error("the stored configuration cannot be read: {0}")]
pub struct DocumentError(#[from] serde_json::Error);

impl RegionConfig {
    /// What the protocol reads of it; what is not tunable keeps the protocol's own default.
    pub fn rules(&self) -> RegionRules {
        RegionRules {
            window_ms: self.window_ms,
            budget_ms: self.budget_ms,
            grace_ms: self.grace_ms,
            min_window_ms: self.min_window_ms,
            max_requests: self.max_requests,
            max_snapshot_requests: self.max_snapshot_requests,
            max_pending: self.max_pending,
            offer_window_ms: self.offer_window_ms,
            lease_ms: self.lease_ms,
            decline_cooldown_ms: self.decline_cooldown_ms,
            request_memory_ms: self.request_memory_ms,
            max_wait_ms: self.max_wait_ms,
            max_location_age_ms: self.max_location_age_ms,
            driver_ttl_ms: self.driver_ttl_ms,
            paused: self.paused,
            ..RegionRules::default()
        }
    }

    /// The whole of it as the store keeps it, the same text for the same configuration.
    pub fn document(&self) -> Arc<str> {
        // plain numbers, flags and lists of finite numbers: they always have a JSON form
        serde_json::to_string(self).unwrap_or_default().into()
    }

    /// Reads a stored document; fields that it lacks take their defaults.
    ///
    /// # Errors
    /// [`DocumentError`]: it is no configuration of this version.
    pub fn from_document(document: &str) -> Result<Self, DocumentError> {
        Ok(serde_json::from_str(document)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_defaults_of_the_configuration_are_those_of_the_protocol() {
        assert_eq!(RegionConfig::default().rules(), RegionRules::default());
    }

    #[test]
    fn a_document_gives_the_configuration_back() {
        let patch = json!({"window_ms": 5000, "search_radii_km": [1, 2.5], "paused": true});
        let config = RegionConfig::default()
            .patched(patch.as_object().unwrap())
            .unwrap()
            .config;
        assert_eq!(
            RegionConfig::from_document(&config.document()).unwrap(),
            config
        );
        assert_eq!(
            RegionConfig::from_document("{}").unwrap(),
            RegionConfig::default()
        );
        assert!(config.rules().check().is_ok());
    }
}
