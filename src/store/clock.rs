//! The store's clock: the only one that decides leases and fences.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::domain::{DurationMs, StoreTime, UnixMs};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> StoreTime;
}

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> StoreTime {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        StoreTime::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }
}

/// A clock that moves when it is told to, for tests.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that stands at `at`.
    pub fn at(at: UnixMs) -> Self {
        Self(AtomicU64::new(StoreTime::from_ms(at).micros()))
    }

    /// Moves it forward, or back when negative.
    pub fn advance(&self, by: DurationMs) {
        let micros = by.get().saturating_mul(1_000);
        // the clock is a plain number: no other memory is published with it
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                Some(now.saturating_add_signed(micros))
            });
    }
}

impl Clock for ManualClock {
    fn now(&self) -> StoreTime {
        StoreTime::from_micros(self.0.load(Ordering::Relaxed))
    }
}
