//! What one configuration of the model lets happen, and how much of it.
//!
//! Everything is exhaustive within these bounds, and nothing is claimed beyond them. Time is coarse:
//! one tick is the distance of two closes, a lease, a cool-down and a leader's lease, and a
//! quarantine is two. So every order of "before" and "after" an end is met in few ticks.

use super::seen::Sight;
use crate::{
    domain::{DurationMs, StoreTime, UnixMs},
    protocol::{Mutation, RegionRules},
};

/// One tick of the model's clock.
pub(super) const TICK_MS: i64 = 30_000;

/// When the model begins: in the year 2026, so that versions have their real 16 digits.
const BEGIN_MS: i64 = 1_796_044_600_000;

/// Where the clock stands in the beginning; the region came to be at tick 0, longer ago than two
/// primaries' clocks differ.
pub(super) const FIRST_TICK: u8 = 4;

/// What may be sent to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request arrives.
    Intake,
    /// A known request's id arrives with another body.
    OtherBody,
    /// A request is cancelled.
    Cancel,
    /// A driver accepts.
    Confirm,
    /// A driver declines.
    Decline,
    /// An offer does not reach its driver.
    Undeliverable,
    /// A trip is over.
    Complete,
    /// A driver is given longer.
    Extend,
    /// A driver reports itself.
    Ping,
    /// A driver is taken offline.
    Remove,
    /// A node asks for the leadership.
    Acquire,
    /// A leader keeps it.
    Renew,
    /// A leader gives it up.
    Resign,
    /// A leader takes a window.
    Lead,
    /// A node takes an overdue window over.
    TakeOver,
    /// An owner claims a batch.
    Claim,
    /// An owner seals.
    Seal,
    /// A node works on the caller's own window.
    Own,
    /// The dispatch tier tells what is true.
    Reconcile,
    /// A node sweeps.
    Sweep,
}

/// Pairs that a node may decide, as (request, driver) numbers; each list is one batch.
pub(super) type Decisions = &'static [&'static [(usize, usize)]];

/// The bounds of one configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Its name.
    pub(super) name: &'static str,
    /// How often the clock moves on.
    pub(super) ticks: u8,
    /// Messages on their way at once, at most [`super::state::FLIGHT`].
    pub(super) in_flight: usize,
    /// What travels: lost, late, twice, in any order.
    pub(super) travels: &'static [Kind],
    /// What arrives as it is sent, to spend the states elsewhere.
    pub(super) at_once: &'static [Kind],
    /// Requests that are pending in the beginning.
    pub(super) waiting: usize,
    /// How often each node draws a number to lead by, and to work on the own window by.
    pub(super) draws: u8,
    /// Leaderships that a run may see: a late repeat of an election begins one more.
    pub(super) leaderships: u8,
    /// Trips that may be restored in a run: each telling restores them anew.
    pub(super) restored: u8,
    /// What each of the two nodes may decide.
    pub(super) decisions: [Decisions; 2],
    /// How often the store loses data.
    pub(super) losses: u8,
    /// Fewest unique states of a run that proves something.
    pub(super) least_states: usize,
    /// What such a run has met.
    pub(super) must_see: &'static [Sight],
    /// A planted bug.
    pub(super) planted: Option<Mutation>,
}

/// A primary's time at a tick. Two primaries never begin a generation in the same microsecond: the
/// protocol counts on that, and coarse ticks alone would let it happen all the time.
pub(super) fn time(tick: u8, primary: u8) -> StoreTime {
    let at = StoreTime::from_ms(UnixMs::new(BEGIN_MS + i64::from(tick) * TICK_MS));
    StoreTime::from_micros(at.micros() + 100 * u64::from(primary))
}

/// A number of ticks, and halves of them, as a duration.
pub(super) const fn halves(n: i64) -> DurationMs {
    DurationMs::new(n * TICK_MS / 2)
}

/// The rules of the model's region.
pub(super) fn rules() -> RegionRules {
    RegionRules {
        window_ms: halves(2),
        budget_ms: halves(1),
        grace_ms: halves(1),
        offer_window_ms: DurationMs::new(TICK_MS - 2_000),
        lease_ms: halves(2),
        decline_cooldown_ms: halves(2),
        max_wait_ms: halves(5),
        // longer than any run, so that what is forgotten is looked at where everything rests
        max_trip_ms: halves(40),
        request_memory_ms: halves(40),
        driver_ttl_ms: halves(60),
        window_result_ttl_ms: halves(40),
        max_pending: 8,
        max_snapshot_requests: 4,
        ..RegionRules::default()
    }
}
