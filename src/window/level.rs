//! How well a region is served, as this node saw it last.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{http::Level, protocol::ReportSource};

/// The level of a region; it starts as good as this node can be. Plain flags: no other memory is
/// published with them.
#[derive(Debug, Default)]
pub(super) struct ServedLevel {
    /// The last window was not decided by a batch.
    greedy: AtomicBool,
    /// The store could not be reached.
    store_lost: AtomicBool,
}

impl ServedLevel {
    /// A window was sealed.
    pub(super) fn sealed(&self, source: ReportSource) {
        self.greedy
            .store(source != ReportSource::Batch, Ordering::Relaxed);
    }

    /// The store was tried.
    pub(super) fn store_reached(&self, reached: bool) {
        self.store_lost.store(!reached, Ordering::Relaxed);
    }

    /// The present level: with straight-line ETAs, the only ones there are yet.
    pub(super) fn load(&self) -> Level {
        if self.store_lost.load(Ordering::Relaxed) {
            Level::Unavailable
        } else if self.greedy.load(Ordering::Relaxed) {
            Level::Greedy
        } else {
            Level::BatchStraightLine
        }
    }
}
