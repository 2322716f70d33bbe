//! The table of operations: every command with its answer, every query with its reply.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    claim_batch::{BatchAnswer, ClaimBatch},
    claim_calls::{ClaimAnswer, ClaimRefusal, Complete, Confirm, Extend, Release},
    configure::{Configure, ConfigureRefusal, Configured},
    driver::{PingAnswer, Pings, RemoveDriver, RemoveDriverRefusal},
    leadership::{AcquireLeadership, LeadershipRefusal, Leads, RenewLeadership, ResignLeadership},
    own_window::{BeginOwnWindow, ClaimOwnBatch, FinishOwnWindow, OwnBegun, OwnRefusal},
    reconcile::{Reconcile, ReconcileAnswer, ReconcileRefusal},
    report::{Seal, WindowReport},
    request::{CancelRefusal, CancelRequest, Cancelled, Intake, IntakeAnswer, IntakeRefusal},
    sweep::{Sweep, Swept},
    window::{TakeWindow, TakenWindow, WindowRefusal},
};

/// What may be done to a region. Each carries what makes its repeat get the first answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Takes pings in. A repeat is stale.
    Ping(Pings),
    /// Takes a driver offline.
    RemoveDriver(RemoveDriver),
    /// Takes requests in. Repeated by id and body.
    Intake(Intake),
    /// Takes a request back.
    Cancel(CancelRequest),
    /// A driver accepted. Repeated by (driver, request, fence), as the three below.
    Confirm(Confirm),
    /// A driver is given back.
    Release(Release),
    /// A trip is over.
    Complete(Complete),
    /// A lease ends later; a repeat counts from when it arrives.
    Extend(Extend),
    /// Takes a window. Repeated by its taker's nonce.
    TakeWindow(TakeWindow),
    /// Claims pairs for a window. Repeated by (owner, batch number).
    ClaimBatch(ClaimBatch),
    /// Ends a window. Repeated by its owner.
    Seal(Seal),
    /// Begins an own window. Repeated by id and body.
    BeginOwn(BeginOwnWindow),
    /// Claims pairs for an own window. Repeated by (runner, batch number).
    ClaimOwn(ClaimOwnBatch),
    /// Ends an own window.
    FinishOwn(FinishOwnWindow),
    /// Asks for the leadership. Repeated by its nonce.
    Acquire(AcquireLeadership),
    /// Keeps the leadership.
    Renew(RenewLeadership),
    /// Gives the leadership up.
    Resign(ResignLeadership),
    /// Sets the configuration.
    Configure(Configure),
    /// Tells what is true after data loss.
    Reconcile(Reconcile),
    /// Ends what is due.
    Sweep(Sweep),
}

impl Command {
    /// Whether a region comes to be with it: its first ping, request or configuration.
    pub const fn creates_region(&self) -> bool {
        matches!(
            self,
            Self::Ping(_)
                | Self::Intake(_)
                | Self::BeginOwn(_)
                | Self::Configure(_)
                | Self::Reconcile(_)
        )
    }

    /// Its name, for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ping(_) => "ping",
            Self::RemoveDriver(_) => "remove_driver",
            Self::Intake(_) => "intake",
            Self::Cancel(_) => "cancel",
            Self::Confirm(_) => "confirm",
            Self::Release(_) => "release",
            Self::Complete(_) => "complete",
            Self::Extend(_) => "extend",
            Self::TakeWindow(_) => "take_window",
            Self::ClaimBatch(_) => "claim_batch",
            Self::Seal(_) => "seal",
            Self::BeginOwn(_) => "begin_own",
            Self::ClaimOwn(_) => "claim_own",
            Self::FinishOwn(_) => "finish_own",
            Self::Acquire(_) => "acquire",
            Self::Renew(_) => "renew",
            Self::Resign(_) => "resign",
            Self::Configure(_) => "configure",
            Self::Reconcile(_) => "reconcile",
            Self::Sweep(_) => "sweep",
        }
    }
}

/// The answer to a command, of the same name. A refusal is an answer too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "named as the commands, whose documentation holds"
)]
pub enum Answer {
    Ping(PingAnswer),
    RemoveDriver(Result<(), RemoveDriverRefusal>),
    Intake(Result<IntakeAnswer, IntakeRefusal>),
    Cancel(Result<Cancelled, CancelRefusal>),
    Confirm(Result<ClaimAnswer, ClaimRefusal>),
    Release(Result<ClaimAnswer, ClaimRefusal>),
    Complete(Result<ClaimAnswer, ClaimRefusal>),
    Extend(Result<ClaimAnswer, ClaimRefusal>),
    TakeWindow(Result<TakenWindow, WindowRefusal>),
    ClaimBatch(Result<Arc<BatchAnswer>, WindowRefusal>),
    Seal(Result<Arc<WindowReport>, WindowRefusal>),
    BeginOwn(Result<OwnBegun, OwnRefusal>),
    ClaimOwn(Result<Arc<BatchAnswer>, OwnRefusal>),
    FinishOwn(Result<Arc<str>, OwnRefusal>),
    Acquire(Result<Leads, LeadershipRefusal>),
    Renew(Result<Leads, LeadershipRefusal>),
    Resign(Result<(), LeadershipRefusal>),
    Configure(Result<Configured, ConfigureRefusal>),
    Reconcile(Result<ReconcileAnswer, ReconcileRefusal>),
    Sweep(Swept),
}
