//! The codes by which clients know refusals, as the HTTP interface spells them.

use super::{
    claim_batch::PairLoss,
    claim_calls::ClaimRefusal,
    configure::ConfigureRefusal,
    driver::{EntryCode, RemoveDriverRefusal},
    own_window::OwnRefusal,
    reconcile::ReconcileRefusal,
    request::{CancelRefusal, IntakeRefusal},
    window::WindowRefusal,
};

macro_rules! codes {
    ($($type:ident { $($variant:pat => $code:literal),* $(,)? })*) => {
        $(
            impl $type {
                /// The stable code, `snake_case`.
                pub const fn code(&self) -> &'static str {
                    match self {
                        $($variant => $code),*
                    }
                }
            }
        )*
    };
}

codes! {
    EntryCode {
        Self::IdConflict => "id_conflict",
        Self::DuplicateInBatch => "duplicate_in_batch",
        Self::RegionFull => "region_full",
        Self::AtMsInFuture => "at_ms_in_future",
        Self::RequestedAtInFuture => "requested_at_in_future",
        Self::AlreadyExpired => "already_expired",
        Self::TooLarge => "too_large",
    }
    RemoveDriverRefusal {
        Self::UnknownDriver => "unknown_driver",
        Self::Held => "held",
    }
    IntakeRefusal {
        Self::Quarantined { .. } => "quarantined",
        Self::Paused => "paused",
    }
    CancelRefusal {
        Self::UnknownRequest => "unknown_request",
        Self::NotHeld => "not_held",
        Self::AlreadyConfirmed => "already_confirmed",
        Self::RequestClosed => "request_closed",
    }
    ClaimRefusal {
        Self::UnknownRequest => "unknown_request",
        Self::NotHeld => "not_held",
        Self::LeaseExpired => "lease_expired",
        Self::AlreadyConfirmed => "already_confirmed",
        Self::NotConfirmed => "not_confirmed",
        Self::RequestClosed => "request_closed",
        Self::FenceStale => "fence_stale",
    }
    WindowRefusal {
        Self::WindowLost => "window_lost",
        Self::NotClosed { .. } => "not_closed",
        Self::NotOverdue { .. } => "not_overdue",
        Self::EarlierUnsealed { .. } => "earlier_unsealed",
        Self::NotLeader => "not_leader",
        Self::Quarantined { .. } => "quarantined",
        Self::TooLarge => "too_large",
    }
    OwnRefusal {
        Self::WindowConflict => "window_conflict",
        Self::WindowInProgress { .. } => "window_in_progress",
        Self::WindowLost => "window_lost",
        Self::Quarantined { .. } => "quarantined",
        Self::Paused => "paused",
        Self::RegionFull => "region_full",
        Self::TooLarge => "too_large",
    }
    PairLoss {
        Self::AlreadyPending => "already_pending",
        Self::AlreadyAssigned => "already_assigned",
        Self::Cooldown => "cooldown",
        // to the caller all of these are the same: somebody was faster
        Self::DriverClaimed
        | Self::DriverUnknown
        | Self::DriverNotAvailable
        | Self::Excluded
        | Self::RequestUnknown
        | Self::RequestClosed
        | Self::Broken => "claim_lost",
    }
    ConfigureRefusal {
        Self::VersionMismatch { .. } => "version_mismatch",
        Self::Invalid(_) => "invalid",
        Self::TooLarge => "too_large",
    }
    ReconcileRefusal {
        Self::GenerationChanged { .. } => "generation_changed",
        Self::TooLarge => "too_large",
    }
}
