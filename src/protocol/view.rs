//! Views: what a reader sees of a region, its drivers, requests and windows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    claim::{Claim, ClaimState},
    driver::{Cooldown, Presence},
    leadership::Leader,
    region::Counters,
    report::WindowReport,
    request::{RequestDraft, RequestState},
    rules::RegionRules,
    window::WindowRecord,
};
use crate::domain::{
    ConfigVersion, DriverId, DurationMs, Epoch, EventId, Fence, Generation, RequestId, UnixMs,
};

/// The region as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionView {
    /// The store's clock.
    pub now_ms: UnixMs,
    /// What the protocol reads of the configuration.
    pub rules: RegionRules,
    /// The configuration, a JSON document.
    pub document: Arc<str>,
    /// Its version.
    pub config_version: ConfigVersion,
    /// The last epoch given out.
    pub epoch: Epoch,
    /// Who leads.
    pub leader: Option<Leader>,
    /// The life of the data.
    pub generation: Generation,
    /// End of the quarantine, while it lasts.
    pub quarantined_until_ms: Option<UnixMs>,
    /// Requests that wait.
    pub pending: u32,
    /// Requests remembered, pending ones included.
    pub requests: u32,
    /// Drivers that could be chosen: available, fresh, unclaimed.
    pub available: u32,
    /// Drivers that are asked.
    pub offered: u32,
    /// Drivers on a trip.
    pub on_trip: u32,
    /// Drivers known.
    pub drivers: u32,
    /// Unsealed windows, oldest first.
    pub windows: Vec<WindowRecord>,
    /// The last sealed window.
    pub last_window: Option<Arc<WindowReport>>,
    /// The newest event.
    pub last_event: EventId,
    /// Events kept.
    pub events_kept: u32,
    /// When something next ends by itself.
    pub next_due_ms: Option<UnixMs>,
    /// Breaches refused; each stays 0.
    pub counters: Counters,
}

/// A driver's state: its claim if it has one, else what it says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverState {
    /// Says it is ready.
    Available,
    /// On a trip that the service does not know.
    Busy,
    /// Not working, or never heard of.
    Offline,
    /// Asked.
    Offered,
    /// On a trip.
    OnTrip,
}

/// A driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverView {
    /// Its id.
    pub id: DriverId,
    /// Its state.
    pub state: DriverState,
    /// It can be given an offer by its state and its undelivered offers; age is for the reader.
    pub ready: bool,
    /// From pings.
    pub presence: Option<Presence>,
    /// From the protocol.
    pub claim: Option<Claim>,
    /// Those that still hold.
    pub cooldowns: Vec<Cooldown>,
}

/// Whom a request was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignmentView {
    /// The driver.
    pub driver_id: DriverId,
    /// The claim's version.
    pub fence: Fence,
    /// Travel time; absent when the trip is over.
    pub eta: Option<DurationMs>,
    /// End of the lease, while the driver is asked.
    pub lease_until_ms: Option<UnixMs>,
    /// Its length, while the driver is asked.
    pub lease_ms: Option<DurationMs>,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestView {
    /// Its id.
    pub id: RequestId,
    /// Where it stands.
    pub state: RequestState,
    /// Claims made for it so far.
    pub attempts: u32,
    /// Since when the rider waits.
    pub requested_at_ms: UnixMs,
    /// The last instant at which it may be matched.
    pub deadline_ms: UnixMs,
    /// Its present claim, or the one it ended with.
    pub assignment: Option<AssignmentView>,
    /// When it ended, its trip included.
    pub ended_at_ms: Option<UnixMs>,
    /// What was sent.
    pub draft: Option<Arc<RequestDraft>>,
}

/// A live claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimView {
    /// The driver.
    pub driver_id: DriverId,
    /// Its state.
    pub state: ClaimState,
    /// The claim.
    pub claim: Claim,
}

/// A sealed window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportView {
    /// Its report.
    pub report: Arc<WindowReport>,
    /// Its decisions, a JSON document, while kept.
    pub decisions: Option<Arc<str>>,
}

/// Every driver of a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supply {
    /// The store's clock at the reading.
    pub now_ms: UnixMs,
    /// By id.
    pub drivers: Vec<DriverView>,
}

/// A pending request as a decision sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRequest {
    /// What was sent.
    pub draft: Arc<RequestDraft>,
    /// Since when the rider waits.
    pub requested_at_ms: UnixMs,
    /// The last instant at which it may be matched.
    pub deadline_ms: UnixMs,
    /// Windows that left it over since it became pending.
    pub left_over: u32,
    /// Claims made for it so far.
    pub attempts: u32,
}

/// What the decision of a window needs of the store, read in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The store's clock at the reading.
    pub now_ms: UnixMs,
    /// The life of the data.
    pub generation: Generation,
    /// The window.
    pub window: WindowRecord,
    /// What the protocol reads of the configuration.
    pub rules: RegionRules,
    /// The configuration, a JSON document.
    pub document: Arc<str>,
    /// Its version.
    pub config_version: ConfigVersion,
    /// Its requests by (`requested_at_ms`, id), at most `max_snapshot_requests`.
    pub requests: Vec<SnapshotRequest>,
    /// Its requests beyond those.
    pub deferred: u32,
    /// Every driver, by id: the decision accounts for those it leaves out.
    pub drivers: Vec<DriverView>,
}
