//! The part of a region's configuration that the protocol itself obeys, and the protocol's bounds.

use serde::{Deserialize, Serialize};

use crate::domain::DurationMs;

/// Most pairs of one claim batch: a Redis script of this size takes under 2 ms.
pub const MAX_PAIRS_A_BATCH: usize = 250;
/// Most claim batches of one owner of one window: 2,000 requests, repaired once, need 16.
pub const MAX_BATCHES_A_WINDOW: usize = 64;
/// Most due items that one sweep ends.
pub const MAX_SWEPT_A_STEP: usize = 250;
/// Most pings of one step.
pub const MAX_PINGS_A_STEP: usize = 10_000;
/// Most requests of one intake step.
pub const MAX_REQUESTS_A_STEP: usize = 1_000;
/// Most entries of one reconcile step, trips and requests each.
pub const MAX_RECONCILED_A_STEP: usize = 1_000;
/// Claims of a request that are remembered, so that repeated calls get their first answer.
pub const REMEMBERED_CLAIMS: usize = 8;
/// Cool-downs of a driver that are remembered.
pub const REMEMBERED_COOLDOWNS: usize = 8;
/// Window reports kept a region.
pub const KEPT_REPORTS: usize = 1_000;
/// Windows whose decisions are kept a region.
pub const KEPT_DECISIONS: usize = 50;
/// Longest decisions document that is kept, in bytes; a longer one is dropped.
pub const MAX_DECISIONS_BYTES: usize = 1 << 20;
/// Events kept a region.
pub const KEPT_EVENTS: usize = 100_000;
/// How long an event is kept.
pub const EVENT_MEMORY_MS: DurationMs = DurationMs::new(3_600_000);
/// Windows that may be unsealed at once; one more and the oldest is sealed as decided by nobody.
pub const MAX_UNSEALED_WINDOWS: usize = 16;
/// The caller's own windows remembered a region.
pub const MAX_OWN_WINDOWS: usize = 1_000;
/// Requests a region may remember, ended ones included; more are refused as `region_full`.
pub const MAX_REQUESTS: usize = 1_000_000;
/// Drivers a region may know.
pub const MAX_DRIVERS: usize = 500_000;
/// The lease must outlast the offer by this much, for the confirm to arrive.
pub const CONFIRM_MARGIN_MS: DurationMs = DurationMs::new(2_000);
/// Longest lease that the guard rails allow; a quarantine lasts as long.
pub const MAX_LEASE_MS: DurationMs = DurationMs::new(60_000);

/// What the protocol reads of a region's configuration. Plain values, checked as a whole by
/// [`RegionRules::check`]; durations in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RegionRules {
    /// Distance of two closes on the grid.
    pub window_ms: DurationMs,
    /// Time a decision may take after the close.
    pub budget_ms: DurationMs,
    /// Time beyond the budget before another node takes the window over.
    pub grace_ms: DurationMs,
    /// A window that closes early lasts at least this long.
    pub min_window_ms: DurationMs,
    /// Arrivals that close a window early.
    pub max_requests: u32,
    /// Requests that one snapshot takes, oldest first; the rest are deferred.
    pub max_snapshot_requests: u32,
    /// Requests that may be pending; more are refused as `region_full`.
    pub max_pending: u32,
    /// Time a driver is given to answer an offer.
    pub offer_window_ms: DurationMs,
    /// Life of a claim that is not confirmed.
    pub lease_ms: DurationMs,
    /// How long a pair that did not work out is kept apart.
    pub decline_cooldown_ms: DurationMs,
    /// How long an ended request is remembered.
    pub request_memory_ms: DurationMs,
    /// How long a request waits that does not say.
    pub max_wait_ms: DurationMs,
    /// Age at which a position no longer counts.
    pub max_location_age_ms: DurationMs,
    /// Life of an unclaimed driver's record after its last ping.
    pub driver_ttl_ms: DurationMs,
    /// How far a caller's clock may be ahead of the store's.
    pub max_clock_skew_ms: DurationMs,
    /// Longest trip; a longer one is ended.
    pub max_trip_ms: DurationMs,
    /// How long the answer of a caller's own window is kept.
    pub window_result_ttl_ms: DurationMs,
    /// Intake is refused; everything else is served.
    pub paused: bool,
}

impl Default for RegionRules {
    fn default() -> Self {
        let ms = DurationMs::new;
        Self {
            window_ms: ms(3_000),
            budget_ms: ms(500),
            grace_ms: ms(250),
            min_window_ms: ms(500),
            max_requests: 500,
            max_snapshot_requests: 2_000,
            max_pending: 5_000,
            offer_window_ms: ms(12_000),
            lease_ms: ms(15_000),
            decline_cooldown_ms: ms(300_000),
            request_memory_ms: ms(3_600_000),
            max_wait_ms: ms(600_000),
            max_location_age_ms: ms(15_000),
            driver_ttl_ms: ms(600_000),
            max_clock_skew_ms: ms(5_000),
            max_trip_ms: ms(12 * 3_600_000),
            window_result_ttl_ms: ms(120_000),
            paused: false,
        }
    }
}

/// Why rules cannot stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum RulesError {
    /// `window_ms` outside 500–30,000.
    #[error("window_ms must be within 500 and 30000")]
    Window,
    /// `budget_ms` over `window_ms`, or not positive.
    #[error("budget_ms must be positive and at most window_ms")]
    Budget,
    /// The lease would end before an accept can arrive, or outlast a quarantine.
    #[error("lease_ms must be at least offer_window_ms + 2000 and at most 60000")]
    Lease,
    /// A duration that must be positive is not, or a count is zero.
    #[error("durations and counts must be positive")]
    NotPositive,
}

impl RegionRules {
    /// Whether the rules can stand together. The guard rails of each value lie with the caller.
    ///
    /// # Errors
    /// The first cross-check that fails.
    pub fn check(&self) -> Result<(), RulesError> {
        if !(500..=30_000).contains(&self.window_ms.get()) {
            return Err(RulesError::Window);
        }
        if self.budget_ms <= DurationMs::ZERO || self.budget_ms > self.window_ms {
            return Err(RulesError::Budget);
        }
        if self.lease_ms < self.offer_window_ms + CONFIRM_MARGIN_MS || self.lease_ms > MAX_LEASE_MS
        {
            return Err(RulesError::Lease);
        }
        let positive = [
            self.grace_ms,
            self.min_window_ms,
            self.offer_window_ms,
            self.request_memory_ms,
            self.max_wait_ms,
            self.max_location_age_ms,
            self.driver_ttl_ms,
            self.max_trip_ms,
            self.window_result_ttl_ms,
        ];
        let not_negative = [self.decline_cooldown_ms, self.max_clock_skew_ms];
        let counts = [
            self.max_requests,
            self.max_snapshot_requests,
            self.max_pending,
        ];
        if positive.iter().any(|&d| d <= DurationMs::ZERO)
            || not_negative.iter().any(|&d| d < DurationMs::ZERO)
            || counts.contains(&0)
        {
            return Err(RulesError::NotPositive);
        }
        Ok(())
    }

    /// A lease that a caller asked for, within the rails; without one the region's own.
    pub fn lease(&self, asked: Option<DurationMs>) -> DurationMs {
        asked.map_or(self.lease_ms, |lease| {
            lease.clamp(self.offer_window_ms + CONFIRM_MARGIN_MS, MAX_LEASE_MS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_stand_together() {
        assert_eq!(RegionRules::default().check(), Ok(()));
    }

    #[test]
    fn a_lease_shorter_than_the_offer_is_refused() {
        let rules = RegionRules {
            lease_ms: DurationMs::new(13_999),
            ..RegionRules::default()
        };
        assert_eq!(rules.check(), Err(RulesError::Lease));
        let asked = RegionRules::default().lease(Some(DurationMs::new(1)));
        assert_eq!(asked, DurationMs::new(14_000));
    }
}
