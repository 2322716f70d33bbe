//! The end of a trip, as its driver announces it.
//!
//! It is presence: only pings change it, and it stays until a ping tells another or takes it back.
//! Whose trip it ends is read off, not written: a driver announces the trip that it drives, so what
//! it told before its present claim was made is about an earlier one. Hence the end of a claim has
//! nothing to clear, and a ping that was on its way when a trip ended does no harm.

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use crate::domain::{Place, UnixMs};

/// Where and when a busy driver will be free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TripEnd {
    /// Where.
    pub place: Place,
    /// When.
    pub at_ms: UnixMs,
}

/// What a driver told last of where and when its trip ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AnnouncedEnd {
    /// The end.
    pub end: TripEnd,
    /// When the ping that told it was sent or received, whichever is earlier: neither a fast clock
    /// nor a slow network makes it newer than it is.
    pub told_ms: UnixMs,
}

impl AnnouncedEnd {
    /// The end, if it can be that of a driver's present claim: both when it was told and the end
    /// itself lie after the instant at which the claim was made.
    pub fn of(self, claim: &Claim) -> Option<TripEnd> {
        let made = claim.made_ms;
        (self.told_ms > made && self.end.at_ms > made).then_some(self.end)
    }
}
