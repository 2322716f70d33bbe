//! The codes by which clients know refusals, as the HTTP interface spells them.

use super::{claim_batch::PairLoss, driver::EntryCode};

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
}
