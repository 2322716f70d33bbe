//! Planted bugs: each flips one rule of a transition, so that tests can show that they would
//! notice. Only tests and the feature `mutants` can switch one on.

/// One known trap of claim protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// The fence counter restarts, as one kept in an expiring record does.
    FenceRestarts,
    /// The reaper frees a driver by its due time without looking at the claim again.
    ReaperFreesConfirmed,
    /// A release that finds a confirmed claim drops the request's side only: the driver leaks.
    ReleaseAfterConfirmLeaks,
    /// The lease is shorter than the time in which an offer may be accepted.
    LeaseBelowOffer,
    /// Cancelling an assigned request leaves its driver held.
    CancelKeepsDriver,
    /// A repeated confirm is answered as an error.
    RepeatConfirmDiffers,
    /// A repeated release is executed again.
    RepeatReleaseRuns,
    /// A repeated claim batch is executed again.
    RepeatBatchRuns,
    /// A claim batch of an owner that was replaced is accepted.
    StaleOwnerClaims,
    /// A sealed window may be sealed again.
    SealTwice,
    /// Owners of an earlier generation are accepted.
    LateGenerationAccepted,
    /// The `assigned` event is not published with the change.
    EventMissing,
    /// A repeated intake is accepted as a new request.
    IntakeRepeatCreates,
    /// The same id with another body gets the first answer.
    IntakeIgnoresBody,
    /// A pair in cool-down may be claimed.
    CooldownIgnored,
    /// Removing a driver leaves no tombstone, so that an old ping revives it.
    TombstoneIgnored,
    /// An older ping overwrites a newer one.
    StalePingWins,
    /// A released request waits as if it had just come.
    AgeResetOnRelease,
    /// A lease that is over may still be confirmed.
    LateConfirmAccepted,
    /// A claim takes a driver that another claim holds.
    DriverClaimedTwice,
    /// A claim takes a request that another claim holds.
    RequestClaimedTwice,
    /// Confirm compares the request but not the fence.
    FenceNotCompared,
    /// Two leaders may hold a region: the lease of the first is not looked at.
    LeaseOfLeaderIgnored,
    /// A window may be taken over before its owner's time is up.
    TakenTooEarly,
    /// A request past its deadline returns to the pending ones.
    DeadlineIgnoredAtRelease,
    /// Windows are taken during a quarantine.
    QuarantineIgnored,
    /// A cancelled request may still be confirmed.
    ConfirmAfterCancel,
    /// Another body under the same own-window id gets the first answer.
    OwnWindowIgnoresBody,
}

impl Mutation {
    /// Every planted bug.
    #[cfg(any(test, feature = "mutants"))]
    pub const ALL: [Self; 28] = [
        Self::FenceRestarts,
        Self::ReaperFreesConfirmed,
        Self::ReleaseAfterConfirmLeaks,
        Self::LeaseBelowOffer,
        Self::CancelKeepsDriver,
        Self::RepeatConfirmDiffers,
        Self::RepeatReleaseRuns,
        Self::RepeatBatchRuns,
        Self::StaleOwnerClaims,
        Self::SealTwice,
        Self::LateGenerationAccepted,
        Self::EventMissing,
        Self::IntakeRepeatCreates,
        Self::IntakeIgnoresBody,
        Self::CooldownIgnored,
        Self::TombstoneIgnored,
        Self::StalePingWins,
        Self::AgeResetOnRelease,
        Self::LateConfirmAccepted,
        Self::DriverClaimedTwice,
        Self::RequestClaimedTwice,
        Self::FenceNotCompared,
        Self::LeaseOfLeaderIgnored,
        Self::TakenTooEarly,
        Self::DeadlineIgnoredAtRelease,
        Self::QuarantineIgnored,
        Self::ConfirmAfterCancel,
        Self::OwnWindowIgnoresBody,
    ];
}
