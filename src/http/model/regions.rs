//! Regions, and how they are tuned.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::windows::ReportBody;
use crate::{
    config::{Clamped, RegionConfig},
    domain::{RegionId, UnixMs},
    http::state::Level,
    protocol::RegionView,
};

/// A region.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Region)]
pub struct RegionAnswer {
    /// Its id.
    pub region: String,
    /// Its configuration.
    #[serde(serialize_with = "RegionConfig::serialize_settings")]
    #[schema(value_type = ConfigBody)]
    pub config: RegionConfig,
    /// The configuration's version.
    pub config_version: u64,
    /// Who leads it; `null` when nobody does.
    pub leader: Option<LeaderBody>,
    /// How well it is served.
    pub level: Level,
    /// The life of the data.
    pub generation: u64,
    /// End of the quarantine, while it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false)]
    pub quarantined_until_ms: Option<UnixMs>,
    /// Requests that wait.
    pub pending: u32,
    /// Its drivers.
    pub supply: SupplyBody,
    /// The last sealed window; `null` before the first.
    pub last_window: Option<ReportBody>,
}

/// Settings of a region; their schemas are added from the configuration's own defaults.
#[derive(Serialize, ToSchema)]
#[schema(as = RegionConfig)]
pub struct ConfigBody {}

/// Settings to change; `null` restores a default.
#[derive(Serialize, ToSchema)]
#[schema(as = ConfigPatch)]
pub struct ConfigPatch {}

/// Who leads a region.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeaderBody {
    /// The node.
    pub node: String,
    /// Its leadership.
    pub epoch: u64,
}

/// A region's drivers by state.
#[derive(Debug, Serialize, ToSchema)]
pub struct SupplyBody {
    /// Available, fresh and unclaimed.
    pub available: u32,
    /// Asked.
    pub offered: u32,
    /// On a trip.
    pub on_trip: u32,
}

/// A region in the list.
#[derive(Debug, Serialize, ToSchema)]
pub struct RegionSummary {
    /// Its id.
    pub region: String,
    /// How well it is served.
    pub level: Level,
}

/// The regions that the token may see.
#[derive(Debug, Serialize, ToSchema)]
pub struct RegionsAnswer {
    /// By id.
    pub regions: Vec<RegionSummary>,
}

/// A configuration after a patch, or as it would be.
#[derive(Debug, Serialize, ToSchema)]
pub struct PatchedAnswer {
    /// The region.
    pub region: String,
    /// Its configuration.
    #[serde(serialize_with = "RegionConfig::serialize_settings")]
    #[schema(value_type = ConfigBody)]
    pub config: RegionConfig,
    /// Its version; unchanged when nothing changed, and in a dry run.
    pub config_version: u64,
    /// What was moved to a rail.
    pub clamped: Vec<ClampedBody>,
    /// What changed.
    pub changes: BTreeMap<String, Change>,
    /// Nothing was changed: this is what would be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A value that was moved to the nearest rail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Clamped)]
pub struct ClampedBody {
    /// The setting.
    pub path: String,
    /// The value asked for.
    pub asked: Value,
    /// The value used.
    pub used: Value,
}

/// A setting before and after.
#[derive(Debug, Serialize, ToSchema)]
pub struct Change {
    /// Before.
    pub from: Value,
    /// After.
    pub to: Value,
}

impl RegionAnswer {
    pub(crate) fn new(
        region: &RegionId,
        view: &RegionView,
        config: RegionConfig,
        level: Level,
    ) -> Self {
        Self {
            region: region.to_string(),
            config,
            config_version: view.config_version.get(),
            leader: view.leader.as_ref().map(|leader| LeaderBody {
                node: leader.node.to_string(),
                epoch: view.epoch.get(),
            }),
            level,
            generation: view.generation.get(),
            quarantined_until_ms: view.quarantined_until_ms,
            pending: view.pending,
            supply: SupplyBody {
                available: view.available,
                offered: view.offered,
                on_trip: view.on_trip,
            },
            last_window: view
                .last_window
                .as_ref()
                .map(|report| ReportBody::new(region, report)),
        }
    }
}

impl From<Clamped> for ClampedBody {
    fn from(Clamped { path, asked, used }: Clamped) -> Self {
        Self { path, asked, used }
    }
}

/// What differs between two configurations.
pub(crate) fn changes(from: &RegionConfig, to: &RegionConfig) -> BTreeMap<String, Change> {
    let (from, to) = (from.settings(), to.settings());
    let mut changes = BTreeMap::new();
    for (name, to) in to {
        let from = from.get(&name).cloned().unwrap_or_default();
        if from != to {
            changes.insert(name, Change { from, to });
        }
    }
    changes
}

/// A merge patch in which `null` stands for the node's default, which it is here replaced by.
pub(crate) fn with_defaults(
    patch: Map<String, Value>,
    defaults: &RegionConfig,
) -> Map<String, Value> {
    let defaults = defaults.settings();
    let filled = patch
        .into_iter()
        .map(|(name, value)| match defaults.get(&name) {
            Some(default) if value.is_null() => (name, default.clone()),
            _ => (name, value),
        });
    filled.collect()
}
