//! The server's clock as a node sees it, to wake at the right time; the server itself decides.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::{
    domain::StoreTime,
    store::{Clock, SystemClock},
};

/// A reading that is behind by more than this says that one of the clocks was set; less, that its
/// answer took longer on the way than another's.
const SET_MICROS: i64 = 50_000;

/// How far the server's clock is ahead of the machine's, in microseconds, by the quickest answer.
#[derive(Debug, Default)]
pub(super) struct ServerClock(AtomicI64);

impl ServerClock {
    /// An answer has just come that was given at `at`.
    pub(super) fn read(&self, at: StoreTime) {
        let ahead = at.micros() as i64 - SystemClock.now().micros() as i64;
        // plain numbers: no other memory is published with them
        let before = self.0.load(Ordering::Relaxed);
        if ahead > before || before - ahead > SET_MICROS {
            self.0.store(ahead, Ordering::Relaxed);
        } else {
            // clocks drift apart: an old quickest answer is worth a little less each time
            self.0.store(before - 1, Ordering::Relaxed);
        }
    }
}

impl Clock for ServerClock {
    fn now(&self) -> StoreTime {
        let ahead = self.0.load(Ordering::Relaxed);
        let micros = SystemClock.now().micros();
        StoreTime::from_micros(micros.saturating_add_signed(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off_by(clock: &ServerClock) -> i64 {
        clock.now().micros() as i64 - SystemClock.now().micros() as i64
    }

    #[test]
    fn the_quickest_answer_counts_and_a_clock_that_was_set_is_followed() {
        let clock = ServerClock::default();
        let told = |ahead: i64| {
            StoreTime::from_micros(SystemClock.now().micros().saturating_add_signed(ahead))
        };
        clock.read(told(5_000_000));
        assert!((off_by(&clock) - 5_000_000).abs() < 5_000);
        clock.read(told(4_980_000));
        assert!((off_by(&clock) - 5_000_000).abs() < 5_000);
        clock.read(told(-60_000_000));
        assert!((off_by(&clock) + 60_000_000).abs() < 5_000);
    }
}
