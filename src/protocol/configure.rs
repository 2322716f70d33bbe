//! Tuning a live region: a new configuration for what comes next; what was promised stays.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    outbox::{Event, EventType},
    region::Region,
    rules::{RegionRules, RulesError},
    window::next_close,
};
use crate::domain::{ConfigVersion, StoreTime};

/// Longest configuration document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

/// Sets a region's configuration as a whole, clamped and merged by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configure {
    /// What the protocol reads of it.
    pub rules: RegionRules,
    /// All of it, a JSON document that the store keeps and gives back.
    pub document: Arc<str>,
    /// Only when this is the present version.
    pub expected: Option<ConfigVersion>,
    /// Who asks.
    pub actor: Arc<str>,
    /// What changes, a JSON document for the event.
    pub changes: Arc<str>,
}

/// The configuration that holds from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configured {
    /// Its version; unchanged when nothing changed.
    pub config_version: ConfigVersion,
}

/// Why a configuration is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ConfigureRefusal {
    /// Another version holds.
    #[error("the present version is {present}")]
    VersionMismatch {
        /// It.
        present: ConfigVersion,
    },
    /// The rules cannot stand together.
    #[error(transparent)]
    Invalid(RulesError),
    /// The document is too long.
    #[error("the configuration document is too long")]
    TooLarge,
}

impl Region {
    /// Sets the configuration; the same again changes nothing and keeps the version.
    pub(crate) fn configure(
        &mut self,
        configure: Configure,
        now: StoreTime,
    ) -> Result<Configured, ConfigureRefusal> {
        let present = self.config_version;
        // first of all, so that the repeat of a change that was made is answered as it was
        if configure.rules == self.rules && configure.document == self.document {
            return Ok(Configured {
                config_version: present,
            });
        }
        if configure
            .expected
            .is_some_and(|expected| expected != present)
        {
            return Err(ConfigureRefusal::VersionMismatch { present });
        }
        configure.rules.check().map_err(ConfigureRefusal::Invalid)?;
        if configure.document.len().max(configure.changes.len()) > MAX_DOCUMENT_BYTES {
            return Err(ConfigureRefusal::TooLarge);
        }
        if configure.rules.window_ms != self.rules.window_ms
            && let Some(anchor) = self.anchor
        {
            // the new grid starts at the last close that the old one promised
            let passed = next_close(anchor, self.rules.window_ms, now.ms()) - self.rules.window_ms;
            let promised = self.windows.last_key_value().map(|(_, w)| w.closes_at_ms);
            self.anchor = Some(promised.map_or(passed, |close| close.max(passed)));
        }
        self.rules = configure.rules;
        self.document = configure.document;
        self.config_version = present.next();
        let mut event = Event::new(EventType::ConfigChanged);
        event.actor = Some(configure.actor);
        event.changes = Some(configure.changes);
        event.config_version = Some(self.config_version);
        self.publish(event, now);
        Ok(Configured {
            config_version: self.config_version,
        })
    }
}
