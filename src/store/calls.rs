//! Typed calls: one method for each command and query, for any store.

use std::sync::Arc;

use super::{Store, StoreError};
use crate::{
    domain::{DriverId, RegionId, RequestId, WindowSeq},
    protocol::{
        AcquireLeadership, After, Answer, BatchAnswer, BeginOwnWindow, CancelRefusal,
        CancelRequest, Cancelled, ClaimAnswer, ClaimBatch, ClaimOwnBatch, ClaimRefusal, ClaimState,
        ClaimView, Command, Complete, Configure, ConfigureRefusal, Configured, Confirm, CursorGone,
        DriverView, EventPage, Extend, FinishOwnWindow, Intake, IntakeAnswer, IntakeRefusal,
        LeadershipRefusal, Leads, OwnBegun, OwnRefusal, Page, PingAnswer, Pings, Query, Reconcile,
        ReconcileAnswer, ReconcileRefusal, RegionView, Release, RemoveDriver, RemoveDriverRefusal,
        RenewLeadership, Reply, ReportView, RequestState, RequestView, ResignLeadership, Seal,
        Snapshot, Supply, Sweep, Swept, TakeWindow, TakenWindow, WindowRefusal, WindowReport,
    },
};

macro_rules! commands {
    ($($(#[$doc:meta])* $method:ident: $variant:ident($input:ty) -> $answer:ty;)*) => {
        impl dyn Store + '_ {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`StoreError`]: the protocol gave no answer.
                pub async fn $method(
                    &self,
                    region: &RegionId,
                    input: $input,
                ) -> Result<$answer, StoreError> {
                    match self.apply(region, Command::$variant(input)).await? {
                        Answer::$variant(answer) => Ok(answer),
                        other => Err(mismatch(stringify!($variant), &other)),
                    }
                }
            )*
        }
    };
}

commands! {
    /// Takes pings in.
    ping: Ping(Pings) -> PingAnswer;
    /// Takes a driver offline.
    remove_driver: RemoveDriver(RemoveDriver) -> Result<(), RemoveDriverRefusal>;
    /// Takes requests in.
    intake: Intake(Intake) -> Result<IntakeAnswer, IntakeRefusal>;
    /// Takes a request back.
    cancel: Cancel(CancelRequest) -> Result<Cancelled, CancelRefusal>;
    /// A driver accepted.
    confirm: Confirm(Confirm) -> Result<ClaimAnswer, ClaimRefusal>;
    /// A driver is given back.
    release: Release(Release) -> Result<ClaimAnswer, ClaimRefusal>;
    /// A trip is over.
    complete: Complete(Complete) -> Result<ClaimAnswer, ClaimRefusal>;
    /// A lease ends later.
    extend: Extend(Extend) -> Result<ClaimAnswer, ClaimRefusal>;
    /// Takes a window.
    take_window: TakeWindow(TakeWindow) -> Result<TakenWindow, WindowRefusal>;
    /// Claims pairs for a window.
    claim_batch: ClaimBatch(ClaimBatch) -> Result<Arc<BatchAnswer>, WindowRefusal>;
    /// Ends a window.
    seal: Seal(Seal) -> Result<Arc<WindowReport>, WindowRefusal>;
    /// Begins an own window.
    begin_own: BeginOwn(BeginOwnWindow) -> Result<OwnBegun, OwnRefusal>;
    /// Claims pairs for an own window.
    claim_own: ClaimOwn(ClaimOwnBatch) -> Result<Arc<BatchAnswer>, OwnRefusal>;
    /// Ends an own window.
    finish_own: FinishOwn(FinishOwnWindow) -> Result<Arc<str>, OwnRefusal>;
    /// Asks for the leadership.
    acquire: Acquire(AcquireLeadership) -> Result<Leads, LeadershipRefusal>;
    /// Keeps the leadership.
    renew: Renew(RenewLeadership) -> Result<Leads, LeadershipRefusal>;
    /// Gives the leadership up.
    resign: Resign(ResignLeadership) -> Result<(), LeadershipRefusal>;
    /// Sets the configuration.
    configure: Configure(Configure) -> Result<Configured, ConfigureRefusal>;
    /// Tells what is true after data loss.
    reconcile: Reconcile(Reconcile) -> Result<ReconcileAnswer, ReconcileRefusal>;
    /// Ends what is due.
    sweep: Sweep(Sweep) -> Swept;
}

macro_rules! queries {
    ($($(#[$doc:meta])* $method:ident($($arg:ident: $type:ty),*): $variant:ident => $query:expr => $reply:ty;)*) => {
        impl dyn Store + '_ {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`StoreError`]: the region is not known or cannot be reached.
                pub async fn $method(
                    &self,
                    region: &RegionId,
                    $($arg: $type),*
                ) -> Result<$reply, StoreError> {
                    match self.query(region, $query).await? {
                        Reply::$variant(reply) => Ok(reply),
                        other => Err(mismatch(stringify!($variant), &other)),
                    }
                }
            )*
        }
    };
}

queries! {
    /// The region as a whole.
    overview(): Overview => Query::Overview => Box<RegionView>;
    /// One driver.
    driver(id: &DriverId): Driver => Query::Driver(id.clone()) => Option<Box<DriverView>>;
    /// One request.
    request(id: &RequestId): Request => Query::Request(id.clone()) => Option<Box<RequestView>>;
    /// Several requests.
    requests_by_id(ids: Vec<RequestId>): RequestsById => Query::RequestsById(ids)
        => Vec<Option<RequestView>>;
    /// A page of requests.
    requests(state: Option<RequestState>, after: Option<RequestId>, limit: usize): Requests
        => Query::Requests { state, after, limit } => Page<RequestView, RequestId>;
    /// A page of live claims.
    claims(state: Option<ClaimState>, after: Option<DriverId>, limit: usize): Claims
        => Query::Claims { state, after, limit } => Page<ClaimView, DriverId>;
    /// Reports of sealed windows.
    reports(after: WindowSeq, limit: usize): Reports => Query::Reports { after, limit }
        => Vec<Arc<WindowReport>>;
    /// The report of one window.
    report(seq: WindowSeq): Report => Query::Report(seq) => Option<ReportView>;
    /// A page of the outbox.
    events(after: After, limit: usize): Events => Query::Events { after, limit }
        => Result<EventPage, CursorGone>;
    /// Every driver.
    supply(): Supply => Query::Supply => Supply;
    /// What the decision of a window needs; nothing when the window is sealed or never was.
    snapshot(seq: WindowSeq): Snapshot => Query::Snapshot(seq) => Option<Box<Snapshot>>;
}

fn mismatch(asked: &str, got: &impl std::fmt::Debug) -> StoreError {
    let got: String = format!("{got:?}").chars().take(200).collect();
    StoreError::Broken(format!("asked for {asked}, got {got}").into())
}
