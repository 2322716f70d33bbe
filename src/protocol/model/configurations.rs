//! The configurations: each looks at one part of the protocol, with everything else held still.

use super::{
    bounds::{
        Bounds,
        Kind::{
            Acquire, Cancel, Claim, Complete, Confirm, Decline, Extend, Intake, Lead, OtherBody,
            Own, Ping, Reconcile, Remove, Renew, Resign, Seal, Sweep, TakeOver, Undeliverable,
        },
    },
    seen::Sight,
};
use crate::protocol::Mutation;

/// The life of claims: calls of the dispatch tier that are late, lost, repeated and reordered,
/// against leases, deadlines, cool-downs and one leader's windows.
pub(super) const CLAIMS: Bounds = Bounds {
    name: "claims",
    ticks: 3,
    in_flight: 2,
    travels: &[Cancel, Confirm, Decline, Complete, Extend],
    at_once: &[Acquire, Lead, Claim, Seal, Sweep],
    waiting: 2,
    draws: 1,
    leaderships: 1,
    restored: 0,
    decisions: [&[&[(0, 0), (1, 1)], &[(0, 1), (1, 0)]], &[]],
    losses: 0,
    least_states: 1_000_000,
    must_see: &[
        Sight::Claimed,
        Sight::PairLost,
        Sight::Confirmed,
        Sight::Released,
        Sight::Completed,
        Sight::Cancelled,
        Sight::LeaseExpired,
        Sight::Expired,
        Sight::CallRefused,
        Sight::Repeated,
    ],
    planted: None,
};

/// Two nodes that may both believe to lead: elections, windows, batches and seals on their way
/// while leases end, and take-overs of what is late.
pub(super) const LEADERS: Bounds = Bounds {
    name: "leaders",
    ticks: 3,
    in_flight: 2,
    travels: &[Acquire, Renew, Resign, Lead, TakeOver, Claim, Seal],
    at_once: &[Sweep],
    waiting: 2,
    draws: 1,
    leaderships: 2,
    restored: 0,
    decisions: [&[&[(0, 0), (1, 1)]], &[&[(0, 1), (1, 0)]]],
    losses: 0,
    least_states: 8_000_000,
    must_see: &[
        Sight::Claimed,
        Sight::PairLost,
        Sight::StaleBatch,
        Sight::StaleSeal,
        Sight::StaleTake,
        Sight::TakenOver,
        Sight::Sealed,
        Sight::TwoLead,
        Sight::ElectionLost,
        Sight::LeadershipLost,
        Sight::Repeated,
    ],
    planted: None,
};

/// A primary is lost under two nodes: a follower without the tail, or nothing at all, takes its
/// place, by a clock that may be behind, and owners of the last life go on working.
pub(super) const FAILOVER: Bounds = Bounds {
    name: "failover",
    ticks: 4,
    in_flight: 1,
    travels: &[Lead, Claim, Seal],
    at_once: &[Acquire, Confirm, Sweep],
    waiting: 1,
    draws: 1,
    leaderships: 2,
    restored: 0,
    decisions: [&[&[(0, 0)]], &[&[(0, 1)]]],
    losses: 1,
    least_states: 2_500_000,
    must_see: &[
        Sight::Claimed,
        Sight::StaleBatch,
        Sight::StaleSeal,
        Sight::GenerationFound,
        Sight::DataMissing,
        Sight::Quarantined,
    ],
    planted: None,
};

/// Data lost twice, and the dispatch tier that tells what is true while its calls are on their way.
pub(super) const LOSSES: Bounds = Bounds {
    name: "losses",
    ticks: 3,
    in_flight: 1,
    travels: &[Confirm, TakeOver, Claim, Reconcile],
    at_once: &[Complete, Sweep],
    waiting: 2,
    draws: 0,
    leaderships: 0,
    restored: 1,
    decisions: [&[&[(0, 0), (1, 1)]], &[]],
    losses: 2,
    least_states: 2_200_000,
    must_see: &[
        Sight::Confirmed,
        Sight::Completed,
        Sight::GenerationFound,
        Sight::DataMissing,
        Sight::Quarantined,
        Sight::Restored,
    ],
    planted: None,
};

/// The caller's own window, worked on by two nodes, against the region's window over the same
/// drivers and requests.
pub(super) const OWN_WINDOW: Bounds = Bounds {
    name: "own window",
    ticks: 2,
    in_flight: 2,
    travels: &[Own, Claim],
    at_once: &[Intake, Confirm, Decline, TakeOver, Seal, Sweep],
    waiting: 0,
    draws: 1,
    leaderships: 0,
    restored: 0,
    decisions: [&[&[(0, 0), (1, 1)]], &[&[(0, 1)]]],
    losses: 0,
    least_states: 7_000_000,
    must_see: &[
        Sight::Claimed,
        Sight::PairLost,
        Sight::OwnAnswered,
        Sight::OtherBody,
        Sight::StaleBatch,
        Sight::Repeated,
    ],
    planted: None,
};

/// Requests and drivers that come and go: intake repeated and with another body, pings that are
/// late, drivers taken offline, offers that do not arrive.
pub(super) const SUPPLY: Bounds = Bounds {
    name: "supply",
    ticks: 3,
    in_flight: 2,
    travels: &[Intake, OtherBody, Undeliverable, Confirm, Ping, Remove],
    at_once: &[TakeOver, Claim, Seal, Sweep],
    waiting: 0,
    draws: 0,
    leaderships: 0,
    restored: 0,
    decisions: [&[&[(0, 0)]], &[]],
    losses: 0,
    least_states: 7_500_000,
    must_see: &[
        Sight::Claimed,
        Sight::Confirmed,
        Sight::Released,
        Sight::Expired,
        Sight::CallRefused,
        Sight::OtherBody,
        Sight::Repeated,
    ],
    planted: None,
};

/// Searched in every run.
pub(super) const EVERY_RUN: [Bounds; 6] = [CLAIMS, LEADERS, FAILOVER, LOSSES, OWN_WINDOW, SUPPLY];

/// Searched on demand: the same parts within wider bounds, over 100 million states in all.
///
/// Measured on two shared cores: the first 25.5 million states in 135 s and 1.0 GB, the second 8.0
/// million in 60 s; the third still going after 34 million, 240 s and 1.7 GB. Time and memory grow
/// with the states, about 5 microseconds of a core and 25 bytes each.
pub(super) const LARGE: [Bounds; 6] = [
    Bounds {
        name: "claims, three in flight",
        in_flight: 3,
        least_states: 25_000_000,
        ..CLAIMS
    },
    Bounds {
        name: "losses, two restored",
        restored: 2,
        least_states: 7_900_000,
        ..LOSSES
    },
    Bounds {
        name: "leaders, three leaderships",
        leaderships: 3,
        least_states: 30_000_000,
        ..LEADERS
    },
    Bounds {
        name: "failover, with take-overs",
        at_once: &[Acquire, TakeOver, Confirm, Sweep],
        least_states: 17_000_000,
        ..FAILOVER
    },
    Bounds {
        name: "own window, drawn twice",
        draws: 2,
        least_states: 7_000_000,
        ..OWN_WINDOW
    },
    Bounds {
        name: "supply, three in flight",
        in_flight: 3,
        least_states: 7_500_000,
        ..SUPPLY
    },
];

/// Planted bugs that lie outside of the model, each with the layer that catches it; none does at
/// present.
pub(super) const OUTSIDE: [(Mutation, &str); 0] = [];

/// Where a planted bug must be found.
pub(super) const fn hunting_ground(mutation: Mutation) -> Bounds {
    let bounds = match mutation {
        Mutation::FenceRestarts
        | Mutation::ReaperFreesConfirmed
        | Mutation::ReleaseAfterConfirmLeaks
        | Mutation::LeaseBelowOffer
        | Mutation::CancelKeepsDriver
        | Mutation::RepeatConfirmDiffers
        | Mutation::RepeatReleaseRuns
        | Mutation::EventMissing
        | Mutation::AgeResetOnRelease
        | Mutation::LateConfirmAccepted
        | Mutation::DriverClaimedTwice
        | Mutation::RequestClaimedTwice
        | Mutation::FenceNotCompared
        | Mutation::DeadlineIgnoredAtRelease
        | Mutation::ConfirmAfterCancel => CLAIMS,
        Mutation::RepeatBatchRuns
        | Mutation::StaleOwnerClaims
        | Mutation::SealTwice
        | Mutation::LeaseOfLeaderIgnored
        | Mutation::TakenTooEarly => LEADERS,
        Mutation::LateGenerationAccepted | Mutation::QuarantineIgnored => LOSSES,
        Mutation::CooldownIgnored | Mutation::OwnWindowIgnoresBody => OWN_WINDOW,
        Mutation::IntakeRepeatCreates
        | Mutation::IntakeIgnoresBody
        | Mutation::TombstoneIgnored
        | Mutation::StalePingWins => SUPPLY,
    };
    Bounds {
        planted: Some(mutation),
        ..bounds
    }
}
