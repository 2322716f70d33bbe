//! What a link counts for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the link was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Connections opened, first ones included.
    pub connects: u64,
    /// Attempts to open one that failed.
    pub failed_connects: u64,
    /// Calls that ended without a reply at their deadline.
    pub time_outs: u64,
    /// Calls cut with their connection.
    pub cut: u64,
    /// Redirections that were followed.
    pub redirects: u64,
    /// Scripts loaded into a server that had forgotten them.
    pub script_loads: u64,
    /// Calls turned away because too many were in flight.
    pub turned_away: u64,
    /// Slot maps read.
    pub map_refreshes: u64,
}

impl std::ops::Add for LinkCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            connects: self.connects + other.connects,
            failed_connects: self.failed_connects + other.failed_connects,
            time_outs: self.time_outs + other.time_outs,
            cut: self.cut + other.cut,
            redirects: self.redirects + other.redirects,
            script_loads: self.script_loads + other.script_loads,
            turned_away: self.turned_away + other.turned_away,
            map_refreshes: self.map_refreshes + other.map_refreshes,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connects: Count,
    pub(super) failed_connects: Count,
    pub(super) time_outs: Count,
    pub(super) cut: Count,
    pub(super) redirects: Count,
    pub(super) script_loads: Count,
    pub(super) turned_away: Count,
    pub(super) map_refreshes: Count,
}

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn read(&self) -> LinkCounters {
        LinkCounters {
            connects: self.connects.get(),
            failed_connects: self.failed_connects.get(),
            time_outs: self.time_outs.get(),
            cut: self.cut.get(),
            redirects: self.redirects.get(),
            script_loads: self.script_loads.get(),
            turned_away: self.turned_away.get(),
            map_refreshes: self.map_refreshes.get(),
        }
    }
}
