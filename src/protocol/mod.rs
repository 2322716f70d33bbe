//! The protocol: one region's state and every step that changes it, pure.
//!
//! Promises INV-1 to INV-7 for one region, as long as every change goes through [`Region::apply`]
//! and a store executes steps one after another. Assumes nothing of callers: every command may be
//! lost, late, repeated or made by a node that believes it still leads. Knows no clock, no network,
//! no randomness: the store gives it the time, callers give it their nonces.
//!
//! A region breaks the promises only when its store loses data; that is what the generation and its
//! quarantine are for.

mod claim;
mod claim_batch;
mod claim_calls;
mod codes;
mod configure;
mod driver;
mod due;
mod generation;
#[cfg(any(test, feature = "conformance"))]
pub mod history;
pub mod invariants;
mod leadership;
mod ledger;
#[cfg(test)]
mod model;
mod mutation;
mod operations;
mod outbox;
mod own_window;
mod query;
mod reconcile;
mod region;
mod report;
mod request;
pub mod rules;
#[cfg(any(test, feature = "conformance"))]
pub mod simulation;
mod sweep;
mod trip_end;
mod view;
mod window;
#[cfg(any(test, feature = "conformance"))]
mod world;

pub use claim::{Claim, ClaimKey, ClaimOutcome, ClaimPhase, ClaimState, ClaimTrace};
pub use claim_batch::{BatchAnswer, ClaimBatch, ClaimPair, PairLoss, PairOutcome};
pub use claim_calls::{
    ClaimAnswer, ClaimRefusal, Complete, Confirm, Extend, Release, ReleaseReason, TripOutcome,
};
pub use configure::{Configure, ConfigureRefusal, Configured, MAX_DOCUMENT_BYTES};
pub use driver::{
    Cell, Cooldown, DriverRecord, DriverStatus, EntryCode, Patch, Ping, PingAnswer, Pings,
    Presence, Rejected, RemoveDriver, RemoveDriverRefusal,
};
pub use due::{DueKey, DueSet};
pub use generation::{GenerationChanged, StoreContext};
pub use leadership::{
    AcquireLeadership, Leader, Leadership, LeadershipRefusal, Leads, MAX_LEADER_LEASE_MS,
    RenewLeadership, ResignLeadership,
};
pub use ledger::{HeldClaim, Ledger, LedgerRequest};
pub use mutation::Mutation;
pub use operations::{Answer, Command};
pub use outbox::{
    After, Cursor, CursorError, CursorGone, Event, EventPage, EventType, Outbox, Reason, Source,
};
pub use own_window::{
    BeginOwnWindow, ClaimOwnBatch, FinishOwnWindow, MAX_OWN_WORK_MS, OwnBegun, OwnClaimed, OwnPair,
    OwnPhase, OwnRefusal, OwnWindow,
};
pub use query::{MAX_LOOKED_AT, MAX_PAGE, Page, Query, Reply};
pub(crate) use query::{driver_view, request_view};
pub use reconcile::{Reconcile, ReconcileAnswer, ReconcileRefusal, Restored, TripTold};
pub use region::{Counters, Region, Step};
pub use report::{ReportBody, ReportSource, Reports, Seal, SealedWindow, WindowReport};
pub use request::{
    CancelRefusal, CancelRequest, Cancelled, Fingerprint, FingerprintError, Intake, IntakeAnswer,
    IntakePlace, IntakeRefusal, RequestDraft, RequestRecord, RequestState, Taken,
};
pub use rules::{RegionRules, RulesError};
pub use sweep::{Sweep, Swept};
pub use trip_end::{AnnouncedEnd, TripEnd};
pub use view::{
    AssignmentView, ClaimView, DriverState, DriverView, RegionView, ReportView, RequestView,
    Snapshot, SnapshotRequest, Supply,
};
pub use window::{
    Holder, Owner, TakeWindow, TakenWindow, Taker, WindowPhase, WindowRecord, WindowRefusal,
    next_close,
};
